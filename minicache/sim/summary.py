"""The figures of a run, folded from its events: per request and in all, every hit rate under its own name."""
# ruff: noqa: N802 - a handler carries the name of its event type

import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from minicache.core import events as ev
from minicache.core.hit_rate import DEFINITIONS, LastPrefillHitRate, Lookup, RecentHitRate
from minicache.core.views import View

if TYPE_CHECKING:
    from minicache.sim.timeline import Timeline

RECENT, LAST_PREFILL = "recent (vLLM)", "last prefill (SGLang)"
RATES: dict[str, str] = {
    **{name: (function.__doc__ or "").strip() for name, function in DEFINITIONS.items()},
    RECENT: "Hit tokens of looked-up tokens over the last 1,000 requests, in whole steps, resumed ones left out.",
    LAST_PREFILL: "Hit tokens of hit and newly computed prompt tokens, in the last step that computed any (prefill).",
}


@dataclass(slots=True)
class RequestFigures:
    """One request: `tokens` of its prompt, of which `cached_tokens` were found at its first admission, where the match
    ended because of `end`. `ttft` and `seconds` count from its arrival on, on the run's clock."""

    id: str
    tokens: int
    arrival: float
    cached_tokens: int | None = None
    end: str | None = None
    computed_tokens: int = 0
    output_tokens: int = 0
    preemptions: int = 0
    ttft: float | None = None
    seconds: float | None = None
    outcome: str = "unfinished"

    def to_json(self, clock: str = "modelled") -> dict[str, Any]:
        """`clock` says what the times are: modelled or measured."""
        return {
            "id": self.id,
            "tokens": self.tokens,
            "cached_tokens": self.cached_tokens,
            "end": self.end,
            "computed_tokens": self.computed_tokens,
            "output_tokens": self.output_tokens,
            "preemptions": self.preemptions,
            "outcome": self.outcome,
            f"{clock}_ttft_s": self.ttft,
            f"{clock}_seconds": self.seconds,
        }


