"""Every definition of "hit rate", each with its name.

Two engines, and two dashboards of the same engine, call different ratios the hit rate. The functions below take one
`Lookup` per admission and return 0 to 1 (0 if nothing was looked up). The docstring of each is the definition that
reports print next to the figure.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lookup:
    """One request at its admission: its tokens, those of them that were hit, and the tokens in a block of the cache."""

    num_tokens: int
    num_hits: int
    block_size: int = 1


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def tokens_of_all(lookups: Sequence[Lookup]) -> float:
    """Hit tokens divided by all looked-up tokens."""
    return _ratio(sum(x.num_hits for x in lookups), sum(x.num_tokens for x in lookups))


def blocks_of_all(lookups: Sequence[Lookup]) -> float:
    """Hit blocks divided by all blocks; a partial last block counts as one."""
    return _ratio(
        sum(x.num_hits // x.block_size for x in lookups), sum(-(-x.num_tokens // x.block_size) for x in lookups)
    )


def full_blocks(lookups: Sequence[Lookup]) -> float:
    """Hit blocks divided by all full blocks: only full blocks can be cached."""
    return _ratio(sum(x.num_hits // x.block_size for x in lookups), sum(x.num_tokens // x.block_size for x in lookups))


def mean_of_ratios(lookups: Sequence[Lookup]) -> float:
    """The mean of each request's hit tokens divided by its tokens: a short request weighs as much as a long one."""
    return _ratio(sum(_ratio(x.num_hits, x.num_tokens) for x in lookups), len(lookups))


def last_half(lookups: Sequence[Lookup]) -> float:
    """Hit tokens divided by looked-up tokens in the second half of the requests, which leaves the warm-up out."""
    return tokens_of_all(lookups[len(lookups) // 2 :])


DEFINITIONS: dict[str, Callable[[Sequence[Lookup]], float]] = {
    "tokens of all": tokens_of_all,
    "blocks of all": blocks_of_all,
    "full blocks": full_blocks,
    "mean of ratios": mean_of_ratios,
    "last half": last_half,
}


@dataclass(slots=True)
class AdmissionStats:
    """The admissions of one scheduler step: requests that read the cache, their tokens (`queries`), and the tokens that
    were hit (`hits`). Requests resumed after a preemption are counted apart, because they hit their own blocks (vLLM
    #25780)."""

    requests: int = 0
    queries: int = 0
    hits: int = 0
    preempted_requests: int = 0
    preempted_queries: int = 0
    preempted_hits: int = 0

    def record(self, num_tokens: int, num_hits: int, preempted: bool) -> None:
        """Count one admission. Call it after the allocation succeeded, so that a lookup that is repeated in a later
        step counts once (vLLM #43736)."""
        if preempted:
            self.preempted_requests += 1
            self.preempted_queries += num_tokens
            self.preempted_hits += num_hits
        else:
            self.requests += 1
            self.queries += num_tokens
            self.hits += num_hits


class RecentHitRate:
    """vLLM's hit rate: hit tokens divided by looked-up tokens over the last 1,000 requests, in whole steps.

    The oldest step is dropped while more than `max_requests` requests and more than one step remain. Requests resumed
    after a preemption do not count. Source: vLLM 0.33, `vllm/v1/metrics/stats.py`, `CachingMetrics`.
    """

    def __init__(self, max_requests: int = 1000) -> None:
        self.max_requests = max_requests
        self._steps: deque[tuple[int, int, int]] = deque()  # requests, queries, hits
        self.requests = self.queries = self.hits = 0

    def observe(self, requests: int, queries: int, hits: int, reset: bool = False) -> None:
        """Add one step: its admitted requests, their tokens (`queries`) and hit tokens (`hits`). With `reset` (the
        cache was reset) all earlier steps are dropped first."""
        if reset:
            self._steps.clear()
            self.requests = self.queries = self.hits = 0
        if not requests:
            return
        self._steps.append((requests, queries, hits))
        self._add(requests, queries, hits)
        while self.requests > self.max_requests and len(self._steps) > 1:
            self._add(*(-number for number in self._steps.popleft()))

    def _add(self, requests: int, queries: int, hits: int) -> None:
        self.requests += requests
        self.queries += queries
        self.hits += hits

    @property
    def value(self) -> float:
        """The hit rate now, 0 to 1; 0 before the first request."""
        return _ratio(self.hits, self.queries)


class LastPrefillHitRate:
    """SGLang's `cache_hit_rate`: hit tokens divided by hit plus newly computed prompt tokens, in the last step that
    prefilled.

    Requests resumed after a preemption do not count: a prefill of these alone sets it to 0. A later chunk of a prompt
    counts as computed tokens without a hit. Source: SGLang 0.5.23, `sglang/srt/observability/metrics_collector.py`.
    """

    def __init__(self) -> None:
        self.value = 0.0

    def observe(self, num_computed: int, num_hits: int) -> None:
        """Add one step that prefilled: it computed `num_computed` prompt tokens and hit `num_hits`."""
        self.value = _ratio(num_hits, num_computed + num_hits)
