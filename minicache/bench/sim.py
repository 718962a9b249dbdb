"""How fast the simulator is, that its time is linear in the events, and that a timeline is quick to look into.

The workload: users of four tenants, each tenant with a system prompt of 512 tokens, ask questions of 64 tokens of their
own and get 32 tokens each; twenty-five arrive in a modelled second, into a pool of 4,096 tokens, which is soon full.

Standard library only.
"""

import gc
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from minicache.common.progress import Progress, silent
from minicache.core import Request, SchedulerConfig
from minicache.sim.collection import no_collection
from minicache.sim.prompt import Segment, Tokens
from minicache.sim.scenario import KINDS, CacheSettings, Kind, RequestSpec, Scenario
from minicache.sim.simulator import Simulator
from minicache.sim.timeline import Timeline

SCALES = (1, 4, 16)
REQUESTS = 100  # at scale 1
SYSTEM, QUESTION, OUTPUT = 512, 64, 32
TENANTS, EVERY = 4, 0.04
POOL = 4_096  # tokens
VOCABULARY = 8_192  # different tokens in questions and answers, as in a long text
TIMELINE_EVENTS = 100_000
LOOKS = 200
ROUNDS = 3


def workload(num_requests: int) -> Scenario:
    """The stated workload with so many requests."""
    specs = tuple(
        RequestSpec(
            id=f"user{number}",
            prompt=(Segment(f"system prompt {number % TENANTS}", SYSTEM), _question(number)),
            max_tokens=OUTPUT,
            at=number * EVERY,
        )
        for number in range(num_requests)
    )
    hash_cache = CacheSettings("hash", 16, POOL // 16 + 1)
    return Scenario(
        name="bench",
        title="The benchmark's workload",
        story=__doc__ or "",
        kinds=KINDS,
        caches={"hash": hash_cache, "radix": hash_cache.as_kind("radix")},
        schedulers={"hash": SchedulerConfig.vllm(), "radix": SchedulerConfig.sglang()},
        requests=specs,
    )


def _question(number: int) -> Tokens:
    return Tokens(tuple(random.Random(number).choices(range(VOCABULARY), k=QUESTION)))


def _answer(request: Request) -> int:
    """The next token; as in a text, a few thousand different ones occur."""
    return 7919 * request.num_tokens % VOCABULARY


@dataclass(frozen=True, slots=True)
class Row:
    """One run: `seconds` without a listener, `recorded_seconds` with a timeline."""

    cache: str
    scale: int
    requests: int
    events: int
    seconds: float
    recorded_seconds: float

    @property
    def events_per_second(self) -> float:
        return self.events / self.recorded_seconds

    @property
    def requests_per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def microseconds_per_event(self) -> float:
        return 1e6 * self.recorded_seconds / self.events


@dataclass(frozen=True, slots=True)
class Looks:
    """`at(i)` at random places of a run of `events` events, in milliseconds, and the most memory that this process has
    had until then, in megabytes (None where that cannot be told)."""

    cache: str
    events: int
    median_ms: float
    worst_ms: float
    megabytes: float | None


@dataclass(frozen=True, slots=True)
class SimBench:
    """`growth` is the time per event at the largest scale over that at the smallest: 1 is linear."""

    rows: list[Row]
    looks: list[Looks]
    growth: dict[str, float]
    python: str
    load: float

    def to_json(self) -> dict[str, Any]:
        rows = [
            asdict(row)
            | {
                "events_per_second": row.events_per_second,
                "requests_per_second": row.requests_per_second,
                "microseconds_per_event": row.microseconds_per_event,
            }
            for row in self.rows
        ]
        return {"benchmark": "sim", **asdict(self), "rows": rows}


def run(
    requests: int = REQUESTS,
    timeline_events: int = TIMELINE_EVENTS,
    report: Progress = silent,
) -> SimBench:
    """Measure; `report(what, done, total)` is told of the progress."""
    rows: list[Row] = []
    looks: list[Looks] = []
    total = len(KINDS) * (len(SCALES) + 1)
    for kind in KINDS:  # first, for the memory of a process never falls again
        report(f"{kind}, looking into {timeline_events:,} events", len(looks), total)
        looks.append(_look(kind, timeline_events))
    for kind in KINDS:
        rounds: list[list[Row]] = []
        for number in range(ROUNDS):
            report(f"{kind}, round {number + 1}", len(rows) + len(looks), total)
            rounds.append([_row(kind, scale, requests * scale) for scale in SCALES])
        rows += [_best(same) for same in zip(*rounds, strict=True)]
    per_event = {(row.cache, row.scale): row.microseconds_per_event for row in rows}
    growth: dict[str, float] = {kind: per_event[kind, SCALES[-1]] / per_event[kind, SCALES[0]] for kind in KINDS}
    return SimBench(rows, looks, growth, sys.version.split()[0], os.getloadavg()[0])


def _best(rows: Sequence[Row]) -> Row:
    """The shortest times of equal runs: whatever else the machine did came on top."""
    seconds, recorded = min(row.seconds for row in rows), min(row.recorded_seconds for row in rows)
    return replace(rows[0], seconds=seconds, recorded_seconds=recorded)


def _row(kind: Kind, scale: int, num_requests: int) -> Row:
    scenario = workload(num_requests)
    bare = _timed(Simulator.of(scenario, kind, sampler=_answer).run)
    timeline = Timeline.for_scenario(scenario, kind)
    recorded = _timed(Simulator.of(scenario, kind, timeline, sampler=_answer).run)
    return Row(kind, scale, num_requests, len(timeline), bare, recorded)


def _timed(work: Callable[[], object]) -> float:
    """Seconds of processor time: other processes on the machine do not count, nor do garbage collections."""
    gc.collect()
    with no_collection():
        start = time.process_time()
        work()
        return time.process_time() - start


def _look(kind: Kind, num_events: int) -> Looks:
    per_request = len(Timeline.record(workload(40), kind)) / 40
    timeline = Timeline.record(workload(round(num_events / per_request)), kind)
    draw = random.Random(0)
    places = [draw.randrange(len(timeline)) for _ in range(LOOKS)]
    times = sorted(1000 * _timed_look(timeline, place) for place in places)
    return Looks(kind, len(timeline), times[len(times) // 2], times[-1], _peak_megabytes())


def _peak_megabytes() -> float | None:
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # not on Windows
        return None
    return getrusage(RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def _timed_look(timeline: Timeline, place: int) -> float:
    start = time.process_time()
    timeline.at(place)
    return time.process_time() - start
