"""What is asked of a whole run again and again, gathered in one reading that goes on when the run grows."""
# ruff: noqa: N802 - a handler carries the name of its event type

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from minicache.core import events as ev
from minicache.core.events import Event
from minicache.sim.timeline import Timeline


@dataclass(slots=True)
class Marks:
    """Places in the life of a request."""

    arrival: int
    lookups: "array[int]" = field(default_factory=lambda: array("q"))
    admissions: "array[int]" = field(default_factory=lambda: array("q"))
    preemptions: "array[int]" = field(default_factory=lambda: array("q"))
    computed: "array[int]" = field(default_factory=lambda: array("q"))  # where tokens of it were computed
    totals: "array[int]" = field(default_factory=lambda: array("q"))  # how many by then, again and again included


@dataclass(frozen=True, slots=True)
class Published:
    """The first time that a hash was published: at `place`, as block `index` of those there, behind `parent`, which
    makes it block `number` of a prompt."""

    place: int
    index: int
    parent: bytes | None
    number: int


class RunIndex:
    """Requests, hashes, and figures at the end of each step."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.requests: dict[str, Marks] = {}
        self.outputs: dict[str, list[int]] = {}  # the tokens that each request generates in all
        self.rejections: list[tuple[int, str]] = []
        self.hashes: dict[bytes, Published] = {}
        self._owners: dict[int, list[tuple[int, str]]] = {}  # radix node -> since which place it is whose tokens
        self.ends = array("q")  # places of StepFinished; the lists that follow say how it was there
        self.used = array("q")  # blocks in use
        self.waiting = array("q")  # requests
        self.computed = array("q")  # tokens, in that step
        self.hit_rates = array("d")  # of tokens; 0 before the first admission
        self._num_read = 0
        self._tables: dict[str, list[int]] = {}
        self._holders: dict[int, int] = {}
        self._waiting: set[str] = set()
        self.update()

    def update(self) -> None:
        """Read the events that are new."""
        events = self.timeline.events
        for place in range(self._num_read, len(events)):
            event = events[place]
            handler: Callable[[RunIndex, int, Any], None] | None = _HANDLERS.get(type(event))
            if handler is not None:
                handler(self, place, event)
        self._num_read = len(events)

    # Asking

    def last_lookup(self, request: str, place: int) -> int | None:
        """The lookup whose result stands at `place`: the last one, unless the request was preempted since."""
        marks = self.requests.get(request)
        return _last_unless(marks.lookups, marks.preemptions, place) if marks else None

    def last_admission(self, request: str, place: int) -> int | None:
        """The admission by which the request runs at `place`, or ran to its end."""
        marks = self.requests.get(request)
        return _last_unless(marks.admissions, marks.preemptions, place) if marks else None

    def num_computed(self, request: str, place: int) -> int:
        """How many tokens were computed for a request up to `place`, those that it lost again included."""
        marks = self.requests.get(request)
        count = bisect_right(marks.computed, place) if marks else 0
        return marks.totals[count - 1] if marks and count else 0

    def owner(self, node: int, place: int) -> str | None:
        """The request that published the tokens of a radix node."""
        owners = self._owners.get(node, [])
        return next((request for since, request in reversed(owners) if since <= place), None)

    def steps_until(self, place: int) -> int:
        """How many steps are over at `place`."""
        return bisect_right(self.ends, place)

    # Reading

    def on_RequestArrived(self, place: int, event: ev.RequestArrived) -> None:
        self.requests[event.request] = Marks(place)
        self._waiting.add(event.request)

    def on_RequestRejected(self, place: int, event: ev.RequestRejected) -> None:
        self.rejections.append((place, event.request))

    def on_PrefixMatched(self, place: int, event: ev.PrefixMatched) -> None:
        if event.request in self.requests:
            self.requests[event.request].lookups.append(place)

    def on_RequestAdmitted(self, place: int, event: ev.RequestAdmitted) -> None:
        self.requests[event.request].admissions.append(place)
        self._waiting.discard(event.request)

    def on_RequestPreempted(self, place: int, event: ev.RequestPreempted) -> None:
        self.requests[event.request].preemptions.append(place)
        self._waiting.add(event.request)

    def on_RequestAborted(self, place: int, event: ev.RequestAborted) -> None:
        self._waiting.discard(event.request)

    def on_TokensComputed(self, place: int, event: ev.TokensComputed) -> None:
        if marks := self.requests.get(event.request):
            marks.computed.append(place)
            marks.totals.append((marks.totals[-1] if marks.totals else 0) + event.num_tokens)

    def on_TokensSampled(self, place: int, event: ev.TokensSampled) -> None:
        self.outputs.setdefault(event.request, []).extend(event.tokens)

    def on_StepFinished(self, place: int, event: ev.StepFinished) -> None:
        self.ends.append(place)
        self.used.append(len(self._holders))
        self.waiting.append(len(self._waiting))
        self.computed.append(event.num_tokens)
        self.hit_rates.append(self.timeline.hit_rate(place) or 0.0)

    def on_BlocksAllocated(self, place: int, event: ev.BlocksAllocated | ev.BlocksAdopted) -> None:
        self._tables.setdefault(event.request, []).extend(event.blocks)
        self._hold(event.blocks)

    def on_BlocksReleased(self, place: int, event: ev.BlocksReleased) -> None:
        self._tables.pop(event.request, None)
        self._let_go(event.blocks)

    def on_BlockTableRewritten(self, place: int, event: ev.BlockTableRewritten) -> None:
        table = self._tables[event.request]
        end = event.start + len(event.blocks)
        self._let_go(table[event.start : end])
        table[event.start : end] = event.blocks
        self._hold(event.blocks)

    def on_BlocksPublished(self, place: int, event: ev.BlocksPublished) -> None:
        parent = event.parent
        for index, hash in enumerate(event.hashes):
            if hash not in self.hashes:
                number = self.hashes[parent].number + 1 if parent is not None else 0
                self.hashes[hash] = Published(place, index, parent, number)
            parent = hash

        if event.node is not None:
            self._owners.setdefault(event.node, []).append((place, event.request))

    def on_NodeSplit(self, place: int, event: ev.NodeSplit) -> None:
        owner = self.owner(event.node, place)
        if owner is not None:
            self._owners.setdefault(event.upper, []).append((place, owner))

    def _hold(self, blocks: Iterable[int]) -> None:
        for block in blocks:
            self._holders[block] = self._holders.get(block, 0) + 1

    def _let_go(self, blocks: Iterable[int]) -> None:
        for block in blocks:
            if self._holders[block] == 1:
                del self._holders[block]
            else:
                self._holders[block] -= 1


def _last_unless(places: "array[int]", ends: "array[int]", place: int) -> int | None:
    """The last of `places`, unless one of `ends` came after it."""
    last, end = _last(places, place), _last(ends, place)
    return last if last is None or end is None or last > end else None


def _last(places: "array[int]", place: int) -> int | None:
    """The last of `places`, which ascend, that is not after `place`."""
    index = bisect_right(places, place)
    return places[index - 1] if index else None


_HANDLERS: dict[type[Event], Callable[[RunIndex, int, Any], None]] = {
    ev.RequestArrived: RunIndex.on_RequestArrived,
    ev.RequestRejected: RunIndex.on_RequestRejected,
    ev.PrefixMatched: RunIndex.on_PrefixMatched,
    ev.RequestAdmitted: RunIndex.on_RequestAdmitted,
    ev.RequestPreempted: RunIndex.on_RequestPreempted,
    ev.RequestAborted: RunIndex.on_RequestAborted,
    ev.TokensComputed: RunIndex.on_TokensComputed,
    ev.TokensSampled: RunIndex.on_TokensSampled,
    ev.StepFinished: RunIndex.on_StepFinished,
    ev.BlocksAllocated: RunIndex.on_BlocksAllocated,
    ev.BlocksAdopted: RunIndex.on_BlocksAllocated,
    ev.BlocksReleased: RunIndex.on_BlocksReleased,
    ev.BlockTableRewritten: RunIndex.on_BlockTableRewritten,
    ev.BlocksPublished: RunIndex.on_BlocksPublished,
    ev.NodeSplit: RunIndex.on_NodeSplit,
}
