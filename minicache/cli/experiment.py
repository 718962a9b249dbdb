"""`minicache experiment`: experiments that show what a prefix cache does."""

import typer

from minicache.bench.experiment import EXPERIMENTS, load
from minicache.cli.commands import Commands
from minicache.cli.measuring import command_of

app = typer.Typer(cls=Commands, add_completion=False, no_args_is_help=True, rich_markup_mode=None)
for name in EXPERIMENTS:
    app.command(name)(command_of(load(name)))


@app.callback()
def experiment() -> None:
    """Experiments that show what a prefix cache does."""
