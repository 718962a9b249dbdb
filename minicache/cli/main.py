"""The front door of the command line: a table of commands, each imported only when it is asked for.

Exit status: 0 done, 1 the command ran and its answer is no, 2 wrong input or something is missing, 130 interrupted.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperGroup

import minicache
from minicache.common.packages import EXTRA_OF_MODULE, package_missing
from minicache.common.printable import printable
from minicache.common.suggest import suggestion
from minicache.core.errors import MinicacheError


class Command(NamedTuple):
    module: str  # has a `typer.Typer` named `app`
    help: str


COMMANDS = {
    "bench": Command("minicache.cli.bench", "How fast the parts are, measured where it runs."),
    "demo": Command("minicache.cli.demo", "A model answers with a prefix cache and without: what it reuses and saves."),
    "diff": Command("minicache.cli.diff", "Which token broke the prefix of two requests, and whose fault it was."),
    "doctor": Command("minicache.cli.doctor", "What is installed, what works here, and what to do about each gap."),
    "experiment": Command("minicache.cli.experiment", "Experiments that show what a prefix cache does."),
    "kernels": Command("minicache.cli.kernels", "What the Triton kernels compile to, and how fast they are on a GPU."),
    "model": Command("minicache.cli.model", "List and pull models."),
    "sim": Command("minicache.cli.sim", "Scenarios without a model: what a prefix cache does, step by step, and why."),
}
# Commands that other packages of this distribution bring: named in the help, found by entry point when called.
ELSEWHERE = {"tui": "Watch a prefix cache at work in the terminal, event by event, forward and back."}
ENTRY_POINT_GROUP = "minicache.commands"


class UnknownCommand(MinicacheError):
    """No command of that name, neither ours nor an installed package's."""


class CommandTable(TyperGroup):
    """A group whose help comes from `COMMANDS`, so that `minicache --help` imports none of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; raises `UnknownCommand`. Entry points are read only for a name not in the table."""
        ours = COMMANDS.get(cmd_name)
        app = import_module(ours.module).app if ours else _load_entry_point(cmd_name)
        return named_command(app, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            ours = {name: command.help for name, command in COMMANDS.items()}
            formatter.write_dl(sorted((ours | ELSEWHERE).items()))

    def make_context(self, *args: Any, **extra: Any) -> Any:
        with _printable_complaints():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _printable_complaints():
            return super().invoke(ctx)


@contextmanager
def _printable_complaints() -> Iterator[None]:
    """What is wrong with an argument is said with the argument in it, which may be anything."""
    try:
        yield
    except Exception as error:
        if isinstance(getattr(error, "message", None), str):  # as all errors of Typer's parser have one
            error.message = printable(error.message, keep="\n")  # type: ignore[attr-defined]
        raise


def named_command(app: typer.Typer, name: str) -> Any:
    """What `click` runs for `app`, under that name."""
    command = typer.main.get_command(app)
    command.name = name
    return command


def _load_entry_point(name: str) -> typer.Typer:
    return load_entry_point(ENTRY_POINT_GROUP, name, COMMANDS, "minicache")


def load_entry_point(group: str, name: str, ours: Iterable[str], program: str) -> typer.Typer:
    """The app that an installed package registers under `name`; raises `UnknownCommand`, with the nearest name."""
    from importlib.metadata import entry_points  # 0.1 s with the scan: not for a name that is in the table

    found = {entry.name: entry for entry in entry_points(group=group)}
    if name in found:
        app: typer.Typer = found[name].load()
        return app
    hint = suggestion(name, [*ours, *found]) or f": `{program} --help` lists the commands."
    raise UnknownCommand(f"There is no command {name!r}{hint}")


app = typer.Typer(
    cls=CommandTable,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"minicache {minicache.__version__}")
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
    # Two spinning OpenMP threads beside any busy process make small products many times slower. Read when torch loads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
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
    print("minicache:", printable(sentence, keep="\n"), file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