@dataclass
class Summary(View):
    """A sink: folds events into figures. `clock` says what the times are: modelled, or measured by a real run."""

    block_size: int
    clock: Literal["modelled", "measured"] = "modelled"
    requests: dict[str, RequestFigures] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)
    lookups: list[Lookup] = field(default_factory=list)
    start: float = 0.0  # when the first event was, on a measured clock, which counts from anywhere
    now: float = 0.0

    def __post_init__(self) -> None:
        self._recent, self._last = RecentHitRate(), LastPrefillHitRate()
        self._ends: dict[str, str] = {}
        self._lengths: dict[str, int] = {}
        self._waiting: set[str] = set()
        self._held: Counter[int] = Counter()  # block -> block tables that name it
        self._tables: dict[str, list[int]] = {}
        self._step = (0, 0, 0, 0)  # of this step: admissions, tokens looked up, found; prompt tokens computed

    @classmethod
    def of(cls, timeline: "Timeline") -> "Summary":
        """Of all events that the timeline has."""
        summary = cls(timeline.settings["block_size"], "modelled" if timeline.is_modelled else "measured")
        summary.apply_all(timeline.events)
        return summary

    def apply(self, event: ev.Event) -> None:
        if not self.totals["events"] and self.clock == "measured":
            self.start = event.time
        self.totals["events"] += 1
        self.now = event.time
        super().apply(event)

    __call__ = apply

    def on_StepStarted(self, event: ev.StepStarted) -> None:
        self.totals["steps"] += 1
        self._step = (0, 0, 0, 0)  # what a step before it left that failed

    def on_StepFinished(self, event: ev.StepFinished) -> None:
        admitted, queries, hits, computed = self._step
        self._recent.observe(admitted, queries, hits)
        self._last.observe(computed, hits)
        self._step = (0, 0, 0, 0)

    def on_RequestArrived(self, event: ev.RequestArrived) -> None:
        self.requests[event.request] = RequestFigures(event.request, len(event.tokens), event.arrival)
        self._lengths[event.request] = len(event.tokens)
        self._queue(event.request)

    def on_RequestRejected(self, event: ev.RequestRejected) -> None:
        self.totals["rejected"] += 1

    def _queue(self, request: str) -> None:
        self._waiting.add(request)
        self.totals["max_waiting"] = max(self.totals["max_waiting"], len(self._waiting))

    def on_PrefixMatched(self, event: ev.PrefixMatched) -> None:
        self._ends[event.request] = event.end

    def on_AdmissionFailed(self, event: ev.AdmissionFailed) -> None:
        self.totals["admission_failures"] += 1

    def on_RequestAdmitted(self, event: ev.RequestAdmitted) -> None:
        self._waiting.discard(event.request)
        if event.resumed:
            return
        request = self.requests[event.request]
        request.cached_tokens = event.num_cached_tokens
        request.end = self._ends.get(event.request)
        self.lookups.append(Lookup(request.tokens, event.num_cached_tokens, self.block_size))
        admitted, queries, hits, computed = self._step
        self._step = (admitted + 1, queries + request.tokens, hits + event.num_cached_tokens, computed)

    def on_TokensComputed(self, event: ev.TokensComputed) -> None:
        request = self.requests[event.request]
        request.computed_tokens += event.num_tokens
        self.totals["computed_tokens"] += event.num_tokens
        if not request.preemptions:
            admitted, queries, hits, computed = self._step
            first = min(event.num_tokens, max(0, request.tokens - event.start))
            self._step = (admitted, queries, hits, computed + first)

    def on_TokensSampled(self, event: ev.TokensSampled) -> None:
        request = self.requests[event.request]
        request.output_tokens += len(event.tokens)
        self.totals["output_tokens"] += len(event.tokens)
        if request.ttft is None:
            request.ttft = event.time - request.arrival

    def on_RequestPreempted(self, event: ev.RequestPreempted) -> None:
        self.requests[event.request].preemptions += 1
        self.totals["preemptions"] += 1
        self._queue(event.request)

    def on_RequestFinished(self, event: ev.RequestFinished) -> None:
        request = self.requests[event.request]
        request.outcome, request.seconds = event.reason, event.time - request.arrival
        self.totals["finished"] += 1

    def on_RequestAborted(self, event: ev.RequestAborted) -> None:
        self.requests[event.request].outcome = "aborted"
        self._waiting.discard(event.request)

    def _hold(self, request: str, blocks: tuple[int, ...]) -> None:
        self._tables.setdefault(request, []).extend(blocks)
        self._held.update(blocks)
        self.totals["peak_blocks"] = max(self.totals["peak_blocks"], len(self._held))

    def on_BlocksAdopted(self, event: ev.BlocksAdopted) -> None:
        self._hold(event.request, event.blocks)

    def on_BlocksAllocated(self, event: ev.BlocksAllocated) -> None:
        self.totals["allocated_blocks"] += len(event.blocks)
        self._hold(event.request, event.blocks)

    def _let_go(self, blocks: list[int]) -> None:
        for block in blocks:
            self._held[block] -= 1
            if not self._held[block]:
                del self._held[block]

    def on_BlocksReleased(self, event: ev.BlocksReleased) -> None:
        self._let_go(self._tables.pop(event.request, []))

    def on_BlockTableRewritten(self, event: ev.BlockTableRewritten) -> None:
        table, end = self._tables[event.request], event.start + len(event.blocks)
        self._let_go(table[event.start : end])
        table[event.start : end] = event.blocks
        self._held.update(event.blocks)

    def on_BlocksEvicted(self, event: ev.BlocksEvicted) -> None:
        self.totals["evicted_blocks"] += len(event.blocks)

    def on_NodesEvicted(self, event: ev.NodesEvicted) -> None:
        self.totals["evicted_blocks"] += len(event.blocks)
        self.totals["evicted_nodes"] += len(event.nodes)

    def on_DuplicatesFreed(self, event: ev.DuplicatesFreed) -> None:
        self.totals["duplicates_freed"] += len(event.blocks)

    def on_NodeSplit(self, event: ev.NodeSplit) -> None:
        self.totals["splits"] += 1

    def on_CacheReset(self, event: ev.CacheReset) -> None:
        self._recent.observe(0, 0, 0, reset=True)

    # What came of it

    @property
    def hit_rates(self) -> dict[str, float]:
        """Every definition and its value, 0 to 1."""
        rates = {name: function(self.lookups) for name, function in DEFINITIONS.items()}
        return rates | {RECENT: self._recent.value, LAST_PREFILL: self._last.value}

    @property
    def prompt_tokens(self) -> int:
        return sum(request.tokens for request in self.requests.values())

    @property
    def cached_tokens(self) -> int:
        return sum(request.cached_tokens or 0 for request in self.requests.values())

    @property
    def seconds(self) -> float:
        """From the beginning of the run to its last event."""
        return self.now - self.start

    def to_json(self) -> dict[str, Any]:
        ttfts = [request.ttft for request in self.requests.values() if request.ttft is not None]
        return {
            "requests": len(self.requests),
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            **{name: self.totals[name] for name in TOTALS},
            "hit_rates": [
                {"name": name, "value": value, "definition": RATES[name]} for name, value in self.hit_rates.items()
            ],
            f"{self.clock}_seconds": self.seconds,
            f"{self.clock}_ttft_s": {
                "median": statistics.median(ttfts) if ttfts else None,
                "max": max(ttfts, default=None),
            },
        }


TOTALS = (
    "events",
    "steps",
    "finished",
    "rejected",
    "computed_tokens",
    "output_tokens",
    "allocated_blocks",
    "evicted_blocks",
    "evicted_nodes",
    "duplicates_freed",
    "splits",
    "preemptions",
    "admission_failures",
    "max_waiting",
    "peak_blocks",
)
