"""The command `minicache`: a table of commands, each imported only when it is called.

Exit status: 0 success, 1 the command ran and its answer is no, 2 wrong input or a missing package, 130 interrupted.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, ClassVar, NamedTuple, NoReturn

import typer

import minicache
from minicache.cli.commands import Commands, named_command
from minicache.cli.console import encode_everything, remark, say
from minicache.cli.parsing import UsageError, sentence
from minicache.common.packages import EXTRA_OF_MODULE, package_missing
from minicache.core.errors import InvalidArgument, MinicacheError


class Command(NamedTuple):
    module: str  # has a `typer.Typer` named `app`
    help: str


COMMANDS = {
    "bench": Command("minicache.cli.bench", "Measure the speed of each part on this machine."),
    "demo": Command("minicache.cli.demo", "A model answers with and without a prefix cache: tokens and time saved."),
    "diff": Command("minicache.cli.diff", "Which token broke the prefix of two requests, and what caused it."),
    "doctor": Command("minicache.cli.doctor", "What is installed, what works here, and how to add the rest."),
    "experiment": Command("minicache.cli.experiment", "Experiments that show what a prefix cache does."),
    "kernels": Command("minicache.cli.kernels", "Compile the Triton kernels, and measure them on a GPU."),
    "model": Command("minicache.cli.model", "List models, and download them."),
    "sim": Command("minicache.cli.sim", "Simulate a prefix cache without a model, step by step, with reasons."),
}


class CommandTable(Commands):
    """A group whose help comes from `COMMANDS`, so that `minicache --help` imports no command."""

    entry_points = "minicache.commands"
    elsewhere: ClassVar = {"tui": "Watch a prefix cache at work in the terminal, event by event, forward and back."}

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def ours(self, ctx: Any, name: str) -> Any:
        return named_command(import_module(COMMANDS[name].module).app, name) if name in COMMANDS else None

    def help_of(self, ctx: Any, name: str) -> str:
        return COMMANDS[name].help

    def make_context(self, *args: Any, **extra: Any) -> Any:
        with _reworded():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _reworded():
            return super().invoke(ctx)


@contextmanager
def _reworded() -> Iterator[None]:
    """Turn an error of Typer's parser into `InvalidArgument`, in one sentence."""
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help of a group
            raise
        raise InvalidArgument(sentence(error)) from None


app = typer.Typer(
    cls=CommandTable,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"minicache {minicache.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A small, complete LLM serving engine whose subject is prefix caching."""


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit. Every error that a user can act on becomes one sentence on stderr."""
    # Two spinning OpenMP threads and any other busy process make small products many times slower. Read by torch.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    encode_everything(sys.stdout, sys.stderr)
    try:
        typer.main.get_command(app).main(args=list(sys.argv[1:] if args is None else args), prog_name="minicache")
    except MinicacheError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRA_OF_MODULE:
            raise
        _fail(package_missing(module))
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


def _fail(sentence: str) -> NoReturn:
    remark(sentence)
    sys.exit(2)


if __name__ == "__main__":
    main()
