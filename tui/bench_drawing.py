"""What the program costs beside Textual: the app without a terminal, at 160 × 48, and the time of what it does itself.

player.step()                                      view-model
stage.sync()                                       panels
    ├ player.ribbon(), player.chain() and so on    view-model
    └ redraw  which lines differ                   lines
(Textual)   render_line  those lines               lines
"""

import asyncio
import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .app import MinicacheApp
from .model.rows import TreeModel
from .panels.panel import Panel
from .player import Player
from .screens.stage import Stage

SIZE = (160, 48)
SCREENS = 10  # so often the whole screen is drawn
SHOWN = b"A timestamp at the top"  # what the first frame of `timestamp-top` says
PATIENCE = 20.0  # seconds
MODEL, PANELS, LINES = "", ": panels", ": lines"


class Stopwatch:
    """Seconds of processor time by what was done: a view-model that a panel asks counts as the view-model."""

    def __init__(self, stage: Stage, player: Player) -> None:
        self.spent = {MODEL: 0.0, PANELS: 0.0, LINES: 0.0}
        self._doing, self._since = PANELS, time.process_time()
        for panel in stage.query(Panel):
            for name in ("redraw", "render_line"):
                setattr(panel, name, self._timed(LINES, getattr(panel, name)))
        for name in dir(type(player)):
            if not name.startswith("_") and callable(getattr(type(player), name)):
                setattr(player, name, self._timed(MODEL, getattr(player, name)))

    def start(self) -> None:
        self._do(PANELS)
        self.spent = dict.fromkeys(self.spent, 0.0)

    def read(self) -> dict[str, float]:
        self._do(self._doing)
        return dict(self.spent)

    def _timed(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            before = self._do(what)
            try:
                found = call(*arguments, **options)
            finally:
                self._do(before)
            if isinstance(found, TreeModel):  # its rows are made when they are asked for
                found.rows.make = self._timed(MODEL, found.rows.make)
            if isinstance(found, Iterator):
                return iter(self._timed(MODEL, partial(next, found, None)), None)
            return found

        return timed

    def _do(self, what: str) -> str:
        """Go on with something else; returns what was done until now."""
        now, before = time.process_time(), self._doing
        self.spent[before] += now - self._since
        self._doing, self._since = what, now
        return before


def draw_moves(player: Player, count: int, seeks: int, own_process: bool = False) -> dict[str, list[float]]:
    """Step and go back `count` times from the middle of the run, seek to `seeks` places, draw whole screens. Returns
    seconds of processor time of each: of the view-model, of the panels that read it, and of drawing lines.
    `own_process` is the app's: `minicache tui` has a process of its own."""
    player.start()  # where nothing is told yet
    app = MinicacheApp(player, reduced_motion=True, clock=lambda: 0.0, own_process=own_process)
    times: dict[str, list[float]] = {}
    middle, last = len(player.timeline) // 2, len(player.timeline) - 1
    places = random.Random(0)

    async def play() -> None:
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            stage = app.screen
            assert isinstance(stage, Stage)
            watch = Stopwatch(stage, player)

            async def measure(name: str, work: Callable[[], object], count: int) -> None:
                for _ in range(count):
                    watch.start()
                    work()
                    stage.sync()
                    update = watch.read()
                    await pilot.pause()
                    for what, seconds in (update | {LINES: watch.read()[LINES]}).items():
                        times.setdefault(name + what, []).append(seconds)

            await measure("first sentences", lambda: player.seek(middle), 1)
            await measure("step", player.step, count)
            player.seek(middle)
            stage.sync()
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
