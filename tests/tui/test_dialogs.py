"""Dialogs in the smallest terminal: what is asked, what is chosen and what is wrong can be seen."""

import pytest
from textual.widgets import OptionList

from minicache_tui.changes import ASKS
from minicache_tui.keys import KEYS

from .shell_app import Shell, drive

OF = {key.action: key.keys.split(",")[0] for key in KEYS}


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
def test_every_choice_of_a_menu_is_seen_when_it_is_chosen(size) -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right", OF["fork"])
        options = shell.app.screen.query_one(OptionList)
        for ask in ASKS:
            text = " ".join(" ".join(line.split("│")[-3:]) for line in shell.lines)
            assert ask.title.split()[-1] in text, ask.title
            assert options.region.bottom <= size[1] - 1
            await shell.press("down")

    drive(play, "preempt-and-resume", size=size)


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
def test_the_end_of_a_long_complaint_is_seen(size) -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right", OF["add_breakpoint"])
        await shell.answer("kind=zzz")
        await shell.pilot.pause()
        await shell.pilot.pause()
        assert "no kind of event 'zzz'" in shell.error
        assert shell.error.endswith("TokensSampled")
        assert "TokensSampled" in "".join(shell.lines[-7:])
        assert "kind=zzz" in " ".join(shell.lines)

    drive(play, "preempt-and-resume", size=size)


def test_what_is_suggested_is_typed_over_and_what_is_to_be_edited_is_not() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right", OF["add_breakpoint"], "b", "l", "o", "c", "k", "=", "3", "enter")
        assert shell.player.breakpoints[0].block == 3
        await shell.press(OF["inject"], "!", "enter")
        assert "!" in shell.player.timeline.changes[-1][1].spec.prompt[-1].text[-1]

    drive(play, "preempt-and-resume")
