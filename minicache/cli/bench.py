"""`minicache bench`: measure the speed of each part on this machine."""

from typing import ClassVar

import typer

from minicache.bench.experiment import BENCHMARKS, load
from minicache.cli.commands import Commands
from minicache.cli.measuring import command_of


class Benches(Commands):
    """Ours, and those of installed packages."""

    entry_points = "minicache.benches"
    elsewhere: ClassVar = {
        "tui": "The terminal UI: a step of the player, the lines that it changes, the first frame, memory."
    }


app = typer.Typer(cls=Benches, add_completion=False, no_args_is_help=True, rich_markup_mode=None)
for name in BENCHMARKS:
    app.command(name)(command_of(load(name)))


@app.callback()
def bench() -> None:
    """Measure the speed of each part on this machine."""
