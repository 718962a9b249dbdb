"""With the ASCII set nothing on any screen is anything else, Textual's own palette included."""

import pytest

from minicache_tui.keys import KEYS
from minicache_tui.panels.line import ascii_only
from minicache_tui.sources import open_both

from .shell_app import Shell, drive

PALETTE = ("ctrl+p",)
OPENED = {
    "chooser": (None, ()),
    "left for the chooser": ("preempt-and-resume", ("end", "left", "escape")),
    "chooser's palette": (None, PALETTE),
    "run": ("preempt-and-resume", ("end",)),
    "notes": ("preempt-and-resume", ("left",)),
    "tree": ("radix-split-and-prune", ("end", "3")),
    "both": ("both", ("right", "right")),
    "palette": ("two-equal-prompts", PALETTE),
    "palette, found": ("two-equal-prompts", (*PALETTE, "f", "o")),
    "palette, nothing found": ("two-equal-prompts", (*PALETTE, "q", "q", "q")),
    "themes": ("two-equal-prompts", (*PALETTE, *"theme", "enter")),
    "menu": ("two-equal-prompts", ("f",)),
    "too small": ("small", ()),
}


@pytest.mark.parametrize("name", OPENED)
def test_every_screen_is_ascii(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # a picture is saved there
    run, keys = OPENED[name]

    async def play(shell: Shell) -> None:
        if run == "small":
            await shell.pilot.resize_terminal(40, 10)
        for key in keys:
            await shell.press(key)
        for _ in range(3):
            await shell.pilot.pause()
            for line in shell.lines:
                assert line.isascii(), line

    opened = open_both("two-equal-prompts") if run == "both" else "two-equal-prompts" if run == "small" else run
    drive(play, opened, size=(100, 36), notes=True, ascii=True)


def test_what_every_key_shows_is_ascii(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # a picture is saved there
    keys = {key.action: key.keys.split(",")[0] for key in KEYS if key.action not in ("leave", "quit")}
    assert keys.keys() >= {"fork", "help", "picture"}

    async def play(shell: Shell) -> None:
        stage = shell.app.screen
        for action, key in keys.items():
            await shell.press("end", "left", key)
            for line in shell.lines:
                assert line.isascii(), (action, line)
            while shell.app.screen is not stage:
                shell.app.pop_screen()
                await shell.pilot.pause()

    drive(play, "preempt-and-resume", size=(100, 36), notes=True, ascii=True)


def test_the_edge_of_a_block_and_a_branch_are_different_signs() -> None:
    assert ascii_only("│") != ascii_only("├")
    assert ascii_only("├") != ascii_only("└")
