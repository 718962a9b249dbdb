"""Helpers of all commands. Results go to stdout, progress and remarks to stderr; `--json` prints one object on
stdout."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from minicache.common.printable import READABLE
from minicache.common.progress import Progress
from minicache.core.errors import InvalidArgument

if TYPE_CHECKING:
    from rich.console import Console

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a report.")]


class CacheChoice(StrEnum):
    hash = "hash"
    radix = "radix"
    both = "both"


def stdout() -> "Console":
    from rich.console import Console

    return Console(highlight=False, markup=False)


def stderr() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False)


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print one JSON value and a newline on stdout, and nothing else."""
    print(json_text(value, indent))


def json_text(value: Any, indent: int | None = 2) -> str:
    """JSON for stdout, in ASCII unless its encoding is Unicode's."""
    unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    return json.dumps(value, indent=indent, ensure_ascii=not unicode)


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
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
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
            bar.update(task, description=what, completed=done, total=total)
            if what not in seen and not console.is_terminal:
                console.print(what, soft_wrap=True)
            seen.add(what)

        yield report
