"""Dialogs in the smallest terminal: what is asked, what is chosen and what is wrong can be seen."""

import pytest
from textual.widgets import Input, OptionList

from minicache_tui.asks import offers
from minicache_tui.keys import KEYS

from .shell_app import Shell, drive

OF = {key.action: key.keys.split(",")[0] for key in KEYS}


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
def test_every_choice_of_a_menu_is_seen_when_it_is_chosen(size) -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right")
        offered = offers(shell.player)
        await shell.press(OF["fork"])
        options = shell.app.screen.query_one(OptionList)
        for ask, _ in offered:
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
        assert "'zzz' is not an event type" in shell.error
        assert shell.error.endswith("TokensSampled")
        assert "TokensSampled" in "".join(shell.lines[-7:])
        assert "kind=zzz" in " ".join(shell.lines)

    drive(play, "preempt-and-resume", size=size)


def test_of_a_long_line_that_is_to_be_edited_the_end_is_seen_and_a_bare_prompt_will_do() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("end", OF["inject"])
        field = shell.app.screen.query_one(Input)
        for _ in range(5):
            await shell.pilot.pause()
        assert len(field.value) > field.size.width
        assert field.value[-12:] in " ".join(shell.lines)
        assert "esc leaves" in " ".join(shell.lines)
        await shell.answer("Where is my parcel?")
        assert shell.player.timeline.changes[-1][1].spec.id == "mine1"

    drive(play, "timestamp-top", size=(80, 24))


def test_a_dialog_has_help_and_is_there_again_behind_it() -> None:
    async def play(shell: Shell) -> None:
        for action, key, words in (("fork", "question_mark", "A choice"), ("go_to", "f1", "A line to type")):
            await shell.press(OF[action])
            dialog = shell.app.screen
            await shell.press(key)
            await shell.pilot.pause()
            assert words in shell.lines[0]
            await shell.press("escape")
            assert shell.app.screen is dialog
            await shell.press("escape")

    drive(play)


def test_what_is_suggested_is_typed_over_and_what_is_to_be_edited_is_not() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right", OF["add_breakpoint"], "b", "l", "o", "c", "k", "=", "3", "enter")
        assert shell.player.breakpoints[0].block == 3
        await shell.press(OF["inject"], "!", "enter")
        assert "!" in shell.player.timeline.changes[-1][1].spec.prompt[-1].text[-1]

    drive(play, "preempt-and-resume")


def test_only_where_a_prompt_of_parts_is_typed_it_is_said_how_it_is_written() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right")
        for action, choice, told in (("inject", None, True), ("go_to", None, False), ("fork", "Another prompt", True)):
            await shell.press(OF[action])
            if choice:
                await shell.choose(choice)
            dialog = " ".join(" ".join(line.strip(" │") for line in shell.lines).split())
            assert ("\\| is a | of" in dialog) == told, action
            await shell.press("f1")
            await shell.pilot.pause()
            assert ("\\| is a | of your text" in " ".join(shell.lines)) == told, action
            await shell.press("escape", "escape")

    drive(play, "timestamp-top", size=(100, 40))


def test_a_bar_of_ones_own_text_is_sent_as_the_dialog_says() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right", OF["inject"])
        await shell.answer(r"either \| or | behind it")
        parts = shell.player.timeline.changes[-1][1].spec.prompt
        assert [part.text for part in parts] == ["either | or", "behind it"]

    drive(play, "timestamp-top")
