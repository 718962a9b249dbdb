"""What commands share. Results go to stdout, progress and remarks to stderr; `--json` is one object on stdout."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a report.")]


def stdout() -> "Console":
    from rich.console import Console

    return Console(highlight=False, markup=False)


def stderr() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False)


def print_json(value: Any) -> None:
    """One JSON value and a newline on stdout, and nothing else."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    print()


def require_installed(module: str) -> None:
    """Raise the error that importing `module` would, without the time that importing it takes."""
    if find_spec(module) is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A function to call with what is being done, how much of it is done, of how much; the bar goes when it ends.

    Without a terminal each kind of thing that is done gets one line.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = stderr()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        seen: set[str] = set()

        def report(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)
            if what not in seen and not console.is_terminal:
                console.print(what)
            seen.add(what)

        yield report
