"""`minicache tui`: watch a prefix cache at work, event by event, forward and back."""

import os
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minicache.core.errors import InvalidArgument, MinicacheError

if TYPE_CHECKING:
    from .comparison import Comparison
    from .live import LiveEngine
    from .player import Player

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class CannotStart(MinicacheError):
    """The terminal cannot show it."""


class CacheChoice(StrEnum):
    hash = "hash"
    radix = "radix"
    both = "both"


class ModelChoice(StrEnum):
    tiny = "tiny"
    smollm2 = "smollm2"


class ThemeChoice(StrEnum):
    dark = "dark"
    light = "light"


@app.command()
def tui(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENARIO",
            help="A name from `minicache sim list`, or a file .toml; by default a list to choose from.",
            show_default=False,
        ),
    ] = None,
    cache: Annotated[
        CacheChoice | None,
        typer.Option(help="The hash chain, the radix tree, or both side by side.", show_default=False),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting: cache.num_blocks=64.", show_default=False),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Show a recorded run: an event log (.jsonl).", show_default=False),
    ] = None,
    engine: Annotated[
        ModelChoice | None, typer.Option(help="Type prompts and watch a live engine serve them.", show_default=False)
    ] = None,
    step: Annotated[int | None, typer.Option(help="Begin at this scheduler step.", show_default=False)] = None,
    event: Annotated[int | None, typer.Option(help="Begin at this event.", show_default=False)] = None,
    request: Annotated[
        str | None, typer.Option(help="Begin where this request arrives, and select it.", show_default=False)
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save a picture instead; no terminal is needed.", show_default=False),
    ] = None,
    size: Annotated[str, typer.Option(metavar="COLUMNSxLINES", help="Size of the picture.")] = "160x48",
    theme: Annotated[ThemeChoice, typer.Option(help="Colours.")] = ThemeChoice.dark,
    ascii: Annotated[bool, typer.Option("--ascii", help="Signs and lines in plain ASCII.")] = False,
    reduced_motion: Annotated[
        bool, typer.Option("--reduced-motion", help="Changes appear at once, without motion.")
    ] = False,
    keys: Annotated[bool, typer.Option("--keys", help="List the keys and where to change them, and exit.")] = False,
) -> None:
    """Watch a prefix cache at work, event by event, forward and back."""
    if keys:
        _print_keys()
        return
    if sum(source is not None for source in (scenario, events, engine)) > 1:
        raise InvalidArgument("SCENARIO, --events and --engine: give one of them")
    columns_lines = _size(size)
    if svg is None and engine is not None:
        _require_terminal()  # before a model is loaded for nothing
    elif engine is not None:
        raise InvalidArgument("--svg: a live engine has nothing to draw before a prompt is typed")
    opened, live = _open(scenario, cache, settings or [], events, engine)
    _go(opened, step, event, request)
    if svg is None:
        _require_terminal()
    light = theme is ThemeChoice.light
    if svg is not None:
        if opened is None:
            raise InvalidArgument("--svg: name a scenario to draw")
        _draw(opened, svg, columns_lines, ascii, light, events or scenario or "")
        _print(f"Saved {svg}")
        return
    from .app import MinicacheApp
    from .keymap import read_keymap

    ascii = ascii or not _has_unicode()
    screen = MinicacheApp(
        opened,
        live=live,
        ascii=ascii,
        light=light,
        reduced_motion=reduced_motion,
        keymap=read_keymap(keymap_path()),
        own_process=True,
    )
    screen.run()
    if screen.return_code:
        raise typer.Exit(screen.return_code)


