"""What any lookup of a run found, and why no more: asked at any time, in any order.

    a request    arrives . . . admitted . . . . preempted . . . . finished
    its changes     |             |      |  |      |                 |        places, with its lengths after each
    as of                                     ^ a place: the last change before it

The run is read once. Of each request it is kept how long it was and how much of it was computed after each of its
events, of each digest when it could be found; so the history is put together as it was at a lookup, which then finds
the reason there.
"""
# ruff: noqa: N802 - a handler carries the name of its event type

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from minicache.core import events as ev
from minicache.core.history import History, Known
from minicache.core.losses import Loss
from minicache.core.request import Namespace
from minicache.core.views import EngineView
from minicache.sim.finding import Finding, find
from minicache.sim.loss_log import LossesAt, LossLog
from minicache.sim.timeline import Timeline

MAX_LOSSES = 256_000  # as many as a `History` remembers
KEPT = 4096  # findings
WAITING, RUNNING, OVER = range(3)


def _numbers() -> "array[int]":
    return array("q")


@dataclass(slots=True, eq=False)
class _Life:
    """A request from an arrival on. After the change at `places[i]` it had `lengths[i]` tokens, of which `computed[i]`
    had their KV; it was admitted last at `admitted[i]`, -1 is never."""

    id: str
    namespace: Namespace
    tokens: "array[int]"  # all that it ever has
    places: "array[int]" = field(default_factory=_numbers)
    lengths: "array[int]" = field(default_factory=_numbers)
    computed: "array[int]" = field(default_factory=_numbers)
    admitted: "array[int]" = field(default_factory=_numbers)
    states: bytearray = field(default_factory=bytearray)
    over: float = inf  # since its last change at this place it is over, for good
    _last: Known | None = None  # after the last change

    def change(self, place: int, state: int | None = None, computed: int | None = None, admitted: bool = False) -> None:
        """Note how it is after the event at `place`; None leaves it as it is."""
        self.places.append(place)
        self.lengths.append(len(self.tokens))
        self.computed.append(self.computed[-1] if computed is None else computed)
        self.admitted.append(place if admitted else self.admitted[-1])
        self.states.append(self.states[-1] if state is None else state)
        self.over = place if self.states[-1] == OVER else inf
        self._last = None

    def known(self, at: int) -> Known:
        """What a history knows after change `at`; -1 is the last."""
        if at == -1 and self._last is not None:
            return self._last
        length = self.lengths[at]
        tokens = self.tokens if length == len(self.tokens) else self.tokens[:length]
        known = Known(tokens, self.namespace, self.computed[at], self.states[at] != OVER, self.admitted[at] >= 0)
        if at == -1:
            self._last = known
        return known


class _Reader(History):
    """A history without its requests. `changes` says of each digest where it became findable, lost,
    findable again, …; `firsts` of each place where blocks were published which of its blocks the first of them is."""

    def __init__(self, losses: LossLog) -> None:
        super().__init__(losses=losses)
        self.log = losses
        self.changes: dict[bytes, array[int]] = {}
        self.firsts: dict[int, int] = {}

    def on_BlocksPublished(self, event: ev.BlocksPublished, view: EngineView) -> None:
        super().on_BlocksPublished(event, view)
        self.firsts[self.log.place] = view.tables[event.request].index(event.blocks[0])
        for block in event.blocks:
            places = self.changes.setdefault(self.digests[block], array("q"))
            if len(places) % 2 == 0:
                places.append(self.log.place)

    def on_PoolReplaced(self, event: ev.PoolReplaced, view: EngineView) -> None:
        super().on_PoolReplaced(event, view)
        for places in self.changes.values():  # nothing of the old pool can be found
            if len(places) % 2:
                places.append(self.log.place)

    def _lose(self, blocks: tuple[int, ...], loss: Loss) -> None:
        digests = [self.digests[block] for block in blocks]
        super()._lose(blocks, loss)
        for digest in digests:
            if digest not in self._findable and len(self.changes[digest]) % 2:
                self.changes[digest].append(self.log.place)


class _HistoryAt(History):
    """A history as it was at a place, of which only a lookup can be asked."""

    def __init__(self, reader: _Reader, place: int) -> None:
        super().__init__(losses=LossesAt(reader.log, place))
        self._findable = _FindableAt(reader.changes, place)


class _FindableAt(Counter[bytes]):
    """The digests that could be found at a place."""

    def __init__(self, changes: "dict[bytes, array[int]]", place: int) -> None:
        super().__init__()
        self.changes, self.place = changes, place

    def __contains__(self, digest: object) -> bool:
        places = self.changes.get(digest)  # type: ignore[call-overload]
        return places is not None and bisect_right(places, self.place) % 2 == 1


