"""A paste is one text: whatever is in it, it ends in the field, to the character, and it is no key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.events import Key, Paste
from textual.widgets import Input

from minicache_tui.driver import END, ESCAPE, START, PasteParser
from minicache_tui.keys import KEYS
from minicache_tui.screens.ask import Ask
from minicache_tui.screens.field import seen

from .shell_app import Shell, drive

OF = {key.action: key.keys.split(",")[0] for key in KEYS}
PIECES = st.sampled_from(
    ["a", "q", "\r", "\n", "\t", "\x07", ESCAPE, "\x1b[31m", "\x1b[20", "\x1b[200~", "\x1b]0;x", "é", "你"]
)
PASTED = st.lists(PIECES, max_size=30).map("".join)


@given(PASTED, st.integers(1, 9), st.sampled_from(["", "x", "\x1b[A", "\x1b[2"]))
def test_what_is_pasted_comes_as_one_event_however_it_arrives(text, at_once, before) -> None:
    parser, events = PasteParser(), []
    typed = f"{before}{START}{text}{END}y"
    for index in range(0, len(typed), at_once):
        events += parser.feed(typed[index : index + at_once])
    pasted = [event.text for event in events if isinstance(event, Paste)]
    assert pasted == [text]
    keys = [event.key for event in events if isinstance(event, Key)]
    assert keys[-1] == "y"
    assert len(keys) <= len(before) + 1


@given(st.text(max_size=30))
def test_of_a_text_every_character_is_seen(text) -> None:
    shown = seen(text)
    assert len(shown) == len(text)
    assert shown.isprintable()


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n"])
def test_several_lines_are_one_prompt_and_nothing_is_sent_before_enter(newline) -> None:
    async def play(shell: Shell) -> None:
        original = shell.player
        await shell.press("right", OF["inject"])
        dialog = shell.app.screen
        field = dialog.query_one(Input)
        field.value = "mine1 (2): "
        field.cursor_position = 11
        field.post_message(Paste(newline.join(["one", "q", "three", ""])))
        await shell.pilot.pause()
        await shell.pilot.pause()
        assert shell.app.screen is dialog
        assert "one↵q↵three↵" in " ".join(shell.lines)
        await shell.press("enter")
        spec = shell.player.timeline.changes[-1][1].spec
        assert (spec.id, spec.prompt[0].text) == ("mine1", "one\nq\nthree\n")
        assert shell.player.parent is original

    drive(play)


def test_a_paste_takes_the_place_of_what_is_marked_and_nothing_pasted_changes_nothing() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right", OF["go_to"])
        field = shell.app.screen.query_one(Input)
        field.value = "12345"
        field.select_all()
        field.post_message(Paste(""))
        await shell.pilot.pause()
        assert field.value == "12345"
        field.post_message(Paste("e7\n"))
        await shell.pilot.pause()
        assert field.value == "e7\n"
        await shell.press("enter")
        assert shell.player.place == 7

    drive(play)


def test_nothing_is_pasted_where_nothing_is_asked() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right")
        place, screen = shell.player.place, shell.app.screen
        shell.app.post_message(Paste("q\nn\n\x1b[C"))
        await shell.pilot.pause()
        assert shell.app.screen is screen
        assert (shell.player.place, shell.app._exit) == (place, False)

    drive(play)


def test_a_click_puts_the_cursor_at_the_character_that_is_seen_there() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right", OF["go_to"])
        assert isinstance(shell.app.screen, Ask)
        field = shell.app.screen.query_one(Input)
        field.value = "\x1b\x1b你\u200bab"
        await shell.pilot.pause()
        for index, cell in ((0, 0), (1, 1), (2, 2), (2, 3), (3, 4), (4, 5), (6, 30)):
            await shell.pilot.click(field, offset=(field.styles.padding.left + cell, 0))
            assert field.cursor_position == index, cell

    drive(play)
