"""Where the → key stops: the events at which a learner sees something happen. What passes in between is told with the
stop that follows.

    arrives → looks up → [evicts] → [adopts] → is admitted → is computed → … → gives its blocks back

* A lookup is a stop if it counts: if the request is admitted by it. Requests that wait are looked up again and again.
* That a request does not fit is a stop when the figures are new.
* Generating is told once: of steps in which nothing else happens only the first has a stop, its last token.
* What more than two requests do in a row, in one step, is one stop: arriving, being computed, giving blocks back.
* In a radix tree the tokens of a request are computed and become a node in one stop, and so it gives its blocks and its
  lock back.
"""

from array import array
from bisect import bisect_left, bisect_right
from enum import StrEnum

from minicache.core import events as ev
from minicache.core.events import Event
from minicache.sim.timeline import Timeline

ALWAYS = (
    ev.RequestRejected,
    ev.RequestAborted,
    ev.QueueReordered,
    ev.RequestAdmitted,
    ev.RequestPreempted,
    ev.BlocksAdopted,
    ev.BlocksEvicted,
    ev.BlocksUnpublished,
    ev.NodesEvicted,
    ev.NodeSplit,
    ev.CacheReset,
    ev.PoolReplaced,
    ev.PoolShrunk,
    ev.DuplicatesFreed,
)
CONFIRMS = (  # by any of these the request's lookup turns out to count
    ev.LockMoved,
    ev.BlocksEvicted,
    ev.NodesEvicted,
    ev.BlocksAdopted,
    ev.BlocksAllocated,
    ev.RequestAdmitted,
)
ROUTINE = (  # left out of a long account
    ev.StepStarted,
    ev.StepFinished,
    ev.TokensSampled,
    ev.TokensComputed,
    ev.PrefixMatched,
    ev.AdmissionFailed,
    ev.PathInserted,
    ev.LockMoved,
    ev.BlockTableRewritten,
)
TOLD = 8  # so many events of a beat are told; of a longer one, what is routine is left out
ALIKE = 2  # more than so many stops alike in a row are one


class Run(StrEnum):
    """What a player can run to: a lookup that counts and found something; one that counts and ended because something
    was missing (it may have found a part before); an eviction; a preemption."""

    HIT = "hit"
    MISS = "miss"
    EVICT = "evict"
    PREEMPT = "preempt"


