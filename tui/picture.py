"""Pictures of the screen (SVG): by a key, and without a terminal for the site."""

import asyncio
import re
from itertools import count
from pathlib import Path

from textual.app import App

from minicache.common.files import write_text
from minicache.common.printable import replace_unprintable

from .comparison import Comparison
from .panels.line import REPLACEMENT, printable
from .player import Player

_WEB_FONT = re.compile(r"@font-face\s*{[^}]*}\s*")  # Rich names one on a server; a picture asks no network
ROUNDS = 4  # the footer is made when the bindings are known, and then what stands beside it has another width
LONGEST_NAME = 40  # characters of what a run is called, in the name of a file


def picture_of(app: App[None], title: str) -> str:
    """The screen as it is, as SVG: XML, whatever the title says and whatever some widget drew."""
    svg = app.export_screenshot(title=printable(title), simplify=True)
    style, end, drawn = svg.partition("</style>")
    return replace_unprintable(
        _WEB_FONT.sub("", style) + end + drawn, lambda char: char if char == "\n" else REPLACEMENT
    )


def write_new(folder: Path, name: str, svg: str) -> Path:
    """Write NAME.svg, or NAME-2.svg, NAME-3.svg where there is one already; which it is. Raises `OSError`."""
    for number in count(1):
        path = folder / (f"{name}.svg" if number == 1 else f"{name}-{number}.svg")
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            continue
        try:
            write_text(path, svg)
        except BaseException:  # a signal too
            path.unlink(missing_ok=True)
            raise
        return path
    raise AssertionError("numbers do not end")


def file_name(playable: Player | Comparison) -> str:
    """What is shown and where, as the name of a file without its ending: `minicache-thrashing-hash-fork-event-12`."""
    if isinstance(playable, Comparison):
        words = [*playable.brief, _where(playable.left.place)]
        if playable.right.place != playable.left.place:
            words.append(f"and {max(0, playable.right.place)}")
    else:
        fork = [] if playable.parent is None else ["fork"]
        words = [playable.timeline.kind, *fork, _where(playable.place)]
    return "-".join(["minicache", _plain(playable.name)[:LONGEST_NAME], *map(_plain, words)])


def _where(place: int) -> str:
    return "start" if place < 0 else f"event {place}"


def _plain(words: str) -> str:
    """Of letters, digits and hyphens."""
    return re.sub(r"[\W_]+", "-", words).strip("-") or "run"


def draw(playable: Player | Comparison, size: tuple[int, int], *, ascii: bool = False, light: bool = False) -> str:
    """The screen of a terminal of `size` (columns, lines) that shows the player where it is; `ascii` and `light` as in
    `MinicacheApp`. The same player gives the same picture."""
    from .app import MinicacheApp

    async def run() -> str:
        app = MinicacheApp(playable, reduced_motion=True, clock=lambda: 0.0, ascii=ascii, light=light)
        async with app.run_test(size=size) as pilot:
            for _ in range(ROUNDS):
                await pilot.pause()
            return picture_of(app, playable.title)

    return asyncio.run(run())
