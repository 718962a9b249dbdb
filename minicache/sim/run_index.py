"""The index of a run, kept while it is recorded: where things happen, and the figures of it all.

    events   0 . . . L . A . . . . C . . . . P . . . . L . A . .
    request          |   |         |         |         |   |         its places: lookups, admissions, …
                                                  ^ "as of" a place is a bisection

It follows the recording's view, which knows tables, requests and queues; kept here is what a state does not know: the
places of events, sums, and figures at the end of each step.
"""
# ruff: noqa: N802 - a handler is named after its event type

import statistics
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from minicache.core import events as ev
from minicache.core.events import Event
from minicache.core.hit_rate import DEFINITIONS, LastPrefillHitRate, Lookup, RecentHitRate
from minicache.core.views import EngineView, Follower, RequestView
from minicache.sim.figures import LAST_PREFILL, RATES, RECENT, TOTALS

NOWHERE: "array[int]" = array("q")


def _places() -> "array[int]":
    return array("q")


@dataclass(slots=True, eq=False)
class RequestRecord:
    """The life of a request: the places of its events, and its figures at the end of the recording.

    `state` is the recording view's: read it only. Of its prompt's `tokens`, `cached_tokens` were found at its first
    admission, where the match ended because of `end`. `ttft` and `seconds` count from its arrival, on the run's clock.
    """

    id: str
    state: RequestView
    arrived: int  # place
    arrival: float  # seconds
    lookups: "array[int]" = field(default_factory=_places)
    admissions: "array[int]" = field(default_factory=_places)
    preempted: "array[int]" = field(default_factory=_places)
    computed: "array[int]" = field(default_factory=_places)  # where tokens of it were computed
    computed_by: "array[int]" = field(default_factory=_places)  # tokens computed by then, those computed again included
    end: str | None = None
    ttft: float | None = None
    seconds: float | None = None
    outcome: str = "unfinished"

    @property
    def tokens(self) -> int:
        return self.state.num_prompt_tokens

    @property
    def cached_tokens(self) -> int | None:
        return self.state.num_cached_tokens

    @property
    def computed_tokens(self) -> int:
        return self.computed_by[-1] if self.computed_by else 0

    @property
    def output(self) -> list[int]:
        """The tokens that it generates in all."""
        return self.state.tokens[self.tokens :]

    @property
    def preemptions(self) -> int:
        return self.state.num_preemptions

    def to_json(self, clock: str = "modelled") -> dict[str, Any]:
        """`clock` says what the times are: modelled or measured."""
        return {
            "id": self.id,
            "tokens": self.tokens,
            "cached_tokens": self.cached_tokens,
            "end": self.end,
            "computed_tokens": self.computed_tokens,
            "output_tokens": len(self.output),
            "preemptions": self.preemptions,
            "outcome": self.outcome,
            f"{clock}_ttft_s": self.ttft,
            f"{clock}_seconds": self.seconds,
        }


@dataclass(slots=True)
class Published:
    """The first time that a hash was published: at `place`, as block `index` of those there, after `parent`, which
    makes it block `number` of a prompt."""

    place: int
    index: int
    parent: bytes | None
    number: int


@dataclass(slots=True)
class _Step:
    """The step that runs: first admissions, their tokens looked up and found, and prompt tokens computed. `prefills`:
    it computes tokens that a request had at its latest admission."""

    admitted: int = 0
    prefills: bool = False
    queries: int = 0
    hits: int = 0
    computed: int = 0


