"""How fast the caches are: one request that shares all but its last 64 tokens with what is cached.

Standard library only. Times are medians of interleaved rounds; since machines differ, each is also given as a ratio to
two yardsticks of the same run over the same tokens: `hashlib` hashing them once, and comparing two lists of them.
"""

import gc
import hashlib
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from minicache.common.progress import Progress, silent
from minicache.core import EventStream, HashChainCache, RadixCache, Request

SIZES = (2_464, 32_000, 128_000)  # tokens of a request
UNSHARED = 64
VOCABULARY = 8_192  # distinct token ids, about what a long prompt has
BLOCK_SIZE = 16

# Microseconds for 2,464 tokens in the real engines, CPython 3.11, two cores, October 2026.
REFERENCE = {"hash": ("vLLM 0.33", 805.0), "hash cache": ("vLLM 0.33", 280.0), "radix": ("SGLang 0.5.23", 146.0)}

Timings = dict[str, float]


@dataclass(frozen=True, slots=True)
class Row:
    """One operation on a request of `num_tokens` tokens: median microseconds, and the ratios to the yardsticks."""

    operation: str
    num_tokens: int
    microseconds: float
    ns_per_token: float
    to_hashlib: float
    to_list_comparison: float


@dataclass(frozen=True, slots=True)
class CoreBench:
    """The rows, and what events cost: checks for a listener a request, and nanoseconds a check without one."""

    rows: list[Row]
    events_per_request: dict[str, int]
    ns_per_check: float
    python: str
    load: float

    def to_json(self) -> dict[str, Any]:
        return {"benchmark": "core", **asdict(self)}


class Workload:
    """Two warm caches, and a stream of requests that share `num_tokens - UNSHARED` tokens with what they hold."""

    def __init__(self, num_tokens: int, events: EventStream | None = None) -> None:
        self.random = random.Random(num_tokens)
        self.shared = self._tokens(num_tokens - UNSHARED)
        self.hash_cache = HashChainCache(2 * num_tokens // BLOCK_SIZE + 2, BLOCK_SIZE, events=events)
        self.radix_cache = RadixCache(2 * num_tokens + 2, events=events)
        for _ in range(2):  # the second round splits the radix tree where requests part
            self.round()

    def _tokens(self, count: int) -> list[int]:
        return self.random.choices(range(VOCABULARY), k=count)

    def round(self) -> Timings:
        """One request through either cache; seconds by operation."""
        tokens = self.shared + self._tokens(UNSHARED)
        return self._hash_round(tokens) | self._radix_round(tokens) | self._yardsticks(tokens)

    def _hash_round(self, tokens: list[int]) -> Timings:
        cache, request = self.hash_cache, Request("r", tokens)
        times = [time.perf_counter()]
        cache.hashes(request)
        times.append(time.perf_counter())
        match = cache.lookup(request)
        cache.allocate(request, match, request.num_tokens - match.num_tokens)
        cache.publish(request, request.num_tokens)
        request.num_computed_tokens = request.num_tokens
        cache.release(request)
        times.append(time.perf_counter())
        return {"hash": times[1] - times[0], "hash cache": times[2] - times[1]}

    def _radix_round(self, tokens: list[int]) -> Timings:
        cache, request = self.radix_cache, Request("r", tokens)
        times = [time.perf_counter()]
        match = cache.lookup(request)
        times.append(time.perf_counter())
        cache.allocate(request, match, request.num_tokens - match.num_tokens)
        request.num_computed_tokens = request.num_tokens
        times.append(time.perf_counter())
        cache.publish(request, request.num_tokens)
        times.append(time.perf_counter())
        cache.release(request)
        times.append(time.perf_counter())
        whole = times[4] - times[0]
        return {"radix": times[1] - times[0] + times[3] - times[2], "radix cache": whole}

    @staticmethod
    def _yardsticks(tokens: list[int]) -> Timings:
        array = Request("r", tokens).tokens
        data, copy = array.tobytes(), array.tolist()  # equal integers, but other objects
        times = [time.perf_counter()]
        hashlib.sha256(data).digest()
        times.append(time.perf_counter())
        assert copy == tokens
        times.append(time.perf_counter())
        return {"hashlib": times[1] - times[0], "list comparison": times[2] - times[1]}


def run(rounds: int = 100, report: Progress = silent) -> CoreBench:
    """Measure at every size; `report(what, done, total)` is told of the progress."""
    rows: list[Row] = []
    for index, size in enumerate(SIZES):
        report(f"{size:,} tokens", index, len(SIZES))
        rows += _rows(size, max(10, rounds * SIZES[0] // size))
    return CoreBench(rows, _events_per_request(), _ns_per_check(), sys.version.split()[0], os.getloadavg()[0])


def _rows(size: int, rounds: int) -> Iterator[Row]:
    workload = Workload(size)
    gc.collect()
    gc.disable()  # a collection in the middle of a round would be charged to whatever ran then
    try:
        samples = [workload.round() for _ in range(rounds)]
    finally:
        gc.enable()
    medians = {name: statistics.median(sample[name] for sample in samples) for name in samples[0]}
    for operation, seconds in medians.items():
        yield Row(
            operation,
            size,
            seconds * 1e6,
            seconds * 1e9 / size,
            seconds / medians["hashlib"],
            seconds / medians["list comparison"],
        )


def _events_per_request() -> dict[str, int]:
    """Events that one warm request of the smallest size emits, by cache: each is one check for a listener."""
    counts: dict[str, int] = {}
    events = EventStream()
    workload = Workload(SIZES[0], events)
    events.sinks.append(lambda event: counts.update(now=counts.get("now", 0) + 1))
    tokens = workload.shared + [0] * UNSHARED
    for name, one_round in (("hash cache", workload._hash_round), ("radix cache", workload._radix_round)):
        counts["now"] = 0
        one_round(tokens)
        counts[name] = counts["now"]
    del counts["now"]
    return counts


def _ns_per_check(repeats: int = 100_000) -> float:
    """What `if self.events:` costs with nobody listening."""
    events = EventStream()
    start = time.perf_counter()
    for _ in range(repeats):
        if events:
            raise AssertionError
    return (time.perf_counter() - start) / repeats * 1e9
