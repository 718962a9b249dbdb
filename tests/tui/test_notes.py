"""Where notes stand, and what a terminal says that is too small."""

import pytest
from textual.widgets._toast import Toast

from minicache_tui.keys import KEYS
from minicache_tui.panels.belt import Belt
from minicache_tui.panels.chain import Chain
from minicache_tui.panels.panel import Panel
from minicache_tui.panels.pool import Pool
from minicache_tui.panels.requests import Requests
from minicache_tui.panels.tree import Tree
from minicache_tui.screens.stage import Stage
from minicache_tui.screens.too_small import TooSmall
from minicache_tui.sources import open_both
from tests.thinned import thinned

from .shell_app import Shell, drive

OF = {key.action: key.keys.split(",")[0] for key in KEYS}
SIZES = [(60, 20), (80, 24), (100, 36), (120, 36), (120, 30), (160, 48)]


@pytest.mark.parametrize("size", thinned(SIZES, (60, 20), (120, 36)))
@pytest.mark.parametrize("run", ["timestamp-top", "both"])
def test_a_note_covers_neither_titles_nor_the_figures_of_any_panel(run, size) -> None:
    opened = open_both("timestamp-top") if run == "both" else run

    async def play(shell: Shell) -> None:
        await shell.press("end")
        if run != "both":
            await shell.press(OF["inject"], "enter")
        else:
            await shell.press(OF["compare"])
        for _ in range(4):
            await shell.pilot.pause()
        (toast,) = shell.stage.query(Toast)
        assert toast.region
        assert toast.region.x >= 0
        assert toast.region.right <= size[0]
        for panel in shell.stage.query(Panel):
            if isinstance(panel, Pool | Requests | Chain | Tree) and panel.region:
                assert toast.region.y > panel.region.y, f"the title of {panel}"
            elif not isinstance(panel, Belt):
                assert not toast.region.overlaps(panel.region), panel

    drive(play, opened, size=size, notes=True)


@pytest.mark.parametrize("size", SIZES[:2])
def test_a_note_of_a_live_run_can_be_read_whole(size) -> None:
    words = "prompt-1 is served: space plays what happens, → goes on to the next thing."

    async def play(shell: Shell) -> None:
        shell.stage.notify(words)
        for _ in range(3):
            await shell.pilot.pause()
        (toast,) = shell.stage.query(Toast)
        region = toast.region
        lines = [line[region.x : region.right].strip("▌ ") for line in shell.lines[region.y : region.bottom]]
        assert " ".join(lines) == words

    drive(play, size=size, notes=True)


# Too small


def test_what_is_too_small_is_said_in_whole() -> None:
    async def play(shell: Shell) -> None:
        for size in ((50, 15), (59, 30), (30, 8), (80, 10), (20, 6)):
            await shell.pilot.resize_terminal(*size)
            await shell.pilot.pause()
            text = " ".join(" ".join(shell.lines).split())
            assert text == "Too small: at least 60×20 characters are needed. Ctrl-C quits.", size

    drive(play)


@pytest.mark.parametrize("before", thinned([("f",), (), ("g",), ("question_mark",), ("ctrl+p",)]))
def test_too_small_is_gone_when_it_is_larger_whatever_was_pressed(before) -> None:
    async def play(shell: Shell) -> None:
        for keys in ((), ("ctrl+p",), ("question_mark",), ("f",), ("ctrl+p", "q")):
            await smaller_and_larger(shell, keys)

    async def smaller_and_larger(shell: Shell, keys: tuple[str, ...]) -> None:
        stage = shell.app.screen
        await shell.press(*before)
        dialog = shell.app.screen
        await shell.pilot.resize_terminal(50, 15)
        await shell.pilot.pause()
        assert isinstance(shell.app.screen, TooSmall)
        await shell.press(*keys)
        await shell.pilot.resize_terminal(40, 10)
        await shell.pilot.pause()
        await shell.pilot.resize_terminal(80, 24)
        await shell.pilot.pause()
        assert shell.app.screen is dialog
        assert not any(isinstance(screen, TooSmall) for screen in shell.app.screen_stack)
        if dialog is not stage:
            await shell.press("escape")
        await shell.pilot.pause()
        assert shell.app.screen is stage

    drive(play)


def test_what_opened_over_it_all_the_same_takes_it_away_when_it_closes() -> None:
    async def play(shell: Shell) -> None:
        await shell.pilot.resize_terminal(50, 15)
        await shell.pilot.pause()
        shell.app.open_help()
        await shell.pilot.resize_terminal(80, 24)
        await shell.pilot.pause()
        await shell.press("escape")
        await shell.pilot.pause()
        await shell.pilot.pause()
        assert isinstance(shell.app.screen, Stage)

    drive(play)