class Beats:
    """The stops of a timeline, which may grow: `update` reads what is new."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.stops = array("q")
        self.targets: dict[Run, array[int]] = {run: array("q") for run in Run}
        self.num_read = 0
        self._pending: dict[str, int] = {}  # request -> its lookup, of which it is not known yet whether it counts
        self._shortage: dict[str, tuple[int, int]] = {}  # request -> the figures by which it did not fit last
        self._lengths: dict[str, int] = {}  # of prompts
        self._deferred: tuple[int, ev.TokensComputed | ev.BlocksReleased] | None = None  # the next event may join it
        self._row = ("", -1, 0)  # kind and step of the stops alike, and how many there were in a row
        self._first = 0  # number of stops at the beginning of this step
        self._said: int | None = None  # the last token that was generated in this step
        self._quiet = False  # whether nothing but generating happened in the last step
        self.update()

    def update(self) -> None:
        """Read the events that are new."""
        events = self.timeline.events
        while self.num_read < len(events):
            self._take(self.num_read, events[self.num_read])
            self.num_read += 1

    # Moving

    def after(self, place: int) -> int | None:
        """The next stop; behind the last one the end of the run. None at the end."""
        index = bisect_right(self.stops, place)
        if index < len(self.stops):
            return self.stops[index]
        last = len(self.timeline) - 1
        return last if place < last else None

    def before(self, place: int) -> int:
        """The stop before; -1, before everything, if there is none."""
        index = bisect_left(self.stops, place)
        return self.stops[index - 1] if index else -1

    def beat(self, place: int) -> range:
        """The events since the last stop before `place`, up to `place`."""
        return range(self.before(place) + 1, place + 1)

    def told(self, place: int) -> list[int]:
        """The events to tell at `place`: those of the beat, without the routine if there are many. `place` is last."""
        beat = self.beat(place)
        if len(beat) <= TOLD:
            return list(beat)
        events = self.timeline.events
        news = [passed for passed in beat[:-1] if not isinstance(events[passed], ROUTINE)]
        return [*news[1 - TOLD :], place]

    def next_target(self, run: Run, place: int) -> int | None:
        """The first place after `place` that one runs to."""
        targets = self.targets[run]
        index = bisect_right(targets, place)
        return targets[index] if index < len(targets) else None

    def previous_target(self, run: Run, place: int) -> int | None:
        """The last place before `place` that one runs to."""
        targets = self.targets[run]
        index = bisect_left(targets, place)
        return targets[index - 1] if index else None

    # Reading

    def _stop(self, place: int, alike: str = "", step: int = -1) -> None:
        kind, in_step, count = self._row
        count = count + 1 if alike and (kind, in_step) == (alike, step) else 1
        if count > ALIKE:
            for _ in range(ALIKE if count == ALIKE + 1 else 1):
                self.stops.pop()
        self._row = alike, step, count
        self.stops.append(place)

    def _take(self, place: int, event: Event) -> None:
        if self._deferred is not None:
            place_before, earlier = self._deferred
            self._deferred = None
            alike = "computed" if isinstance(earlier, ev.TokensComputed) else "released"
            self._stop(place if _joins(event, earlier) else place_before, alike, earlier.step)
        if isinstance(event, CONFIRMS) and event.request in self._pending:
            self._count(self._pending.pop(event.request))
        if isinstance(event, ALWAYS):
            self._stop(place)
        match event:
            case ev.StepStarted():
                self._first, self._said = len(self.stops), None
                self._pending.clear()
            case ev.StepFinished():
                quiet = len(self.stops) == self._first
                if quiet and not self._quiet:
                    self._stop(place if self._said is None else self._said)
                self._quiet = quiet
            case ev.RequestArrived():
                self._lengths[event.request] = len(event.tokens)
                self._stop(place, "arrived", event.step)
            case ev.PrefixMatched():
                self._pending[event.request] = place
            case ev.AdmissionFailed():
                self._pending.pop(event.request, None)
                if self._shortage.get(event.request) != (event.needed, event.free):
                    self._shortage[event.request] = event.needed, event.free
                    self._stop(place)
            case ev.TokensComputed() if event.num_tokens > 1 or event.start < self._lengths[event.request]:
                self._deferred = place, event
            case ev.TokensSampled():
                self._said = place
            case ev.BlocksReleased():
                self._deferred = place, event
            case ev.BlocksEvicted() | ev.NodesEvicted():
                self.targets[Run.EVICT].append(place)
            case ev.RequestPreempted():
                self.targets[Run.PREEMPT].append(place)

    def _count(self, lookup: int) -> None:
        """The lookup is one that counts."""
        event = self.timeline.events[lookup]
        assert isinstance(event, ev.PrefixMatched)
        later = [self.stops.pop() for _ in range(len(self.stops) - bisect_right(self.stops, lookup))]
        self._stop(lookup)
        self.stops.extend(reversed(later))
        if event.num_tokens:
            self.targets[Run.HIT].append(lookup)
        if event.end == "no_entry":
            self.targets[Run.MISS].append(lookup)


def _joins(event: Event, earlier: ev.TokensComputed | ev.BlocksReleased) -> bool:
    """Whether the two are one stop."""
    if isinstance(earlier, ev.TokensComputed):
        joins = isinstance(event, ev.BlocksPublished) and event.node is not None
    else:
        joins = isinstance(event, ev.LockMoved) and event.node is None
    return joins and getattr(event, "request", None) == earlier.request
