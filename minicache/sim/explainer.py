"""Explanations on demand: of a request, of a block, of an event, at any place of a timeline.

Each is a list of whole sentences: what happened, by which rule, what would have made it different, and which function
of `minicache.core` decided. The sentences about events are the transcript's.
"""

from dataclasses import dataclass
from typing import Any

from minicache.core import events as ev
from minicache.core.events import Event
from minicache.sim.errors import UnknownThing
from minicache.sim.narration import Narration
from minicache.sim.narrator import Narrator
from minicache.sim.phrases import listed, plural, short_hash
from minicache.sim.rules import Rule
from minicache.sim.simulator import TAKEN_AWAY
from minicache.sim.timeline import Timeline
from minicache.sim.toml_table import suggestion
from minicache.sim.transcript import Line, new_narrator

ABOUT_BLOCKS = ("blocks", "freed")
TURNING_POINTS = (
    ev.RequestArrived,
    ev.RequestRejected,
    ev.RequestAdmitted,
    ev.RequestPreempted,
    ev.RequestFinished,
    ev.RequestAborted,
    ev.DuplicatesFreed,
    ev.BlocksUnpublished,
)


@dataclass(frozen=True, slots=True)
class Account:
    """One event explained."""

    place: int
    step: int
    sentence: str
    rule: Rule

    def __str__(self) -> str:
        rule = self.rule
        return f"{self.sentence} The rule: {rule.name}. {rule.otherwise} ({rule.decided_by})"

    def to_json(self) -> dict[str, Any]:
        return {
            "event": self.place,
            "step": self.step,
            "sentence": self.sentence,
            "rule": self.rule.name,
            "otherwise": self.rule.otherwise,
            "decided_by": self.rule.decided_by,
        }


@dataclass(frozen=True, slots=True)
class Explained:
    """`summary` says how things stand; `accounts` tell how it came to that, in order."""

    subject: str
    summary: str
    accounts: list[Account]

    def lines(self) -> list[str]:
        return [self.summary, *(f"Event {a.place}, step {a.step}: {a}" for a in self.accounts)]

    def to_json(self) -> dict[str, Any]:
        accounts = [account.to_json() for account in self.accounts]
        return {"subject": self.subject, "summary": self.summary, "accounts": accounts}


def explain_event(timeline: Timeline, place: int, narration: Narration | None = None) -> Explained:
    """The event at `place`; raises `UnknownThing`. A `narration` of the timeline that is there already saves time."""
    timeline.require(place)
    line = (narration or Narration(timeline)).at(place)
    return Explained(f"event {place}", f"{type(line.event).__name__}, in step {line.event.step}.", [_account(line)])


def _account(line: Line) -> Account:
    return Account(line.place, line.event.step, line.words, line.rule)


def explain_request(
    timeline: Timeline, request: str, last: int | None = None, narration: Narration | None = None
) -> Explained:
    """What became of a request up to place `last` and why its lookups found what they found; raises `UnknownThing`."""
    ids = dict.fromkeys(id for event in timeline.events if (id := getattr(event, "request", None)) is not None)
    ids.pop(TAKEN_AWAY, None)
    if request not in ids:
        raise UnknownThing(f"this run has no request {request!r}{suggestion(request, ids) or ': it has ' + _few(ids)}")
    narration = narration or Narration(timeline)
    accounts = [_account(line) for line in narration.lines(_turning_points(timeline, request, last))]
    return Explained(f"request {request}", _state_of_request(_narrator_at(narration, last), request), accounts)


def _turning_points(timeline: Timeline, request: str, last: int | None) -> list[int]:
    """Of many lookups while it waits, the one that counted is told: the last before it is admitted."""
    places: list[int] = []
    lookup: int | None = None
    shortage: tuple[int, int] | None = None
    for place, event in enumerate(timeline.events if last is None else timeline.events[: last + 1]):
        if getattr(event, "request", None) != request:
            continue
        if isinstance(event, ev.PrefixMatched):
            lookup = place
        elif isinstance(event, ev.AdmissionFailed):  # of many in a row, those are told that were short of other figures
            if (event.needed, event.free) != shortage:
                places.append(place)
            shortage = event.needed, event.free
        elif isinstance(event, TURNING_POINTS):
            if isinstance(event, ev.RequestAdmitted) and lookup is not None:
                places.append(lookup)
                lookup, shortage = None, None
            places.append(place)
    return places if lookup is None else [*places, lookup]


