"""The speed of the simulator, whether its time is linear in the events, and how fast a timeline goes to any event.

The simulator and the timeline need only the standard library.
"""

import gc
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, ClassVar

from rich.console import Console

from minicache.bench.experiment import Experiment, Option, Result, Show, discard
from minicache.bench.tables import plain_table
from minicache.common.memory import peak_megabytes
from minicache.common.progress import Progress, silent
from minicache.core import Request, SchedulerConfig
from minicache.sim.collection import no_collection
from minicache.sim.prompt import Segment, Tokens
from minicache.sim.scenario import KINDS, CacheSettings, Kind, RequestSpec, Scenario
from minicache.sim.simulator import Simulator
from minicache.sim.timeline import Timeline

SCALES = (1, 4, 16)
SYSTEM, QUESTION, OUTPUT = 512, 64, 32
TENANTS, EVERY = 4, 0.04
POOL = 4_096  # tokens
VOCABULARY = 8_192  # different tokens in questions and answers, as in a long text
TIMELINE_EVENTS = 100_000
LOOKS = 200
ROUNDS = 3
WORKLOAD = (
    f"The workload: users of {TENANTS} tenants, each tenant with a system prompt of {SYSTEM} tokens, ask questions of "
    f"{QUESTION} tokens of their own and get {OUTPUT} tokens each; {1 / EVERY:.0f} requests arrive in a modelled "
    f"second, into a pool of {POOL:,} tokens, which is soon full."
)


def workload(num_requests: int) -> Scenario:
    """The stated workload with `num_requests` requests."""
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
        story=WORKLOAD,
        kinds=KINDS,
        caches={"hash": hash_cache, "radix": hash_cache.as_kind("radix")},
        schedulers={"hash": SchedulerConfig.vllm(), "radix": SchedulerConfig.sglang()},
        requests=specs,
    )


def _question(number: int) -> Tokens:
    return Tokens(tuple(random.Random(number).choices(range(VOCABULARY), k=QUESTION)))


def _answer(request: Request) -> int:
    """The next token; a few thousand different tokens occur, as in a text."""
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

    def to_json(self) -> dict[str, Any]:
        rates = ("events_per_second", "requests_per_second", "microseconds_per_event")
        return {**asdict(self), **{name: getattr(self, name) for name in rates}}


@dataclass(frozen=True, slots=True)
class Looks:
    """The time of `at(i)` at random places of a run of `events` events, in milliseconds, and the peak memory of this
    process so far, in megabytes (`None` if the system does not report it)."""

    cache: str
    events: int
    median_ms: float
    worst_ms: float
    megabytes: float | None


@dataclass(frozen=True)
class SimBench(Experiment):
    """The simulator: events and requests per second, whether time is linear, and how fast a timeline goes to any
    event."""

    requests: Annotated[int, Option("Requests of the smallest run; the largest has 16 times.", min=10)] = 100
    timeline_events: int = TIMELINE_EVENTS

    packages: ClassVar = ()
    has_chart: ClassVar = False

    def run(self, progress: Progress = silent, show: Show = discard) -> "Found":
        rows: list[Row] = []
        looks: list[Looks] = []
        total = len(KINDS) * (len(SCALES) + 1)
        for kind in KINDS:  # first, because the peak memory of a process never falls again
            progress(f"{kind}, looking into {self.timeline_events:,} events", len(looks), total)
            looks.append(_look(kind, self.timeline_events))
        for kind in KINDS:
            rounds: list[list[Row]] = []
            for number in range(ROUNDS):
                progress(f"{kind}, round {number + 1}", len(rows) + len(looks), total)
                rounds.append([_row(kind, scale, self.requests * scale) for scale in SCALES])
            rows += [_best(same) for same in zip(*rounds, strict=True)]
        per_event = {(row.cache, row.scale): row.microseconds_per_event for row in rows}
        growth: dict[str, float] = {kind: per_event[kind, SCALES[-1]] / per_event[kind, SCALES[0]] for kind in KINDS}
        return Found(rows, looks, growth, sys.version.split()[0], os.getloadavg()[0])


@dataclass(frozen=True)
class Found(Result):
    """The result. `growth` is the time per event at the largest scale divided by that at the smallest: 1 is linear."""

    rows: list[Row]
    looks: list[Looks]
    growth: dict[str, float]
    python: str
    load: float

    def to_json(self) -> dict[str, Any]:
        return {"benchmark": "sim", **asdict(self), "rows": [row.to_json() for row in self.rows]}

    def table(self, console: Console) -> None:
        table = plain_table(["cache"], ["requests", "events", "requests/s", "events/s", "µs/event"])
        for row in self.rows:
            table.add_row(
                row.cache,
                f"{row.requests:,}",
                f"{row.events:,}",
                f"{row.requests_per_second:,.0f}",
                f"{row.events_per_second:,.0f}",
                f"{row.microseconds_per_event:.1f}",
            )
        console.print("Simulated runs", style="bold")
        console.print(table)
        console.print(WORKLOAD)
        console.print("requests/s: without a listener · events/s, µs/event: a timeline keeps every event")
        for kind, growth in self.growth.items():
            times = SCALES[-1] // SCALES[0]
            console.print(f"{kind}: {times} times the requests take {growth:.2f} times as long an event (1: linear)")
        for look in self.looks:
            memory = "" if look.megabytes is None else f"; the process has had {look.megabytes:,.0f} MB at most"
            console.print(
                f"{look.cache}: any of {look.events:,} events is reached in {look.median_ms:.1f} ms (median), "
                f"{look.worst_ms:.1f} ms (longest of {LOOKS}){memory}"
            )
        console.print(f"Python {self.python}, one thread, processor time, load {self.load:.2f}")


def _best(rows: Sequence[Row]) -> Row:
    """The shortest times of equal runs, because other work on the machine only adds time."""
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
    return Looks(kind, len(timeline), times[len(times) // 2], times[-1], peak_megabytes())


def _timed_look(timeline: Timeline, place: int) -> float:
    start = time.process_time()
    timeline.at(place)
    return time.process_time() - start


EXPERIMENT = SimBench
