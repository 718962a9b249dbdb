"""Every definition of "hit rate", each with its name.

Two engines, and two dashboards of one engine, call different ratios the hit rate. The functions below take one
`Lookup` per admission; each docstring is the definition that is printed beside the figure.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lookup:
    """One request at its admission: tokens looked up, tokens found, and the block size of the cache."""

    num_tokens: int
    num_hits: int
    block_size: int = 1


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def tokens_of_all(lookups: Sequence[Lookup]) -> float:
    """Hit tokens of all looked-up tokens."""
    return _ratio(sum(x.num_hits for x in lookups), sum(x.num_tokens for x in lookups))


def blocks_of_all(lookups: Sequence[Lookup]) -> float:
    """Hit blocks of all blocks, a partial last block counted as one."""
    return _ratio(
        sum(x.num_hits // x.block_size for x in lookups), sum(-(-x.num_tokens // x.block_size) for x in lookups)
    )


def full_blocks(lookups: Sequence[Lookup]) -> float:
    """Hit blocks of all full blocks: what could be in the cache at all."""
    return _ratio(sum(x.num_hits // x.block_size for x in lookups), sum(x.num_tokens // x.block_size for x in lookups))


def mean_of_ratios(lookups: Sequence[Lookup]) -> float:
    """The mean over requests of hit tokens to tokens: a short request weighs as much as a long one."""
    return _ratio(sum(_ratio(x.num_hits, x.num_tokens) for x in lookups), len(lookups))


def last_half(lookups: Sequence[Lookup]) -> float:
    """Hit tokens of looked-up tokens in the later half of the requests: without the warm-up."""
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
    """What one scheduler step admitted. Resumed requests are kept apart: they hit their own blocks (vLLM #25780)."""

    requests: int = 0
    queries: int = 0
    hits: int = 0
    preempted_requests: int = 0
    preempted_queries: int = 0
    preempted_hits: int = 0

    def record(self, num_tokens: int, num_hits: int, preempted: bool) -> None:
        """Count one admission, after its allocation succeeded: a retried lookup counts once (vLLM #43736)."""
        if preempted:
            self.preempted_requests += 1
            self.preempted_queries += num_tokens
            self.preempted_hits += num_hits
        else:
            self.requests += 1
            self.queries += num_tokens
            self.hits += num_hits


class RecentHitRate:
    """vLLM's hit rate: hit tokens of looked-up tokens over the last 1,000 requests, in whole steps.

    The oldest step is dropped while more than `max_requests` requests and more than one step remain. Resumed requests
    do not count. Source: vLLM 0.33, `vllm/v1/metrics/stats.py`, `CachingMetrics`.
    """

    def __init__(self, max_requests: int = 1000) -> None:
        self.max_requests = max_requests
        self._steps: deque[tuple[int, int, int]] = deque()  # requests, queries, hits
        self.requests = self.queries = self.hits = 0

    def observe(self, requests: int, queries: int, hits: int, reset: bool = False) -> None:
        """Add one step. `reset`: the cache was reset, so what came before says nothing any more."""
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
        return _ratio(self.hits, self.queries)


class LastPrefillHitRate:
    """SGLang's `cache_hit_rate`: hit tokens of hit and newly computed prompt tokens, in the last step that prefilled.

    Re-prefills of retracted requests and decode steps leave it as it is; a later chunk of a prompt hits nothing.
    Source: SGLang 0.5.23, `sglang/srt/observability/metrics_collector.py`.
    """

    def __init__(self) -> None:
        self.value = 0.0

    def observe(self, num_computed: int, num_hits: int) -> None:
        """Add one step, in which `num_computed` prompt tokens are computed and `num_hits` were found."""
        if num_computed or num_hits:
            self.value = _ratio(num_hits, num_computed + num_hits)
