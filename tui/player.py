"""A player: a position in a timeline and everything that follows from it. No Textual, no threads, no clock.

    → step       to the next stop (`beats.py`)         place 12        17
    ← back       to the stop before                    ──────●─────────●──────
                                                              the beat: 13 … 17

What is shown is a function of the place and of what is selected: however a place was reached, it looks the same.
"""

from collections.abc import Iterator, Sequence

from minicache.core import events as ev
from minicache.sim.closing import CUT, end_of_log_words
from minicache.sim.errors import UnknownThing
from minicache.sim.explainer import Account, Explained
from minicache.sim.finding import Finding
from minicache.sim.fork import Change
from minicache.sim.narration import Narration
from minicache.sim.phrases import plural
from minicache.sim.summary import Summary
from minicache.sim.timeline import Timeline
from minicache.sim.toml_table import suggestion

from .beats import Run
from .model.belt import QueueBelt, belt_of_tree
from .model.chain import Chain
from .model.explained import accounts, explain_selection
from .model.find import find
from .model.labels import Texts
from .model.meters import meters_at
from .model.requests import Requests
from .model.ribbon import RibbonModel, ribbon_of
from .model.rows import (
    NOTHING,
    BeltItem,
    ChainModel,
    Found,
    Meter,
    RequestRow,
    Selection,
    StripCell,
    TreeModel,
    TreeRow,
)
from .model.run_index import RunIndex
from .model.strip import StripMap
from .model.token_text import Decoder
from .model.tree import Tree
from .moves import Moves
from .playable import BEAT_SECONDS, SPEEDS, Playable

__all__ = [
    "BEAT_SECONDS",
    "NOTHING",
    "SPEEDS",
    "BeltItem",
    "ChainModel",
    "Found",
    "Meter",
    "Playable",
    "Player",
    "RequestRow",
    "Run",
    "Selection",
    "StripCell",
    "TreeModel",
    "TreeRow",
]


