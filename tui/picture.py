"""Pictures of the screen (SVG): by a key, and without a terminal for the site."""

import asyncio
import os
from pathlib import Path

from textual.app import App

from .comparison import Comparison
from .player import Player

ROUNDS = 4  # the footer is made when the bindings are known, and then what stands beside it has another width


def picture_of(app: App[None], title: str) -> str:
    """The screen as it is, as SVG."""
    return app.export_screenshot(title=title, simplify=True)


def write(path: Path, svg: str) -> None:
    """The file is there when it is complete, and not before. Raises `OSError`."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(svg, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def draw(playable: Player | Comparison, size: tuple[int, int], *, ascii: bool = False, light: bool = False) -> str:
    """The screen of a terminal of `size` (columns, lines) that shows the player where it is; `ascii` and `light` as in
    `MinicacheApp`. The same player gives the same picture."""
    from .app import MinicacheApp

    async def run() -> str:
        app = MinicacheApp(playable, reduced_motion=True, clock=lambda: 0.0, ascii=ascii, light=light)
        async with app.run_test(size=size) as pilot:
            for _ in range(ROUNDS):
                await pilot.pause()
            title = playable.title if isinstance(playable, Player) else " and ".join(playable.labels)
            return picture_of(app, title)

    return asyncio.run(run())