class Lookups:
    """The lookups of a timeline, which may grow: `update` reads what is new."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.radix_from: int | None = None  # since this place it can be told that the cache is a tree
        self._lives: list[_Life] = []  # in the order of arrival
        self._arrivals = array("q")  # their places
        self._latest: dict[str, _Life] = {}
        self._view = EngineView(timeline.settings["num_blocks"], timeline.settings["block_size"])  # of blocks alone
        self._reader = _Reader(LossLog(MAX_LOSSES))
        self._sizes = [(-1, self._view.block_size)]  # since which place blocks are of that size
        self.num_read = 0
        self._kept: dict[int, Finding] = {}

    def update(self) -> None:
        events = self.timeline.events
        for place in range(self.num_read, len(events)):
            self._reader.log.place = place
            event = events[place]
            note = _HANDLERS.get(type(event))
            if note is not None:
                note(self, place, event)
            if type(event) in _OF_BLOCKS:
                self._view.apply(event)
                self._reader.on(event, self._view)
        self.num_read = len(events)

    # Reading

    def on_PoolReplaced(self, place: int, event: ev.PoolReplaced) -> None:
        self._sizes.append((place, event.block_size))
        for life in self._latest.values():
            if life.computed[-1]:
                life.change(place, computed=0)

    def on_RequestArrived(self, place: int, event: ev.RequestArrived) -> None:
        life = _Life(event.request, event.namespace, array("Q", event.tokens))
        life.places.append(place)
        life.lengths.append(len(event.tokens))
        life.computed.append(0)
        life.admitted.append(-1)
        life.states.append(WAITING)
        self._lives.append(life)
        self._arrivals.append(place)
        self._latest[event.request] = life

    def on_TokensSampled(self, place: int, event: ev.TokensSampled) -> None:
        life = self._latest[event.request]
        life.tokens.extend(event.tokens)
        life.change(place)

    def on_RequestAdmitted(self, place: int, event: ev.RequestAdmitted) -> None:
        self._latest[event.request].change(place, RUNNING, event.num_cached_tokens, admitted=True)

    def on_TokensComputed(self, place: int, event: ev.TokensComputed) -> None:
        self._latest[event.request].change(place, computed=event.start + event.num_tokens)

    def on_RequestPreempted(self, place: int, event: ev.RequestPreempted) -> None:
        self._latest[event.request].change(place, WAITING, 0)

    def on_RequestFinished(self, place: int, event: ev.RequestFinished | ev.RequestAborted) -> None:
        self._latest[event.request].change(place, OVER)

    def on_PrefixMatched(self, place: int, event: ev.PrefixMatched) -> None:
        if self.radix_from is None and event.tick > 0:
            self.radix_from = place

    # Asking

    def finding(self, place: int) -> Finding:
        """What the lookup at `place` found, and why no more."""
        found = self._kept.get(place)
        if found is None:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            found = self._kept[place] = self._find(place)
        return found

    def _find(self, place: int) -> Finding:
        event = self.timeline.events[place]
        assert isinstance(event, ev.PrefixMatched)
        history = _HistoryAt(self._reader, place)
        size = next(size for since, size in reversed(self._sizes) if since <= place)
        waiting, running = set(), []
        for life in self._known(place, event.request):
            if life.over <= place:  # most are
                history.known[life.id] = life.known(-1)
                continue
            at = -1 if life.places[-1] <= place else bisect_right(life.places, place) - 1
            history.known[life.id] = life.known(at)
            state = life.states[at]
            if state == WAITING:
                waiting.add(life.id)
            elif state == RUNNING:
                running.append((life.admitted[at], life.id))
        history.on(event, EngineView(1, size))
        return find(event.request, history, waiting, [id for _, id in sorted(running)])

    def _known(self, place: int, request: str) -> list[_Life]:
        """The requests that a history remembers at `place`, and the one that looks up last if it has forgotten it."""
        end, most = bisect_right(self._arrivals, place), self._reader.max_requests
        known = self._lives[max(0, end - most) : end]
        ids = {life.id for life in known}
        if len(ids) < len(known):  # an id came again: its latest life counts, and there is room for others
            latest: dict[str, _Life] = {}
            for life in reversed(self._lives[:end]):
                if len(latest) < most:
                    latest.setdefault(life.id, life)
            known, ids = list(reversed(latest.values())), set(latest)
        if request not in ids:
            known.append(next(life for life in reversed(self._lives[:end]) if life.id == request))
        return known

    def first_published(self, place: int) -> int:
        """Which of its publisher's blocks the first one is that the event at `place` published."""
        return self._reader.firsts[place]


_HANDLERS: dict[type[ev.Event], Callable[[Lookups, int, Any], None]] = {
    ev.RequestArrived: Lookups.on_RequestArrived,
    ev.TokensSampled: Lookups.on_TokensSampled,
    ev.RequestAdmitted: Lookups.on_RequestAdmitted,
    ev.TokensComputed: Lookups.on_TokensComputed,
    ev.RequestPreempted: Lookups.on_RequestPreempted,
    ev.RequestFinished: Lookups.on_RequestFinished,
    ev.RequestAborted: Lookups.on_RequestFinished,
    ev.PrefixMatched: Lookups.on_PrefixMatched,
    ev.PoolReplaced: Lookups.on_PoolReplaced,
}
_OF_BLOCKS = {
    ev.BlocksAdopted,
    ev.BlocksAllocated,
    ev.BlocksReleased,
    ev.BlocksPublished,
    ev.BlocksUnpublished,
    ev.BlocksEvicted,
    ev.CacheReset,
    ev.PoolReplaced,
    ev.NodeSplit,
    ev.DuplicatesFreed,
    ev.BlockTableRewritten,
    ev.NodesEvicted,
}
