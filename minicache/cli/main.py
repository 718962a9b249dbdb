"""The command `minicache`: a table of commands, each imported only when it is called.

Exit status:

    0    success
    1    the command ran, and its answer is no
    2    wrong input, or a missing package
    70   a fault of minicache: please report it; `minicache --debug COMMAND …` prints the traceback
    74   stdout cannot be written, for example because the disk is full
    130  Ctrl-C; 129, 141, 143: SIGHUP, the reader of stdout has gone, SIGTERM
"""

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import takewhile
from typing import Annotated, Any, ClassVar, NamedTuple, NoReturn

import typer

import minicache
from minicache.cli.commands import Commands, named_command
from minicache.cli.console import encode_everything, flush_everything, open_everything, print_traceback, remark, say
from minicache.cli.parsing import UsageError, sentence
from minicache.common.files import signals_as_exits
from minicache.common.packages import EXTRA_OF_MODULE, package_missing
from minicache.core.errors import InvalidArgument, MinicacheError

FAULT = 70  # EX_SOFTWARE of sysexits.h
OUTPUT_FAILED = 74  # EX_IOERR
READER_GONE = 141  # what a shell reports for a program that SIGPIPE ended
OUTPUT_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


class ReaderGone(Exception):
    """stdout is a pipe that its reader has closed. No `OSError`, because Typer would exit with status 1."""


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
    """Turn an error of Typer's parser into `InvalidArgument`, in one sentence, and a closed pipe into `ReaderGone`."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None
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
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an unexpected failure.")] = False,
) -> None:
    """A small, complete LLM serving engine whose subject is prefix caching."""


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit. Every error that a user can act on becomes one sentence on stderr, and so does every
    other one."""
    # Two spinning OpenMP threads and any other busy process make small products many times slower. Read by torch.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    open_everything()
    encode_everything(sys.stdout, sys.stderr)
    with signals_as_exits():
        status = _run(list(sys.argv[1:] if args is None else args))
        try:
            flush_everything()
        except BrokenPipeError:
            status = READER_GONE
        except OSError as error:
            status = _output_failed(error)
    sys.exit(status)


def _run(args: list[str]) -> int:
    """Run one command; returns the exit status."""
    try:
        typer.main.get_command(app).main(args=args, prog_name="minicache")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return 130
    except ReaderGone:
        return READER_GONE
    except MinicacheError as error:
        return _refuse(str(error))
    except BaseException as error:  # a fault of ours or of a library; Rust's panics are no `Exception`
        if isinstance(error, ModuleNotFoundError):
            module = (error.name or "").partition(".")[0]
            if module in EXTRA_OF_MODULE:
                return _refuse(package_missing(module))
        if isinstance(error, OSError) and error.filename is None and error.errno in OUTPUT_ERRORS:
            return _output_failed(error)
        return _fault(error, args)
    return 0


def _refuse(sentence: str) -> int:
    remark(sentence)
    return 2


def _output_failed(error: OSError) -> int:
    remark(f"stdout cannot be written: {error.strerror}")
    return OUTPUT_FAILED


def _fault(error: BaseException, args: list[str]) -> int:
    """Report a failure that nothing expected. Its words may quote a request, so `--redact` leaves only its type."""
    words = "" if "--redact" in args else " ".join(str(error).split())
    debug = "--debug" in takewhile(lambda arg: arg.startswith("-"), args)
    if debug:
        print_traceback(error)
    remark(
        f"unexpected failure, {type(error).__name__}{': ' * bool(words)}{words}. This is a fault of minicache: please "
        + ("report it" if debug else "report it with the traceback that `minicache --debug COMMAND …` prints")
    )
    return FAULT


if __name__ == "__main__":
    main()
