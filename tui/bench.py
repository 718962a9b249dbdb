"""How fast the terminal UI is: what a step costs the player, what drawing it costs, how soon the first frame is there.

The run: users of four tenants, each tenant with a system prompt of 512 tokens, ask questions of 64 tokens of their own
and get 32 tokens each, over 10,000 blocks of 16 tokens, until there are about 100,000 events.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from minicache.common.memory import peak_megabytes
from minicache.core import SchedulerConfig
from minicache.sim.collection import no_collection
from minicache.sim.prompt import Segment
from minicache.sim.scenario import CacheSettings, Kind, RequestSpec, Scenario
from minicache.sim.timeline import Timeline

from .player import Player

NUM_BLOCKS, BLOCK_SIZE = 10_000, 16
NUM_EVENTS = 100_000
EVENTS_PER_REQUEST = {"hash": 80, "radix": 90}  # about
SYSTEM, QUESTION, OUTPUT, TENANTS, EVERY = 512, 64, 32, 4, 0.04
STEPS, SEEKS = 200, 30
STATE = ", the state alone"
LIMITS = {  # milliseconds
    "step": 2.0,
    "back": 2.0,
    "seek": 50.0,
    "step: lines": 30.0,
    "back: lines": 30.0,
    "seek: lines": 30.0,
    "screen: lines": 30.0,
    "step" + STATE: 2.0,
    "back" + STATE: 2.0,
}
MEANINGS = """\
step, back, seek   the view-model: the move, and everything that the panels ask the player about it
panels             what the panels compute from that, and ask of Textual, before they draw
lines              drawing the lines that changed; of a screen, all lines, after a change of theme
first sentences    the first place that is shown, and its sentences
"""
MOST_MEGABYTES, FIRST_FRAME = 300.0, 1.0  # and seconds


@dataclass(frozen=True, slots=True)
class Row:
    """Processor time of one kind of work, in milliseconds: the median and the longest of `count` times."""

    cache: str
    work: str
    count: int
    median_ms: float
    p95_ms: float
    worst_ms: float

    def met_by(self, limit: float) -> str:
        """Which of the times keep the limit."""
        figures = (("all", self.worst_ms), ("95 %", self.p95_ms), ("the median", self.median_ms))
        return next((which for which, value in figures if value < limit), "none")


@dataclass(frozen=True, slots=True)
class TuiBench:
    """`first_frame` is in seconds from the start of the program, `megabytes` the most memory that this process has had;
    None where it is not known."""

    rows: list[Row]
    events: dict[str, int]
    first_frame: float | None
    megabytes: float | None
    python: str
    load: float

    @property
    def missed(self) -> list[str]:
        """A sentence for each limit that is not met: of repeated work by its median."""
        measured = [
            (f"{r.work} ({r.cache} cache)", r.median_ms, LIMITS[r.work], "ms") for r in self.rows if r.work in LIMITS
        ]
        measured += [("the first frame", self.first_frame, FIRST_FRAME, "s")] if self.first_frame is not None else []
        measured += [("memory", self.megabytes, MOST_MEGABYTES, "MB")] if self.megabytes is not None else []
        return [
            f"{what} is at {value:,.2f} {unit}, and its limit is {limit:g} {unit}"
            for what, value, limit, unit in measured
            if value >= limit
        ]

    def to_json(self) -> dict[str, Any]:
        return {"benchmark": "tui", **asdict(self)}


def workload(num_requests: int, num_blocks: int = NUM_BLOCKS) -> Scenario:
    """The stated run with `num_requests` requests."""
    specs = tuple(
        RequestSpec(
            id=f"user{number}",
            prompt=(Segment(f"system prompt {number % TENANTS}", SYSTEM), Segment(f"question {number}", QUESTION)),
            max_tokens=OUTPUT,
            at=number * EVERY,
        )
        for number in range(num_requests)
    )
    kinds: tuple[Kind, ...] = ("hash", "radix")
    return Scenario(
        name="bench-tui",
        title="The benchmark's run",
        story=__doc__ or "",
        kinds=kinds,
        caches={kind: CacheSettings(kind, BLOCK_SIZE, num_blocks + 1) for kind in kinds},
        schedulers={"hash": SchedulerConfig.vllm(), "radix": SchedulerConfig.sglang()},
        requests=specs,
    )


def run(
    num_events: int = NUM_EVENTS, report: Callable[[str], None] = lambda _: None, *, drawing: bool = True
) -> TuiBench:
    """Measure; `report` is called with what comes next. Without `drawing` only the player is measured."""
    rows: list[Row] = []
    events: dict[str, int] = {}
    megabytes = None
    kinds: tuple[Kind, ...] = ("hash", "radix")
    for kind in kinds:
        report(f"{kind}: a run of {num_events:,} events")
        timeline = Timeline.record(workload(num_events // EVENTS_PER_REQUEST[kind]), kind)
        events[kind] = len(timeline)
        player = Player(timeline)
        report(f"{kind}: the player")
        rows += _state_rows(player, kind)
        if drawing:
            from .bench_drawing import draw_moves

            report(f"{kind}: the app")
            drawn = draw_moves(player, STEPS, SEEKS, own_process=True)
            rows += [_row(kind, work, times) for work, times in drawn.items()]
        megabytes = megabytes or peak_megabytes()  # before the second run, because it never falls again
    report("the first frame")
    first_frame = _first_frame() if drawing else None
    return TuiBench(rows, events, first_frame, megabytes, sys.version.split()[0], os.getloadavg()[0])


def _state_rows(player: Player, kind: Kind) -> list[Row]:
    middle = len(player.timeline) // 2
    rows = []
    for name, move in (("step", player.step), ("back", player.back)):
        player.seek(middle)
        rows.append(_row(kind, name + STATE, _times(move, STEPS)))
    return rows


def _times(work: Callable[[], object], count: int) -> list[float]:
    """Seconds of processor time of each: other processes of the machine do not count."""
    times = []
    with no_collection():
        for _ in range(count):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
    return times


def _row(cache: str, work: str, seconds: list[float]) -> Row:
    ordered = sorted(1000 * value for value in seconds)
    count = len(ordered)
    return Row(cache, work, count, ordered[count // 2], ordered[int(0.95 * count)], ordered[-1])


def _first_frame() -> float | None:
    """The shortest of three."""
    from .bench_drawing import first_frame

    return min((seconds for _ in range(3) if (seconds := first_frame()) is not None), default=None)


app = typer.Typer(rich_markup_mode=None)


@app.command()
def tui_command(
    events: Annotated[int, typer.Option(min=1000, help="Events of the run that is looked into.")] = NUM_EVENTS,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """The terminal UI: a step of the player, the lines that it changes, the first frame, memory.

    Exit status 1 if a limit is not met.
    """
    result = run(events, lambda what: print(f"… {what}", file=sys.stderr))
    if as_json:
        print(json.dumps(result.to_json(), indent=2))
    else:
        print_result(result)
    for sentence in result.missed:
        print(f"minicache: {sentence}", file=sys.stderr)
    if result.missed:
        raise typer.Exit(1)


def print_result(result: TuiBench) -> None:
    """The figures as a table, each with its limit."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{NUM_BLOCKS:,} blocks, ms of processor time", title_justify="left")
    for column in ("cache", "work", "median", "95 %", "longest", "at most", "met by"):
        table.add_column(column, justify="left" if column in ("cache", "work", "met by") else "right")
    for row in result.rows:
        limit = LIMITS.get(row.work)
        figures = (f"{value:.2f}" for value in (row.median_ms, row.p95_ms, row.worst_ms))
        kept = ("", "") if limit is None else (f"{limit:g}", row.met_by(limit))
        table.add_row(row.cache, row.work, *figures, *kept)
    out = Console()
    out.print(table)
    out.print(MEANINGS)
    out.print(" ".join((__doc__ or "").split("\n\n")[1].split()))
    if result.first_frame is not None:
        kept_to = _limit(result.first_frame, FIRST_FRAME, "s")
        out.print(f"First frame {result.first_frame:.2f} s after the program's start ({kept_to})")
    if result.megabytes is not None:
        kept_to = _limit(result.megabytes, MOST_MEGABYTES, "MB")
        out.print(f"Memory: {result.megabytes:,.0f} MB with the hash chain's run ({kept_to})")
    counts = ", ".join(f"{count:,} with the {kind} cache" for kind, count in result.events.items())
    out.print(f"Events: {counts}; Python {result.python}, load {result.load:.2f}")


def _limit(value: float, most: float, unit: str) -> str:
    return f"at most {most:g} {unit}: {'met' if value < most else 'not met'}"