def _narrator_at(narration: Narration, last: int | None) -> Narrator:
    """What is known after place `last`; before the first event that is nothing."""
    place = len(narration.timeline) - 1 if last is None else last
    return narration.at(place).narrator if place >= 0 else new_narrator(narration.timeline)


def _few(ids: dict[str, None]) -> str:
    names = list(ids)
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _state_of_request(narrator: Narrator, id: str) -> str:
    view = narrator.requests.get(id) or narrator.ended.get(id)
    if view is None:
        return f"{id} has not arrived, or was refused."
    said = len(view.tokens) - view.num_prompt_tokens
    found = "has not been admitted" if view.num_cached_tokens is None else f"hit {view.num_cached_tokens:,} of them"
    times = {0: "was never preempted", 1: "was preempted once"}.get(
        view.num_preemptions, f"was preempted {view.num_preemptions} times"
    )
    blocks = len(narrator.tables.get(id, ()))
    holds = f" and holds {plural(blocks, 'block')}" if blocks else ""
    return (
        f"{id} is {view.status}{holds}: it asked with {plural(view.num_prompt_tokens, 'token')}, {found}, "
        f"{times} and has generated {said} of {view.max_tokens}."
    )


def explain_block(
    timeline: Timeline, block: int, last: int | None = None, narration: Narration | None = None
) -> Explained:
    """How a block stands at place `last` and all that happened to it until then; raises `UnknownThing`."""
    narration = narration or Narration(timeline)
    num_blocks = _narrator_at(narration, last).num_blocks
    if not 0 <= block < num_blocks:
        raise UnknownThing(f"there is no block {block}: this pool has blocks 0 to {num_blocks - 1}")
    end = len(timeline) if last is None else last + 1
    start = max((place for place in timeline.rebases if place < end), default=0)  # since then it is this pool
    places = [place for place in range(start, end) if _concerns(timeline.events[place], block)]
    accounts = [_account(line) for line in narration.lines(places)]
    return Explained(f"block {block}", _state_of_block(_narrator_at(narration, last), block), accounts)


def _concerns(event: Event, block: int) -> bool:
    return any(block in getattr(event, name, ()) for name in ABOUT_BLOCKS)


def _state_of_block(narrator: Narrator, block: int) -> str:
    if block == 0:
        return "Block 0 is the null block: it pads block tables, and is never handed out, published or evicted."
    owners = narrator.owners(block)
    content = _content(narrator, block)
    if owners:
        return f"Block {block} is held by {listed(owners)} and {content}."
    queue = list(narrator.free)
    if block in queue:
        place = queue.index(block)
        order = (
            "the next to be handed out" if place == 0 else f"number {place + 1:,} of {len(queue):,} in the free queue"
        )
        return f"Block {block} is free and {content}: it is {order}."
    node = narrator.node_of(block)
    return (
        f"Block {block} is in node {node} of the tree, used by nobody, and {content}: it goes when the node is evicted."
    )


def _content(narrator: Narrator, block: int) -> str:
    published = narrator.published.get(block)
    if published is None:
        return "holds nothing that can be found"
    request, index = published
    size = narrator.block_size
    known = narrator.history.known.get(request)
    tokens = known.tokens[index * size : (index + 1) * size] if known else ()
    hash = narrator.hashes.get(block)
    under = f" under hash {short_hash(hash)}…" if hash else ""
    start, end = index * size, (index + 1) * size - 1
    which = f"token {start:,}" if start == end else f"tokens {start:,} to {end:,}"
    return f"can be found{under} with {which} of {request}, {narrator.token_words.run(tokens)}"
