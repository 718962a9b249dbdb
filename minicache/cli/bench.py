"""`minicache bench`: how fast the parts are, measured where it runs."""

from typing import TYPE_CHECKING, Annotated

import typer

from minicache.cli.console import JsonOption, print_json, progress_bar, stdout

if TYPE_CHECKING:
    from minicache.bench.core import CoreBench

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


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
