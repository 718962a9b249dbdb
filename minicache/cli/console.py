"""Helpers of all commands. Results go to stdout, progress and remarks to stderr; `--json` prints one object on
stdout.

Only this file prints, and what it prints is made printable here: ids, titles and names are a stranger's words. A line
of a report is one line, whatever the words in it are.
"""

import json
import math
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from minicache.common.printable import READABLE, printable, printable_json, without_middle
from minicache.common.progress import Progress
from minicache.core.errors import InvalidArgument

if TYPE_CHECKING:
    from rich.console import Console

LONGEST_SENTENCE = 4000  # characters of an error
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a report.")]


class CacheChoice(StrEnum):
    hash = "hash"
    radix = "radix"
    both = "both"


def say(*lines: str) -> None:
    """Print lines on stdout."""
    print(*map(printable, lines), sep="\n")


def remark(sentence: str) -> None:
    """Print a sentence on stderr, after the program's name; without its middle if a name in it makes it very long. A
    stderr that cannot be written changes nothing: the exit status still says how the command ended."""
    with suppress(OSError):
        print(f"minicache: {without_middle(printable(sentence), LONGEST_SENTENCE)}", file=sys.stderr)


def stdout() -> "Console":
    """For tables, styles and wrapped text. Each text that it prints and each cell is one line: print("a", "b",
    sep="\\n") prints two."""
    return _console(stderr=False)


def stderr() -> "Console":
    return _console(stderr=True)


def _console(stderr: bool) -> "Console":
    from rich.console import Console
    from rich.text import Text

    class PrintableConsole(Console):
        def render_str(self, text: str, **how: Any) -> Text:  # every text and cell becomes a `Text` here
            return super().render_str(printable(text), **how)

    return PrintableConsole(stderr=stderr, highlight=False, markup=False, emoji=False)


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print one JSON value and a newline on stdout, and nothing else."""
    print(json_text(value, indent))


def json_text(value: Any, indent: int | None = 2) -> str:
    """JSON for stdout, without unprintable characters; in ASCII unless its encoding is Unicode's."""
    unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    return printable_json(json.dumps(_finite(value), indent=indent, ensure_ascii=not unicode))


def _finite(value: Any) -> Any:
    """The value with null for each number that JSON does not have, such as a time divided by 0."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def open_everything() -> None:
    """Give a process that was started without stdout or stderr (`>&-`) streams that discard what is printed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


def flush_everything() -> None:
    """Write what stdout and stderr hold back. Raises the `OSError` of stdout.

    A stream that failed leads nowhere from then on, so that Python does not fail again when it exits.
    """
    failure = None
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except OSError as error:
            failure = error if stream is sys.stdout else None
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if failure is not None:
        raise failure


def print_traceback(error: BaseException) -> None:
    """Print the traceback of an error on stderr."""
    with suppress(OSError):
        for part in traceback.format_exception(error):
            print(*map(printable, part.splitlines()), sep="\n", file=sys.stderr)


def encode_everything(*streams: TextIO) -> None:
    """Make these streams replace characters that their encoding lacks, instead of raising `UnicodeEncodeError`."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)  # a stream of a test may have none
        if reconfigure is not None:
            reconfigure(errors=READABLE)


@contextmanager
def writing(option: str, path: Path) -> Iterator[None]:
    """Turn an `OSError` inside the block into the sentence that the file of this option cannot be written."""
    try:
        yield
    except OSError as error:
        raise InvalidArgument(f"{option} {path}: cannot be written: {error.strerror}") from None


def require_installed(module: str) -> None:
    """Raise the error that an import of `module` would raise, without the time that the import takes."""
    if find_spec(module) is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A `Progress` that draws a bar until the block ends.

    Without a terminal each kind of work gets one line. Lines printed on stdout in the meantime stay above the bar.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = stderr()
    description = TextColumn("{task.description}", markup=False)
    columns = (description, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        redirect_stdout=sys.stdout.isatty(),  # what goes into a file must not be drawn on the terminal
    ) as bar:
        task = bar.add_task("", total=None)
        seen: set[str] = set()

        def report(what: str, done: int, total: int) -> None:
            bar.update(task, description=printable(what), completed=done, total=total)
            if what not in seen and not console.is_terminal:
                console.print(what, soft_wrap=True)
            seen.add(what)

        yield report