def _has_unicode() -> bool:
    """Whether the encoding in use, as of `PYTHONIOENCODING`, has what our frames and signs are made of."""
    where_textual_writes = getattr(sys, "__stderr__", None)
    try:
        "╭▲●".encode(getattr(where_textual_writes, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _print(line: str) -> None:
    """On standard output; nothing in the line acts on the terminal."""
    from .panels.line import printable

    print(printable(line))


def keymap_path() -> Path:
    """Where a person's own keys are read from."""
    from platformdirs import user_config_path

    return user_config_path("minicache", appauthor=False) / "keys.toml"


def _print_keys() -> None:
    from .keymap import read_keymap
    from .keys import KEYS, keys_in_use

    keys = {action: " ".join(names) for action, names in keys_in_use(read_keymap(keymap_path())).items()}
    width = max(map(len, keys)) + 2
    shown = max(map(len, keys.values())) + 2
    for key in KEYS:
        _print(f"{key.action.ljust(width)}{keys[key.action].ljust(shown)}{key.what}")
    print()
    _print(f'Other keys: write lines such as forward = "l,→" below [keys] in {keymap_path()}')


def _size(text: str) -> tuple[int, int]:
    written = re.fullmatch(r"(\d{1,4})x(\d{1,4})", text)
    if written is None or not (60 <= int(written[1]) <= 500 and 20 <= int(written[2]) <= 200):
        raise InvalidArgument(f"--size {text}: write columns x lines, from 60x20 to 500x200, such as 160x48")
    return int(written[1]), int(written[2])


def _require_terminal() -> None:
    """Raise `CannotStart` where there is no terminal, or one that is too small to read."""
    from .app import MIN_HEIGHT, MIN_WIDTH

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CannotStart(
            "minicache tui needs a terminal: `minicache sim run SCENARIO --plain` prints the same as text, and "
            "--svg FILE saves a picture"
        )
    for name in ("COLUMNS", "LINES"):  # what a shell exported once; Textual would believe it
        os.environ.pop(name, None)
    size = os.get_terminal_size(sys.stdout.fileno())
    if size.columns < MIN_WIDTH or size.lines < MIN_HEIGHT:
        raise CannotStart(
            f"the terminal has {size.columns}×{size.lines} characters: make it at least {MIN_WIDTH}×{MIN_HEIGHT}, or "
            "use `minicache sim run SCENARIO --plain`"
        )


def _open(
    scenario: str | None,
    cache: CacheChoice | None,
    settings: list[str],
    events: Path | None,
    engine: ModelChoice | None,
) -> "tuple[Player | Comparison | None, LiveEngine | None]":
    from . import sources

    kind = None if cache is None or cache is CacheChoice.both else cache.value
    if engine is not None:
        from .live import LiveEngine

        if sys.stderr.isatty():
            print(f"Loading {engine.value} …", end="", file=sys.stderr, flush=True)
        try:
            live = LiveEngine(engine.value, kind or "hash")  # type: ignore[arg-type]
        finally:
            if sys.stderr.isatty():
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)  # nothing of it stays
        return live.player, live
    if events is not None:
        return sources.open_log(events, kind, settings), None  # type: ignore[arg-type]
    if scenario is None:
        if cache is not None or settings:
            raise InvalidArgument("--cache and --set: name the scenario that they are for")
        return None, None
    if cache is CacheChoice.both:
        return sources.open_both(scenario, settings), None
    return sources.open_run(scenario, kind, settings), None  # type: ignore[arg-type]


def _go(opened: "Player | Comparison | None", step: int | None, event: int | None, request: str | None) -> None:
    from . import sources

    if step is None and event is None and request is None:
        return
    if opened is None:
        raise InvalidArgument("--step, --event and --request: name the scenario that they are in")
    sources.go_to(opened, step, event, request)


def _draw(
    opened: "Player | Comparison", path: Path, size: tuple[int, int], ascii: bool, light: bool, source: str | Path
) -> None:
    from minicache.common.files import require_writable, write_text

    from .picture import draw

    try:
        require_writable(path, source)  # before a picture is drawn for nothing, and never what it is drawn from
        write_text(path, draw(opened, size, ascii=ascii, light=light))
    except OSError as error:
        raise InvalidArgument(f"--svg {path}: cannot be written: {error.strerror}") from None