class RunIndex(Follower):
    """`events` are those of the run so far; an event is in them when `on` takes it. `clock` says what the
    times are: modelled, or measured by a real run. Arrays of places ascend.

    `capacity` is that of the pool when the largest share of it was in use, namely `totals["peak_blocks"]` blocks; at
    first, that of the first pool.
    """

    def __init__(
        self, events: Sequence[Event], capacity: int, clock: Literal["modelled", "measured"] = "modelled"
    ) -> None:
        self.events = events
        self.clock = clock
        self.requests: dict[str, RequestRecord] = {}
        self.rejections: list[tuple[int, str]] = []  # place, request
        self.hashes: dict[bytes, Published] = {}
        self.lookups: list[Lookup] = []  # one for each first admission
        self.used = _places()  # blocks in use, at the end of each step
        self.waiting = _places()  # requests, likewise
        self.computed = _places()  # tokens computed in that step
        self.hit_rates_by_step = array("d")  # "tokens of all" so far; 0 before the first admission
        self.capacity = capacity
        self._by_kind: dict[str, array[int]] = {}
        self._rates = array("d")  # hit rate after each admission
        self._sums: Counter[str] = Counter()
        self._owners: dict[int, list[tuple[int, str]]] = {}  # radix node -> since which place it is whose tokens
        self._named: dict[tuple[str, object], array[int]] = {}  # thing -> places that name it, of the first `_read`
        self._read: dict[tuple[str, object], int] = {}
        self._prefill_end: dict[str, int] = {}  # request -> its length at its latest admission
        self._step = _Step()
        self._queries = self._hits = 0
        self._recent, self._last_prefill = RecentHitRate(), LastPrefillHitRate()

    # Following

    @property
    def _here(self) -> int:
        """The place of the event that is being taken."""
        return len(self.events) - 1

    def on(self, event: Event, view: EngineView) -> None:
        kind = type(event).__name__
        places = self._by_kind.get(kind)
        if places is None:
            places = self._by_kind[kind] = _places()
        places.append(self._here)
        super().on(event, view)

    def on_StepStarted(self, event: ev.StepStarted, view: EngineView) -> None:
        self._step = _Step()  # a step that failed leaves something

    def on_StepFinished(self, event: ev.StepFinished, view: EngineView) -> None:
        step = self._step
        self._recent.observe(step.admitted, step.queries, step.hits)
        if step.prefills:
            self._last_prefill.observe(step.computed, step.hits)
        self._step = _Step()
        self.used.append(len(view.num_holders))
        self.waiting.append(len(view.waiting))
        self.computed.append(event.num_tokens)
        self.hit_rates_by_step.append(self._rates[-1] if self._rates else 0.0)

    def on_RequestArrived(self, event: ev.RequestArrived, view: EngineView) -> None:
        record = RequestRecord(event.request, view.requests[event.request], self._here, event.arrival)
        self.requests[event.request] = record
        self._count_waiting(view)

    def on_RequestRejected(self, event: ev.RequestRejected, view: EngineView) -> None:
        self.rejections.append((self._here, event.request))

    def on_PrefixMatched(self, event: ev.PrefixMatched, view: EngineView) -> None:
        if record := self.requests.get(event.request):
            record.lookups.append(self._here)

    def on_RequestAdmitted(self, event: ev.RequestAdmitted, view: EngineView) -> None:
        record = self.requests[event.request]
        record.admissions.append(self._here)
        self._prefill_end[event.request] = len(record.state.tokens)
        if not event.resumed:
            record.end = self._end_of(record)
            self.lookups.append(Lookup(record.tokens, event.num_cached_tokens, view.block_size))
            self._queries += record.tokens
            self._hits += event.num_cached_tokens
            if event.num_cached_tokens or record.end != "skipped":
                self._step.admitted += 1
                self._step.queries += record.tokens
                self._step.hits += event.num_cached_tokens
        self._rates.append(self._hits / self._queries if self._queries else 0.0)

    def _end_of(self, record: RequestRecord) -> str | None:
        """Why no more matched in the request's latest lookup."""
        lookup = self.events[record.lookups[-1]] if record.lookups else None
        return lookup.end if isinstance(lookup, ev.PrefixMatched) else None

    def on_TokensComputed(self, event: ev.TokensComputed, view: EngineView) -> None:
        record = self.requests[event.request]
        record.computed.append(self._here)
        record.computed_by.append(record.computed_tokens + event.num_tokens)
        self._sums["computed_tokens"] += event.num_tokens
        self._step.prefills |= event.start < self._prefill_end[event.request]
        if not record.preemptions:
            self._step.computed += min(event.num_tokens, max(0, record.tokens - event.start))

    def on_TokensSampled(self, event: ev.TokensSampled, view: EngineView) -> None:
        record = self.requests[event.request]
        self._sums["output_tokens"] += len(event.tokens)
        if record.ttft is None:
            record.ttft = event.time - record.arrival

    def on_RequestPreempted(self, event: ev.RequestPreempted, view: EngineView) -> None:
        self.requests[event.request].preempted.append(self._here)
        self._count_waiting(view)

    def on_RequestFinished(self, event: ev.RequestFinished, view: EngineView) -> None:
        record = self.requests[event.request]
        record.outcome, record.seconds = event.reason, event.time - record.arrival

    def on_RequestAborted(self, event: ev.RequestAborted, view: EngineView) -> None:
        self.requests[event.request].outcome = "aborted"

    def _count_waiting(self, view: EngineView) -> None:
        self._sums["max_waiting"] = max(self._sums["max_waiting"], len(view.waiting))

    def on_BlocksAdopted(self, event: ev.BlocksAdopted, view: EngineView) -> None:
        self._count_used(view)

    def on_BlocksAllocated(self, event: ev.BlocksAllocated, view: EngineView) -> None:
        self._sums["allocated_blocks"] += len(event.blocks)
        self._count_used(view)

    def on_PoolShrunk(self, event: ev.PoolShrunk, view: EngineView) -> None:
        self._count_used(view)

    def _count_used(self, view: EngineView) -> None:
        """Blocks of two pools are not compared, but the share of its pool that is in use."""
        used = len(view.num_holders)
        if used * self.capacity > self._sums["peak_blocks"] * view.capacity:
            self._sums["peak_blocks"], self.capacity = used, view.capacity

    def on_BlocksPublished(self, event: ev.BlocksPublished, view: EngineView) -> None:
        parent = event.parent
        for index, hash in enumerate(event.hashes):
            if hash not in self.hashes:
                number = self.hashes[parent].number + 1 if parent is not None else 0
                self.hashes[hash] = Published(self._here, index, parent, number)
            parent = hash
        if event.node is not None:
            self._owners.setdefault(event.node, []).append((self._here, event.request))

    def on_BlocksEvicted(self, event: ev.BlocksEvicted, view: EngineView) -> None:
        self._sums["evicted_blocks"] += len(event.blocks)

    def on_NodesEvicted(self, event: ev.NodesEvicted, view: EngineView) -> None:
        self._sums["evicted_blocks"] += len(event.blocks)
        self._sums["evicted_nodes"] += len(event.nodes)

    def on_DuplicatesFreed(self, event: ev.DuplicatesFreed, view: EngineView) -> None:
        self._sums["duplicates_freed"] += len(event.blocks)

    def on_NodeSplit(self, event: ev.NodeSplit, view: EngineView) -> None:
        owner = self.owner(event.node, self._here)
        if owner is not None:
            self._owners.setdefault(event.upper, []).append((self._here, owner))

    def on_CacheReset(self, event: ev.CacheReset, view: EngineView) -> None:
        self._forget_hit_rates()

    def on_PoolReplaced(self, event: ev.PoolReplaced, view: EngineView) -> None:
        self._forget_hit_rates()

    def _forget_hit_rates(self) -> None:
        """As the scheduler does when its cache is reset or replaced."""
        self._recent.observe(0, 0, 0, reset=True)
        self._last_prefill = LastPrefillHitRate()

    # Places

    @property
    def ids(self) -> list[str]:
        """The ids of all requests, those that were refused at the end."""
        return list(dict.fromkeys([*self.requests, *(id for _, id in self.rejections)]))

    def of_kind(self, kind: str) -> "array[int]":
        """The events of a type, by its name."""
        return self._by_kind.get(kind, NOWHERE)

    def of_request(self, request: str, last: int) -> "array[int]":
        """The events that name a request, up to place `last`."""
        return _between(self._naming("request", request, _names_request), 0, last)

    def of_block(self, block: int, first: int, last: int) -> "array[int]":
        """The events that name a block, of those from `first` to `last`."""
        return _between(self._naming("block", block, _names_block), first, last)

    def of_node(self, node: int, last: int) -> "array[int]":
        """The events in which a node of the tree was made, cut or evicted, up to place `last`."""
        return _between(self._naming("node", node, _names_node), 0, last)

    def _naming(self, what: str, id: Any, names: Callable[[Event, Any], bool]) -> "array[int]":
        """The events that name a thing. They are read when the thing is first asked for, and then only the new ones:
        few things are ever asked for, and an index of all blocks would be larger than the run."""
        key = (what, id)
        places = self._named.setdefault(key, _places())
        for place in range(self._read.get(key, 0), len(self.events)):
            if names(self.events[place], id):
                places.append(place)
        self._read[key] = len(self.events)
        return places

    def last_lookup(self, request: str, place: int) -> int | None:
        """The lookup whose result is valid at `place`: the last one, unless the request was preempted since."""
        record = self.requests.get(request)
        return _last_unless(record.lookups, record.preempted, place) if record else None

    def last_admission(self, request: str, place: int) -> int | None:
        """The admission since which the request runs at `place`, or ran until its end."""
        record = self.requests.get(request)
        return _last_unless(record.admissions, record.preempted, place) if record else None

    def num_computed(self, request: str, place: int) -> int:
        """The number of tokens that were computed for a request up to `place`, also those that it lost again."""
        record = self.requests.get(request)
        count = bisect_right(record.computed, place) if record else 0
        return record.computed_by[count - 1] if record and count else 0

    def owner(self, node: int, place: int) -> str | None:
        """The request that published the tokens of a radix node."""
        owners = self._owners.get(node, [])
        return next((request for since, request in reversed(owners) if since <= place), None)

    def steps_until(self, place: int) -> int:
        """The number of steps that have ended at `place`."""
        return bisect_right(self.of_kind("StepFinished"), place)

    # Figures

    def hit_rate(self, place: int) -> float | None:
        """The hit rate ("tokens of all") of the admissions up to `place`; None before the first."""
        count = bisect_right(self.of_kind("RequestAdmitted"), place)
        return self._rates[count - 1] if count else None

    @property
    def hit_rates(self) -> dict[str, float]:
        """Every definition and its value, 0 to 1."""
        rates = {name: function(self.lookups) for name, function in DEFINITIONS.items()}
        return rates | {RECENT: self._recent.value, LAST_PREFILL: self._last_prefill.value}

    @property
    def totals(self) -> dict[str, int]:
        """Each of `TOTALS`."""
        counts = {
            "events": len(self.events),
            "steps": len(self.of_kind("StepStarted")),
            "finished": len(self.of_kind("RequestFinished")),
            "rejected": len(self.rejections),
            "splits": len(self.of_kind("NodeSplit")),
            "preemptions": len(self.of_kind("RequestPreempted")),
            "admission_failures": len(self.of_kind("AdmissionFailed")),
        }
        return {name: counts[name] if name in counts else self._sums[name] for name in TOTALS}

    @property
    def prompt_tokens(self) -> int:
        return sum(record.tokens for record in self.requests.values())

    @property
    def cached_tokens(self) -> int:
        return sum(record.cached_tokens or 0 for record in self.requests.values())

    @property
    def seconds(self) -> float:
        """From the beginning of the run to its last event. A measured clock counts from anywhere."""
        if not self.events:
            return 0.0
        return self.events[-1].time - (self.events[0].time if self.clock == "measured" else 0.0)

    def to_json(self) -> dict[str, Any]:
        """The figures of the whole run."""
        ttfts = [record.ttft for record in self.requests.values() if record.ttft is not None]
        return {
            "requests": len(self.requests),
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            **self.totals,
            "hit_rates": [
                {"name": name, "value": value, "definition": RATES[name]} for name, value in self.hit_rates.items()
            ],
            f"{self.clock}_seconds": self.seconds,
            f"{self.clock}_ttft_s": {
                "median": statistics.median(ttfts) if ttfts else None,
                "max": max(ttfts, default=None),
            },
        }


def _names_request(event: Event, request: str) -> bool:
    return getattr(event, "request", None) == request


def _names_block(event: Event, block: int) -> bool:
    return block in getattr(event, "blocks", ())


def _names_node(event: Event, node: int) -> bool:
    match event:
        case ev.BlocksPublished():
            return event.node == node
        case ev.NodeSplit():
            return node in (event.node, event.upper)
        case ev.NodesEvicted():
            return node in event.nodes
    return False


def _between(places: "array[int]", first: int, last: int) -> "array[int]":
    return places[bisect_left(places, first) : bisect_right(places, last)]


def _last_unless(places: "array[int]", ends: "array[int]", place: int) -> int | None:
    """The last of `places`, unless one of `ends` came after it."""
    last, end = _last(places, place), _last(ends, place)
    return last if last is None or end is None or last > end else None


def _last(places: "array[int]", place: int) -> int | None:
    """The last of `places` that is not after `place`."""
    index = bisect_right(places, place)
    return places[index - 1] if index else None
