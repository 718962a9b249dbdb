"""What the program costs beside Textual: the app without a terminal, at 160 × 48, and the time of what it does itself.

player.step()  stage.sync()                        update: all of it but the drawing
                   └ redraw  which lines differ    drawing
(Textual)            render_line  those lines      drawing
"""

import asyncio
import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from .app import MinicacheApp
from .panels.panel import Panel
from .player import Player
from .screens.stage import Stage

SIZE = (160, 48)
SCREENS = 10  # so often the whole screen is drawn
SHOWN = b"A timestamp at the top"  # what the first frame of `timestamp-top` says
PATIENCE = 20.0  # seconds


class Stopwatch:
    """Seconds of processor time that the panels of a stage have been drawing."""

    def __init__(self, stage: Stage) -> None:
        self.drawing = 0.0
        for panel in stage.query(Panel):
            for name in ("redraw", "render_line"):
                setattr(panel, name, self._timed(getattr(panel, name)))

    def _timed(self, draw: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: object) -> Any:
            start = time.process_time()
            try:
                return draw(*arguments)
            finally:
                self.drawing += time.process_time() - start

        return timed


def draw_moves(player: Player, count: int, seeks: int) -> dict[str, list[float]]:
    """Step and go back `count` times from the middle of the run, seek to `seeks` places, draw whole screens. Returns
    seconds of processor time of each: of the update, and of drawing."""
    player.start()  # where nothing is told yet
    app = MinicacheApp(player, reduced_motion=True, clock=lambda: 0.0)
    times: dict[str, list[float]] = {}
    middle, last = len(player.timeline) // 2, len(player.timeline) - 1
    places = random.Random(0)

    async def play() -> None:
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            stage = app.screen
            assert isinstance(stage, Stage)
            watch = Stopwatch(stage)

            async def measure(name: str, work: Callable[[], object], count: int) -> None:
                updates, drawing = times.setdefault(name, []), times.setdefault(f"{name}: lines", [])
                for _ in range(count):
                    watch.drawing, start = 0.0, time.process_time()
                    work()
                    stage.sync()
                    updates.append(time.process_time() - start - watch.drawing)
                    await pilot.pause()
                    drawing.append(watch.drawing)

            await measure("first sentences", lambda: player.seek(middle), 1)
            await measure("step", player.step, count)
            player.seek(middle)
            await measure("back", player.back, count)
            await measure("seek", lambda: player.seek(places.randint(0, last)), seeks)
            await measure("screen", app.action_toggle_theme, SCREENS)

    asyncio.run(play())
    return times


def first_frame() -> float | None:
    """Seconds from the start of `minicache tui` in a terminal of its own until it shows a scenario; None where there
    are no such terminals."""
    try:
        import pty
        import termios
    except ImportError:  # not on Windows
        return None
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (SIZE[1], SIZE[0]))
    start = time.perf_counter()
    program = subprocess.Popen(
        [sys.executable, "-m", "minicache", "tui", "timestamp-top"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env=os.environ | {"TERM": "xterm-256color"},
    )
    os.close(theirs)
    shown = b""
    try:
        while SHOWN not in shown:
            if not select.select([ours], [], [], PATIENCE)[0]:
                raise TimeoutError(f"minicache tui has shown nothing for {PATIENCE:g} s: start it by hand to see why")
            shown += os.read(ours, 1 << 16)
        return time.perf_counter() - start
    finally:
        program.kill()
        program.wait()
        os.close(ours)
