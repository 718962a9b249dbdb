"""`minicache bench`: how fast the parts are, measured where it runs."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from minicache.cli.console import JsonOption, print_json, progress_bar, require_installed, stdout
from minicache.cli.experiment import ModelOption, default_model
from minicache.cli.main import load_entry_point, named_command

if TYPE_CHECKING:
    from minicache.bench.core import CoreBench
    from minicache.bench.sim import SimBench

ENTRY_POINT_GROUP = "minicache.benches"


class Benches(TyperGroup):
    """Ours, and those of installed packages, which are looked up by name."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The benchmark of that name; raises `UnknownCommand`."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        return named_command(load_entry_point(ENTRY_POINT_GROUP, cmd_name, self.commands, "minicache bench"), cmd_name)


app = typer.Typer(cls=Benches, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def bench() -> None:
    """How fast the parts are, measured where it runs."""


@app.command("core")
def core_command(
    rounds: Annotated[int, typer.Option(min=1, help="Requests of the smallest size; larger ones get fewer.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """Hashing, lookup, allocation and release of one request, in both caches."""
    from minicache.bench import core

    with progress_bar() as report:
        result = core.run(rounds, report)
    if as_json:
        print_json(result.to_json())
    else:
        _print_core(result)


def _print_core(result: "CoreBench") -> None:
    from rich.table import Table

    from minicache.bench.core import REFERENCE, SIZES, UNSHARED

    table = Table(title=f"One request, all but {UNSHARED} tokens cached (median)", title_justify="left")
    for column in ("operation", "tokens", "µs", "ns/token", "× hashlib", "× list =="):
        table.add_column(column, justify="left" if column == "operation" else "right")
    for row in result.rows:
        table.add_row(
            row.operation,
            f"{row.num_tokens:,}",
            f"{row.microseconds:,.0f}",
            f"{row.ns_per_token:.1f}",
            f"{row.to_hashlib:.1f}",
            f"{row.to_list_comparison:.1f}",
        )
    out = stdout()
    out.print(table)
    out.print("hash: all block hashes · hash cache: lookup, allocate, publish, release")
    out.print("radix: match and insert · radix cache: lookup, allocate, publish, release")
    out.print("× hashlib, × list ==: times what hashing, or comparing, the same tokens once took in this run")
    for row in result.rows:
        if row.num_tokens == SIZES[0] and row.operation in REFERENCE:
            engine, reference = REFERENCE[row.operation]
            out.print(f"{row.operation}: {row.microseconds / reference:.2f} of the {reference:.0f} µs of {engine}")
    events = ", ".join(f"{count} a request in the {name}" for name, count in result.events_per_request.items())
    out.print(f"Events without a listener: {result.ns_per_check:.0f} ns each; {events}")
    out.print(f"Python {result.python}, one thread, load {result.load:.2f}")


class Baseline(StrEnum):
    transformers = "transformers"


@app.command("engine")
def engine_command(
    against: Annotated[Baseline | None, typer.Option(help="Measure this beside it.", show_default=False)] = None,
    model: ModelOption = None,
    block_size: Annotated[int, typer.Option(min=1, help="Tokens of a block of the KV cache.")] = 16,
    rounds: Annotated[int, typer.Option(min=1, help="Each is a cold prompt, a warm one and a batch.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Prefill and decoding with a real model: how fast, how much memory, what part of the machine's own speed."""
    from minicache.bench import engine
    from minicache.bench.engine_report import print_report
    from minicache.engine.models import store as model_store

    require_installed("torch")
    if against is not None:
        require_installed(against.value)
    settings = engine.Settings(model or default_model(), block_size, rounds, against and against.value)
    model_store.resolve(settings.model)
    with progress_bar() as report:
        result = engine.run(settings, report)
    if as_json:
        print_json(result.to_json())
    else:
        print_report(result, stdout())


@app.command("sim")
def sim_command(
    requests: Annotated[
        int, typer.Option(min=10, help="Requests of the smallest run; the largest has 16 times.")
    ] = 100,
    as_json: JsonOption = False,
) -> None:
    """The simulator: events and requests per second, whether time is linear, how fast a timeline goes to any event."""
    from minicache.bench import sim

    with progress_bar() as report:
        result = sim.run(requests, report=report)
    if as_json:
        print_json(result.to_json())
    else:
        _print_sim(result)


def _print_sim(result: "SimBench") -> None:
    from rich.table import Table

    from minicache.bench import sim

    table = Table(title="Simulated runs", title_justify="left")
    for column in ("cache", "requests", "events", "requests/s", "events/s", "µs/event"):
        table.add_column(column, justify="left" if column == "cache" else "right")
    for row in result.rows:
        table.add_row(
            row.cache,
            f"{row.requests:,}",
            f"{row.events:,}",
            f"{row.requests_per_second:,.0f}",
            f"{row.events_per_second:,.0f}",
            f"{row.microseconds_per_event:.1f}",
        )
    out = stdout()
    out.print(table)
    out.print(" ".join((sim.__doc__ or "").split("\n\n")[1].split()))
    out.print("requests/s: nobody listens · events/s, µs/event: a timeline keeps every event")
    for kind, growth in result.growth.items():
        out.print(f"{kind}: 16 times the requests take {growth:.2f} times as long an event (1: linear)")
    for look in result.looks:
        memory = "" if look.megabytes is None else f"; the process has had {look.megabytes:,.0f} MB at most"
        out.print(
            f"{look.cache}: any of {look.events:,} events is reached in {look.median_ms:.1f} ms (median), "
            f"{look.worst_ms:.1f} ms (longest of {sim.LOOKS}){memory}"
        )
    out.print(f"Python {result.python}, one thread, processor time, load {result.load:.2f}")
