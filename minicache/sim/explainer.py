"""Explanations on demand: of a request, a block or an event, at any place of a timeline.

Each is a list of whole sentences: what happened, by which rule, what would have made it different, and which function
of `minicache.core` decided. The sentences about events are the narrator's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from minicache.common.suggest import suggestion
from minicache.core import events as ev
from minicache.core.views import EngineView
from minicache.sim.errors import UnknownThing
from minicache.sim.narrator import Line, Narrator
from minicache.sim.phrases import listed, plural, short_hash
from minicache.sim.rules import Rule
from minicache.sim.scene import Scene
from minicache.sim.timeline import Timeline

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

    @classmethod
    def of(cls, line: Line) -> "Account":
        return cls(line.place, line.event.step, line.words, line.rule)

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
    """`summary` is the state of the subject; `accounts` explain the events that led to it, in order."""

    subject: str
    summary: str
    accounts: list[Account]

    def lines(self) -> list[str]:
        return [self.summary, *(f"Event {a.place}, step {a.step}: {a}" for a in self.accounts)]

    def to_json(self) -> dict[str, Any]:
        accounts = [account.to_json() for account in self.accounts]
        return {"subject": self.subject, "summary": self.summary, "accounts": accounts}


def explain_event(timeline: Timeline, place: int, narrator: Narrator | None = None) -> Explained:
    """The event at `place`; raises `UnknownThing`. A `narrator` of the timeline that exists already saves time."""
    line = (narrator or Narrator(timeline)).line(place)
    return Explained(f"event {place}", f"{type(line.event).__name__}, in step {line.event.step}.", [Account.of(line)])


def explain_request(
    timeline: Timeline,
    request: str,
    last: int | None = None,
    narrator: Narrator | None = None,
    view: EngineView | None = None,
) -> Explained:
    """What became of a request up to place `last`, and why its lookups found what they found; raises `UnknownThing`. A
    `view` of the state at `last` saves time."""
    narrator = narrator or Narrator(timeline)
    ids = timeline.index.ids
    if request not in ids:
        raise UnknownThing(no_request(request, ids))
    last = len(timeline) - 1 if last is None else last
    points = _turning_points(timeline, timeline.index.of_request(request, last))
    accounts = list(map(Account.of, narrator.lines(points)))
    return Explained(f"request {request}", _state_of_request(view or narrator.view(last), request), accounts)


def _turning_points(timeline: Timeline, all_places: Iterable[int]) -> list[int]:
    """Of many lookups while the request waits, only the last before its admission is described: that one counted."""
    places: list[int] = []
    lookup: int | None = None
    shortage: tuple[int, int] | None = None
    for place in all_places:
        event = timeline.events[place]
        if isinstance(event, ev.PrefixMatched):
            lookup = place
        elif isinstance(event, ev.AdmissionFailed):  # of many in a row, those with figures of their own
            if (event.needed, event.free) != shortage:
                places.append(place)
            shortage = event.needed, event.free
        elif isinstance(event, TURNING_POINTS):
            if isinstance(event, ev.RequestAdmitted) and lookup is not None:
                places.append(lookup)
                lookup, shortage = None, None
            places.append(place)
    return places if lookup is None else [*places, lookup]


def no_request(request: str, ids: list[str]) -> str:
    """That a run has no such request; then the one with the nearest name, or the first few that it has."""
    few = ", ".join(ids[:8]) + (", …" if len(ids) > 8 else "")
    return f"this run has no request {request!r}{suggestion(request, ids) or f': it has {few}'}"


def _state_of_request(view: EngineView, id: str) -> str:
    request = view.requests.get(id) or view.ended.get(id)
    if request is None:
        return f"{id} has not arrived, or was refused."
    generated = len(request.tokens) - request.num_prompt_tokens
    cached = request.num_cached_tokens
    found = "has not been admitted" if cached is None else f"hit {cached:,} of them"
    times = {0: "was never preempted", 1: "was preempted once"}.get(
        request.num_preemptions, f"was preempted {request.num_preemptions} times"
    )
    blocks = len(view.tables.get(id, ()))
    holds = f" and holds {plural(blocks, 'block')}" if blocks else ""
    return (
        f"{id} is {request.status}{holds}: its prompt has {plural(request.num_prompt_tokens, 'token')}, it {found}, "
        f"{times} and has generated {generated:,} of {plural(request.max_tokens, 'token')}."
    )


def explain_block(
    timeline: Timeline,
    block: int,
    last: int | None = None,
    narrator: Narrator | None = None,
    view: EngineView | None = None,
) -> Explained:
    """The state of a block at place `last` and everything that happened to it until then; raises `UnknownThing`. A
    `view` of the state at `last` saves time."""
    narrator = narrator or Narrator(timeline)
    last = len(timeline) - 1 if last is None else last
    num_blocks = (view or narrator.view(last)).num_blocks
    if not 0 <= block < num_blocks:
        raise UnknownThing(f"there is no block b{block}: this pool has b0 to b{num_blocks - 1}")
    start = timeline.previous(last + 1, "PoolReplaced") or 0  # since then it is this pool
    places = timeline.index.of_block(block, start, last)
    accounts = list(map(Account.of, narrator.lines(places)))
    scene = narrator.scene(last, view)
    published = next(
        (event for at in reversed(places) if isinstance(event := timeline.events[at], ev.BlocksPublished)), None
    )
    content = _content(scene, block, published) if published and scene.is_findable(block) else ""
    return Explained(f"block b{block}", _state_of_block(scene, block, content), accounts)


def _state_of_block(scene: Scene, block: int, content: str) -> str:
    """`content` is what a lookup finds in it; empty if no lookup can find it."""
    if block == 0:
        return (
            "Block b0 is the null block: it fills the empty places of block tables, and is never handed out, published "
            "or evicted."
        )
    if block in scene.view.removed:
        return f"Block b{block} was taken out of the pool: no request can get it."
    owners = scene.holders([block])
    if owners:
        return f"Block b{block} is in use by {listed(owners)}, and a lookup finds {content or 'nothing in it'}."
    how = "empty: a lookup finds nothing in it"
    if content:
        how = f"cached: no request uses it, but a lookup finds {content}"
    queue = list(scene.view.free)
    if block in queue:
        place = queue.index(block)
        number = f"number {place + 1:,} of {len(queue):,} in the free queue"
        return f"Block b{block} is {how}. It is {number if place else 'the next to be handed out'}."
    return f"Block b{block} is {how}. It is freed when node {scene.node_of(block)} of the tree is evicted."


def _content(scene: Scene, block: int, published: ev.BlocksPublished) -> str:
    """The tokens in it, which the event published."""
    size, number = scene.view.block_size, published.blocks.index(block)
    tokens = published.tokens[number * size : (number + 1) * size]
    hash = scene.view.hashes.get(block)
    under = f" under hash {short_hash(hash)}…" if hash else ""
    start = published.start + number * size
    which = f"token {start:,}" if size == 1 else f"tokens {start:,} to {start + size - 1:,}"
    return f"{which} of {published.request}, {scene.tokens.run(tokens)}, in it{under}"
