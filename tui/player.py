"""A player: a position in a timeline and everything that follows from it. No Textual, no threads, no clock.

    → step       to the next stop (`beats.py`)         place 12        17
    ← back       to the stop before                    ──────●─────────●──────
                                                              the beat: 13 … 17

What is shown is a function of the place and of what is selected: however a place was reached, it looks the same.
"""

from collections.abc import Iterator, Sequence

from minicache.sim.explainer import Account, Explained
from minicache.sim.fork import Change
from minicache.sim.narrator import Narrator
from minicache.sim.timeline import Timeline

from .about import About
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
from .model.strip import StripMap
from .model.token_text import Decoder
from .model.tree import Tree
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


class Player(About):
    """A position in a timeline, which may grow (call `refresh` then). Moves return whether the position changed."""

    def __init__(self, timeline: Timeline, *, decode: Decoder | None = None, parent: "Player | None" = None) -> None:
        super().__init__(timeline, decode, parent)
        self.texts = Texts(timeline, self.index, decode)
        if parent is not None:
            self.breakpoints, self.speed = list(parent.breakpoints), parent.speed
        self._strip = StripMap(timeline)
        self._requests = Requests(self.index)
        self._chain = Chain(timeline, self.index, self.texts)
        self._tree = Tree(self.texts, self._owner)
        self._queue = QueueBelt(self._chain.text)
        self.narrator = Narrator(timeline)

    # What is shown

    def requests(self) -> list[RequestRow]:
        return self._requests.rows(self.view, self.place)

    def ribbon(self, request: str | None = None) -> RibbonModel | None:
        """The tokens of a request, of the one in focus if none is named."""
        request = request or self.focus_request
        if request is None:
            return None
        return ribbon_of(request, self.place, self.view, self.index, self.texts, self.timeline.findings.at)

    def belt(self) -> Iterator[BeltItem]:
        """What will be handed out next, front first; valid until the player moves. Empty blocks go before a tree's
        leaves."""
        yield from self._queue.items(self.view, self._state.lru)
        if self.timeline.kind == "radix":
            self._follow()
            yield from belt_of_tree(self._tree, self.view, self.strategy())

    def chain(self) -> ChainModel:
        self._follow()
        return self._chain.model(self.beat, self.view, self.cells, self.chosen_blocks(), self.found_by(self.place))

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
        told, narrator = self.beats.told(self.place), self.narrator
        for place, view in self._state.look_back(place for place in told if not narrator.is_kept(place)):
            narrator.line(place, view)
        return accounts(narrator, told)

    def explain(self) -> Explained:
        """Whatever is selected, else the current event; raises `UnknownThing` if it is not there at this place."""
        return explain_selection(self.selection, self.place, self.view, self.narrator, self.index, self._node_text)

    def find(self, text: str) -> list[Found]:
        return find(text, self.view, self.index, self.timeline, self._prompt_text)

    def block_text(self, block: int) -> str:
        """What the tokens in a block say; nothing if it holds none that anybody knows of."""
        view, size = self.view, self.view.block_size
        if block in view.hashes:
            return self._chain.text(view.hashes[block])
        for request, table in view.tables.items():
            if block in table and (known := view.requests.get(request) or view.ended.get(request)):
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
        return branch

    def refresh(self) -> bool:
        """Take in events that the timeline got meanwhile; returns whether there are any."""
        before = self.beats.num_read
        self.beats.update()
        if self.beats.num_read == before:
            return False
        self.version += 1
        return True

    def prepare(self) -> None:
        """Read the names of the prompts' parts now, while nobody waits: the first sentence about a token needs them."""
        self.timeline.token_words.prepare()

    def _follow(self) -> None:
        """Let the rows of what can be found come after the moves."""
        (self._tree if self.timeline.kind == "radix" else self._chain).update(self._state.take_touched(), self.view)

    # Words

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
        event = self.timeline.events[self.index.requests[request].arrived]
        tokens: Sequence[int] = getattr(event, "tokens", ())
        return self.texts.of(request, tokens, len(tokens)).whole()