class Player(Moves):
    """A position in a timeline, which may grow (call `refresh` then). Moves return whether the position changed."""

    def __init__(self, timeline: Timeline, *, decode: Decoder | None = None, parent: "Player | None" = None) -> None:
        super().__init__(timeline)
        self.parent = parent
        self.command = ""  # that opens this run at its beginning
        self.name: str = _name(timeline) if parent is None else parent.name  # of the scenario or of the log
        self.decode = decode
        self.grows = False  # whether a live engine may add events
        self.index = RunIndex(timeline)
        self.texts = Texts(timeline, self.index, decode)
        if parent is not None:
            self.breakpoints = list(parent.breakpoints)
        self.selection = NOTHING
        self._strip = StripMap(timeline)
        self._requests = Requests(self.index)
        self._chain = Chain(timeline, self.index, self.texts)
        self._tree = Tree(self.texts, self._owner)
        self._queue = QueueBelt(self._chain.text)
        self._narration: Narration | None = None
        self._summary: Summary | None = None

    # What it is

    @property
    def title(self) -> str:
        scenario = self.timeline.scenario
        if self.parent is not None:
            return f"A fork: {self.difference}"
        return scenario.title if scenario else str(self.timeline.settings.get("title") or "A recorded run")

    @property
    def difference(self) -> str:
        """What is different in a fork from the run that it was made of, in a few words."""
        assert self.parent is not None
        here, there = self.timeline.changes, self.parent.timeline.changes
        added = [item[1] for item in here if not any(item is other for other in there)]
        if added:
            return added[-1].describe()
        gone = there[len(here) :]
        return f"without this: {gone[0][1].describe()}" if gone else "nothing is different"

    def facts(self) -> str:
        """`hash chain · 512 blocks of 16`, `radix tree · 8,192 blocks of 1 · lru`, at this place."""
        kind = "radix tree" if self.timeline.kind == "radix" else "hash chain"
        order = f" · {self._strategy()}" if self.timeline.kind == "radix" else ""
        return f"{kind} · {self.view.num_blocks - 1:,} blocks of {self.view.block_size}{order}"

    def story(self) -> str:
        """The title, and below it what the scenario is about."""
        scenario = self.timeline.scenario
        if scenario:
            return f"{scenario.title}\n{' '.join(scenario.story.split())} {self.timeline.token_words.unit}"
        length = f"{plural(len(self.timeline), 'event')} in {plural(self.num_steps, 'step')}."
        if self.grows and not len(self.timeline):
            length = "Type a prompt and watch the engine serve it. You can go back in what happened, and send another."
        end = [CUT] if self.timeline.cut else []
        return f"{self.title}\n{' '.join([length, *end, self.timeline.token_words.unit])}".rstrip()

    def how_it_ends(self) -> str:
        """What there is to say at the end of a log that stops before the run does; nothing elsewhere."""
        if self.grows or not self.at_end:
            return ""
        return end_of_log_words(len(self.view.waiting), len(self.view.running), self.timeline.cut)

    @property
    def is_over(self) -> bool:
        """Whether this is the end, and every request that arrived is over."""
        return self.at_end and not self.view.requests

    def said(self, request: str) -> tuple[str, str] | None:
        """The prompt of a live engine's request and what was generated by now, as texts; None of any other run."""
        known = self.view.requests.get(request) or self.view.ended.get(request)
        if self.decode is None or known is None:
            return None
        prompt = known.num_prompt_tokens
        return self.decode(known.tokens[:prompt]), self.decode(known.tokens[prompt:])

    @property
    def permalink(self) -> str:
        """The command that comes back to this place; empty where none does, as in a fork or over a live engine."""
        return f"{self.command} --event {self.place}" if self.command else ""

    @property
    def reopening(self) -> str:
        """How to come back to this place, in a sentence."""
        if self.permalink:
            return f"This place again: {self.permalink}"
        if self.parent is None or not self.origin.permalink:
            return "No command opens this run again."
        return f"No command opens a fork again; its original:\n{self.origin.permalink}"

    @property
    def origin(self) -> "Player":
        """The run that this is a fork of, or a fork of a fork; itself, if it is none."""
        return self if self.parent is None else self.parent.origin

    # Selecting

    def select(self, selection: Selection) -> None:
        if selection != self.selection:
            self.selection = selection
            self.version += 1

    def seek(self, place: int) -> bool:
        """Go to a place, and let go of a selection that is not there, or that was a place itself."""
        moved = super().seek(place)
        if moved and not self._is_here(self.selection):
            self.selection = NOTHING
        return moved

    def _is_here(self, selection: Selection) -> bool:
        view = self.view
        match selection.kind, selection.id:
            case "request", str(request):
                return request in view.requests or request in view.ended
            case "token", (str(request), int(position)):
                known = view.requests.get(request) or view.ended.get(request)
                return known is not None and position < len(known.tokens)
            case "node", int(node):
                return node in view.nodes
            case "block", int(block):
                return block < view.num_blocks
        return False

    def go_to_request(self, request: str) -> bool:
        """To where a request arrives, and select it. Raises `UnknownThing` with what there is."""
        marks = self.index.requests.get(request)
        if marks is None:
            ids = list(self.index.requests)
            if not ids:
                raise UnknownThing(f"this run has no request {request!r}: none has arrived yet")
            few = ", ".join(ids[:8]) + (", …" if len(ids) > 8 else "")
            raise UnknownThing(f"this run has no request {request!r}{suggestion(request, ids) or f': it has {few}'}")
        moved = self.seek(marks.arrival)
        self.select(Selection("request", request))
        return moved

    def select_next_request(self, by: int = 1) -> None:
        """The request `by` rows on from the one that is shown."""
        ids = [row.id for row in self.requests()]
        if ids:
            now = ids.index(self.focus_request) if self.focus_request in ids else -1 if by > 0 else 0
            self.select(Selection("request", ids[(now + by) % len(ids)]))

    @property
    def focus_request(self) -> str | None:
        """The request that is selected, else the one that the current event is about, else the last before that."""
        match self.selection.kind, self.selection.id:
            case ("request", str(chosen)) | ("token", (str(chosen), int())) if self._is_here(self.selection):
                return chosen
        for place in range(self.place, -1, -1):
            request = getattr(self.timeline.events[place], "request", None)
            if request in self.index.requests:
                return str(request)
        return None

    def chosen_blocks(self) -> frozenset[int]:
        """The blocks of whatever is selected; where nothing is, those that the current event found, if it is a
        lookup."""
        view = self.view
        match self.selection.kind, self.selection.id:
            case "block", int(block):
                return frozenset((block,))
            case "request", str(request):
                return frozenset(view.tables.get(request, ()))
            case "node", int(node):
                return frozenset(view.nodes[node].blocks if node in view.nodes else ())
            case "event", int(place):
                return frozenset(self._found(place) or getattr(self.timeline.require(place), "blocks", ()))
            case "token", (str(request), int(position)):
                table = view.tables.get(request, ())
                return frozenset(table[position // view.block_size :][:1])
        return frozenset(self._found(self.place))

    def _found(self, place: int) -> tuple[int, ...]:
        """The blocks that a lookup found, in the order of the prompt: its request adopts them next, if it is admitted.
        None of any other event."""
        lookup, adoption = self.timeline.require(place, -1), self.timeline.next(place, "BlocksAdopted")
        if not isinstance(lookup, ev.PrefixMatched) or adoption is None:
            return ()
        later = self.timeline.next(place, "PrefixMatched")
        adopted = self.timeline.events[adoption]
        assert isinstance(adopted, ev.BlocksAdopted)
        return adopted.blocks if later is None or adoption < later else ()

    # What is shown

    def requests(self) -> list[RequestRow]:
        return self._requests.rows(self.view, self.place)

    def ribbon(self, request: str | None = None) -> RibbonModel | None:
        """The tokens of a request, of the one in focus if none is named."""
        request = request or self.focus_request
        if request is None:
            return None
        return ribbon_of(request, self.place, self.view, self.index, self.texts, self._finding)

    def belt(self) -> Iterator[BeltItem]:
        """What will be handed out next, front first; valid until the player moves. Empty blocks go before a tree's
        leaves."""
        yield from self._queue.items(self.view, self._state.lru)
        if self.timeline.kind == "radix":
            self._follow()
            yield from belt_of_tree(self._tree, self.view, self._strategy())

    def chain(self) -> ChainModel:
        self._follow()
        return self._chain.model(self.beat, self.view, self.cells, self.chosen_blocks(), self._found(self.place))

    def tree(self) -> TreeModel:
        self._follow()
        return self._tree.model(self.timeline.events[self.beat.start : self.beat.stop], self.view, self.cells)

    def meters(self) -> list[Meter]:
        return meters_at(self.timeline, self.place, self.view, self.cells, self.index)

    def strip(self, width: int) -> list[StripCell]:
        return self._strip.cells(width, self.place)

    def sentences(self) -> list[Account]:
        """What happened since the stop before; last the current event. Nothing before the first event."""
        if self.place < 0:
            return []
        told, narration = self.beats.told(self.place), self.narration
        for place, view in self._state.look_back(place for place in told if not narration.knows(place)):
            narration.tell(place, view)
        return accounts(narration, told)

    def explain(self) -> Explained:
        """Whatever is selected, else the current event; raises `UnknownThing` if it is not there at this place."""
        return explain_selection(self.selection, self.place, self.view, self.narration, self.index, self._node_text)

    def find(self, text: str) -> list[Found]:
        return find(text, self.view, self.index, self.timeline, self._prompt_text)

    @property
    def narration(self) -> Narration:
        """The run in sentences; made when it is first needed, for it reads the whole run."""
        if self._narration is None:
            self._narration = Narration(self.timeline)
        return self._narration

    @property
    def summary(self) -> Summary:
        """The figures of the whole run, up to what the timeline has by now."""
        if self._summary is None:
            self._summary = Summary.of(self.timeline)
        self._summary.apply_all(self.timeline.events[self._summary.totals["events"] :])
        return self._summary

    def block_text(self, block: int) -> str:
        """What the tokens in a block say; nothing if it holds none that anybody knows of."""
        view, size = self.view, self.view.block_size
        if block in view.hashes:
            return self._chain.text(view.hashes[block])
        for request, table in view.tables.items():
            if block in table and (known := view.requests.get(request)) is not None:  # some are nobody's: taken away
                start = table.index(block) * size
                tokens = self.texts.of(request, known.tokens, known.num_prompt_tokens)
                return tokens.piece(start, min(start + size, len(known.tokens)))
        for id, node in view.nodes.items():
            if block in node.blocks:
                at = node.blocks.index(block) * size
                return self.texts.of_run(node.tokens, *(self._owner(id) or ())).piece(at, at + size)
        return ""

    # What if, and more of the same

    def fork(self, change: Change | None = None) -> "Player":
        """A player of the run as it would go on with the change, at the step boundary at or before this place. This
        one stays as it is and is the other's `parent`. Raises `BadChange`."""
        branch = Player(self.timeline.fork(self.place, change), decode=self.decode, parent=self)
        branch.seek((branch.timeline.forked_at or 0) - 1)
        branch.speed = self.speed
        return branch

    def refresh(self) -> bool:
        """Take in events that the timeline got meanwhile; returns whether there are any."""
        before = self.beats.num_read
        self.beats.update()
        self.index.update()
        if self.beats.num_read == before:
            return False
        self.version += 1
        return True

    def prepare(self) -> None:
        """Find out now, while nobody waits, what takes longest at the stops on either side."""
        for place in (self.beats.after(self.place), self.beats.before(self.place)):
            event = self.timeline.events[place] if place is not None and place >= 0 else None
            request = getattr(event, "request", None)
            if place is not None and request is not None:
                lookup = self.index.last_lookup(request, place)
                if lookup is not None:
                    self._finding(lookup)

    def _follow(self) -> None:
        """Let the rows of what can be found come after the moves."""
        (self._tree if self.timeline.kind == "radix" else self._chain).update(self._state.take_touched(), self.view)

    # Words

    def _finding(self, lookup: int) -> Finding:
        """What the lookup at that place found, and why no more."""
        return self.narration.finding(lookup)

    def _strategy(self) -> str:
        """The eviction strategy at this place, which a fork may have changed."""
        name = str(self.timeline.settings.get("strategy", "lru"))
        steps = self.timeline.completed_steps(self.place)
        for after, change in self.timeline.changes:
            settings = getattr(change, "settings", {})
            if after <= steps and "strategy" in settings:
                name = str(settings["strategy"])
        return name

    def _node_text(self, id: int) -> str:
        return self._tree.text(id, self.view)

    def _owner(self, id: int) -> tuple[str, int] | None:
        """Whose tokens a node holds, and with which of them it begins."""
        request = self.index.owner(id, self.place)
        start = 0
        parent = self.view.nodes[id].parent
        while parent:
            start += len(self.view.nodes[parent].tokens)
            parent = self.view.nodes[parent].parent
        return None if request is None else (request, start)

    def _prompt_text(self, request: str) -> str:
        event = self.timeline.events[self.index.requests[request].arrival]
        tokens: Sequence[int] = getattr(event, "tokens", ())
        return self.texts.of(request, tokens, len(tokens)).whole()


def _name(timeline: Timeline) -> str:
    scenario, settings = timeline.scenario, timeline.settings
    return scenario.name if scenario else str(settings.get("scenario") or settings.get("title") or "run")
