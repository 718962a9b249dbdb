"""The speed of the caches: one request whose tokens are cached except for the last 64.

Standard library only. Times are medians of interleaved rounds. Because machines differ, each is also given as a ratio
to two yardsticks of the same run over the same tokens: hashing them once with `hashlib`, and comparing two lists of
them.
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
from typing import Annotated, Any, ClassVar

from rich.console import Console

from minicache.bench.experiment import Experiment, Option, Result, Show, discard
from minicache.bench.tables import plain_table
from minicache.common.progress import Progress, silent
from minicache.core import EventStream, HashChainCache, RadixCache, Request

SIZES = (2_464, 32_000, 128_000)  # tokens of a request
UNSHARED = 64
VOCABULARY = 8_192  # distinct token ids, about what a long prompt has
BLOCK_SIZE = 16

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


@dataclass(frozen=True)
class CoreBench(Experiment):
    """Hashing, lookup, allocation and release of one request, in both caches."""

    rounds: Annotated[int, Option("Requests of the smallest size; larger ones get fewer.", min=1)] = 100

    packages: ClassVar = ()
    has_chart: ClassVar = False

    def run(self, progress: Progress = silent, show: Show = discard) -> "Found":
        rows: list[Row] = []
        for index, size in enumerate(SIZES):
            progress(f"{size:,} tokens", index, len(SIZES))
            rows += _rows(size, max(10, self.rounds * SIZES[0] // size))
        return Found(rows, _events_per_request(), _ns_per_check(), sys.version.split()[0], os.getloadavg()[0])


@dataclass(frozen=True)
class Found(Result):
    """The rows, and the cost of events: the checks for a sink in one request, and the nanoseconds of a check without a
    sink."""

    rows: list[Row]
    events_per_request: dict[str, int]
    ns_per_check: float
    python: str
    load: float

    def to_json(self) -> dict[str, Any]:
        return {"benchmark": "core", **asdict(self)}

    def table(self, console: Console) -> None:
        table = plain_table(["operation"], ["tokens", "µs", "ns/token", "× hashlib", "× list =="])
        for row in self.rows:
            table.add_row(
                row.operation,
                f"{row.num_tokens:,}",
                f"{row.microseconds:,.0f}",
                f"{row.ns_per_token:.1f}",
                f"{row.to_hashlib:.1f}",
                f"{row.to_list_comparison:.1f}",
            )
        console.print(f"One request, all but {UNSHARED} tokens cached (median)", style="bold")
        console.print(table)
        console.print("hash: all block hashes · hash cache: lookup, allocate, publish, release")
        console.print("radix: match and insert · radix cache: lookup, allocate, publish, release")
        console.print("× hashlib, × list ==: times as long as hashing, or comparing, the same tokens once in this run")
        events = ", ".join(f"{count} a request in the {name}" for name, count in self.events_per_request.items())
        console.print(f"Events without a listener: {self.ns_per_check:.0f} ns each; {events}")
        console.print(f"Python {self.python}, one thread, load {self.load:.2f}")


class Workload:
    """Two warm caches, and a stream of requests that share `num_tokens - UNSHARED` tokens with the cached ones."""

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
    """The number of events that one warm request of the smallest size emits, by cache; each is one check for a sink."""
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
    """The time of `if self.events:` without a sink."""
    events = EventStream()
    start = time.perf_counter()
    for _ in range(repeats):
        if events:
            raise AssertionError
    return (time.perf_counter() - start) / repeats * 1e9


EXPERIMENT = CoreBench
