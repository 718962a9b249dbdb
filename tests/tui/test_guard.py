"""Whatever a person, a file or an engine says is text on every screen: no dialog, menu, note or title lets it act."""

from collections.abc import Iterator

import pytest
from rich.segment import Segment
from textual.color import Color
from textual.events import Paste
from textual.widgets import Input, OptionList

from minicache.core.errors import MinicacheError
from minicache.sim.breakpoint import Breakpoint
from minicache.sim.recorded import read_recorded, write_recorded
from minicache_tui.guard import Guard
from minicache_tui.keys import KEYS
from minicache_tui.player import Player, Selection
from minicache_tui.screens.ask import Ask
from minicache_tui.screens.menu import Menu
from minicache_tui.screens.stage import Stage
from tests.thinned import several, thinned

from .panels_app import player_of_text
from .shell_app import Shell, drive

OF = {key.action: key.keys.split(",")[0] for key in KEYS}
HOSTILE = "\x1b]0;IDPWN\x07\x1b[31m\x9b5m\u202e\u2066\u200b\u200d\ufe0f\ufeff\u2028\u3000\x00\x7f\r"
SHOWN = "ev␛]0;IDPWN␇␛[31m"
ID = f"ev{HOSTILE}il"
WRITTEN = "".join(f"\\u{ord(char):04x}" for char in ID)
TOML = f"""
title = "{WRITTEN}"
story = "{WRITTEN}"
[cache]
block_size = 4
num_blocks = 40
[[request]]
id = "{WRITTEN}"
prompt = [{{ text = "{WRITTEN} one" }}, {{ text = "{WRITTEN} two" }}, {{ segment = "{WRITTEN}", tokens = 9 }}]
max_tokens = 3
[[request]]
id = "{WRITTEN}2"
at = 1.0
prompt = [{{ text = "{WRITTEN} one more" }}]
max_tokens = 3
"""


def require_harmless(shell: Shell) -> None:
    for line in shell.lines:
        assert line.isprintable(), line


async def settle(shell: Shell) -> None:
    for _ in range(3):
        await shell.pilot.pause()
        require_harmless(shell)


def hostile_run(tmp_path, recorded: bool) -> Player:
    player = player_of_text(TOML)
    if recorded:
        write_recorded(player.timeline, tmp_path / "run.jsonl")
        player = Player(read_recorded(tmp_path / "run.jsonl"))
    return player


@pytest.mark.parametrize(("recorded", "ascii"), several([(False, False), (True, True), (False, True), (True, False)]))
def test_no_key_shows_anything_that_acts(recorded, ascii, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    player = hostile_run(tmp_path, recorded)

    async def play(shell: Shell) -> None:
        await settle(shell)
        stage = shell.app.screen
        for action, key in OF.items():
            if action == "quit":
                continue
            player.seek(len(player.timeline) * 2 // 3)
            player.select(Selection("request", player.requests()[0].id))
            await shell.press(key)
            await settle(shell)
            while shell.app.screen is not stage:
                if isinstance(shell.app.screen, Stage) or not await opened(shell):
                    shell.app.pop_screen()
                await settle(shell)

    async def opened(shell: Shell) -> bool:
        """Type into a dialog what nobody should; whether it is still there to be closed."""
        screen = shell.app.screen
        if isinstance(screen, Ask):
            for line in (ID, f"request={ID}", f"kind={ID}", f"{ID} (2): {ID}", f"{ID}: {ID}", f"{ID}=1"):
                if shell.app.screen is not screen:
                    return True
                await shell.answer(line)
                await settle(shell)
        return False

    drive(play, player, size=(100, 36), notes=True, ascii=ascii)


@pytest.mark.nightly
def test_every_choice_of_every_menu_is_harmless(tmp_path) -> None:
    player = hostile_run(tmp_path, recorded=False)

    async def play(shell: Shell) -> None:
        stage = shell.app.screen
        for action in ("fork", "compare"):
            index = 0
            while True:
                player.seek(0)
                await shell.press(OF[action])
                await settle(shell)
                assert isinstance(shell.app.screen, Menu)
                options = shell.app.screen.query_one(OptionList)
                count, options.highlighted = options.option_count, index
                await shell.press("enter")
                await settle(shell)
                if isinstance(shell.app.screen, Ask):
                    await shell.press("enter")
                    await settle(shell)
                while shell.app.screen is not stage:
                    shell.app.pop_screen()
                    await settle(shell)
                index += 1
                if index == count:
                    break

    drive(play, player, size=(100, 36), notes=True)


def test_what_was_found_and_what_can_be_removed_is_shown_with_what_cannot_act() -> None:
    player = player_of_text(TOML)

    async def play(shell: Shell) -> None:
        player.end()
        await shell.press(OF["find"])
        await shell.answer("ev")
        await settle(shell)
        assert isinstance(shell.app.screen, Menu)
        assert SHOWN in " ".join(shell.lines)
        player.breakpoints = [Breakpoint(request=ID)]
        await shell.press("escape", OF["add_breakpoint"])
        await settle(shell)
        assert f"Remove: request={SHOWN}" in " ".join(shell.lines)

    drive(play, player, size=(120, 36), notes=True)


def test_a_note_says_what_an_exception_says_and_it_does_nothing() -> None:
    class Engine:
        model = "tiny"
        player = None

        def poll(self) -> bool:
            raise MinicacheError(f"the engine stopped: {ID} [red]here[/red]")

        def close(self) -> None:
            pass

    async def play(shell: Shell) -> None:
        await shell.pilot.pause(0.2)
        await settle(shell)
        assert "the engine stopped: ev·]0;IDPWN··[31m·" in " ".join(shell.lines), "what is replaced is seen"
        assert "[red]here[/red]" in " ".join(shell.lines)
        shell.app.notify(ID, title=ID)
        await settle(shell)

    drive(play, size=(100, 36), notes=True, live=Engine())


@pytest.mark.parametrize("action", thinned(["go_to", "find", "add_breakpoint", "inject"], "inject"))
@pytest.mark.parametrize("ascii", [False, True])
def test_what_is_pasted_is_shown_sign_by_sign_and_is_the_value(action, ascii) -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right", OF[action])
        field = shell.app.screen.query_one(Input)
        field.value = ""
        text = f"{HOSTILE}e\u0301 👩‍👩‍👧 你\ud800end".replace("\r", "")
        field.post_message(Paste(text))
        await settle(shell)
        assert field.value.encode(errors="surrogatepass") == text.encode(errors="surrogatepass")
        assert len(field._value.plain) == len(text)
        for key in ["left"] * len(text):
            await shell.press(key)
            require_harmless(shell)
            assert field.cursor_screen_offset.x < 100
        await shell.press("enter")
        await settle(shell)
        assert "must be text" in shell.error

    drive(play, ascii=ascii, size=(100, 36), notes=True)


def segments() -> Iterator[str]:
    yield "plain"
    yield HOSTILE
    yield "wide 你好 \u3000 \ud800 e\u0301"
    yield "👩‍👩‍👧 ❤️"
    yield ""


@pytest.mark.parametrize("ascii", [False, True])
def test_the_guard_keeps_the_width_of_every_line(ascii) -> None:
    given = [Segment(text) for text in segments()]
    passed = Guard(ascii).apply(given, Color(0, 0, 0))
    assert [segment.cell_length for segment in passed] == [segment.cell_length for segment in given]
    assert all(segment.text.isprintable() for segment in passed)
    assert not ascii or all(segment.text.isascii() for segment in passed)
