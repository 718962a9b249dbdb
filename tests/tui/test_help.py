"""The help: everything in it can be read with the keyboard, at every size; it says the keys as they are."""

import re

import pytest
from textual.widgets import Input

from minicache_tui.help_text import OTHER_SIGNS, _flow, about, legend
from minicache_tui.keys import FIXED, GROUPS, KEYS, keys_in_use, named, typed
from minicache_tui.model.strip import GLYPHS, KINDS, WORDS
from minicache_tui.panels.line import ascii_only, width_of
from minicache_tui.panels.panel import Panel
from minicache_tui.screens.chooser import Chooser
from minicache_tui.screens.help import Help
from minicache_tui.screens.main import MainScreen
from minicache_tui.screens.stage import Stage
from minicache_tui.signs import MEANINGS, Sign
from tests.thinned import thinned

from .shell_app import Shell, drive, until

SIZES = [(60, 20), (80, 24), (120, 36), (160, 48)]


def squeezed(text: str) -> str:
    return re.sub(r"[^\w]+", "", text)


async def whole(shell: Shell, key: str = "pagedown") -> list[str]:
    """The lines between the frame, page after page."""
    lines: list[str] = []
    for _ in range(40):
        await shell.pilot.pause()
        page = [line[2:-2].rstrip() for line in shell.lines[1:-1]]
        fresh = next(i for i in range(len(page) + 1) if page[: len(page) - i] == lines[len(lines) - len(page) + i :])
        lines += page[len(page) - fresh :]
        before = shell.lines
        await shell.press(key)
        if shell.lines == before:
            return lines
        await shell.pilot.pause()
    raise AssertionError("it does not end")


@pytest.mark.parametrize("size", thinned(SIZES, SIZES[0], SIZES[-1]))
@pytest.mark.parametrize("options", thinned([{}, {"ascii": True}, {"light": True}]), ids=["dark", "ascii", "light"])
def test_all_of_it_can_be_read_at_every_size(size, options) -> None:
    async def play(shell: Shell) -> None:
        await shell.press("question_mark")
        assert isinstance(shell.app.screen, Help)
        assert len(shell.lines) == size[1]
        assert all(width_of(line) == size[0] for line in shell.lines), "it fills the screen"
        text = squeezed(" ".join(await whole(shell, "pagedown")))
        if size[0] >= 120:  # two columns: what is broken at the end of one goes on behind the other
            text += squeezed(" ".join(line[: size[0] // 2] for line in await whole(shell)))
        for words in (*MEANINGS.values(), *WORDS, *(words for _, _, words in OTHER_SIGNS)):
            assert all(squeezed(word) in text for word in words.replace("several", "3").split()), words
        for what in (*(key.what for key in KEYS), *(what for _, what in FIXED), *GROUPS):
            assert all(squeezed(shell.app.plain(word)) in text for word in what.split()), what
        assert all(line.isascii() for line in shell.lines) or not options.get("ascii")

    drive(play, size=size, **options)


def test_it_is_scrolled_and_closed_by_key() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("question_mark")
        top = shell.lines
        assert "more lines" in top[-1]
        for there, back in (("down", "up"), ("j", "k"), ("pagedown", "pageup"), ("space", "b"), ("end", "home")):
            await shell.press(there)
            assert shell.lines != top, there
            await shell.press(back)
            assert shell.lines == top, back
        await shell.press("end")
        assert "more lines" not in shell.lines[-1]
        for key in ("question_mark", "f1", "escape", "q"):
            if not isinstance(shell.app.screen, Help):
                await shell.press("question_mark")
            await shell.press(key)
            assert isinstance(shell.app.screen, Stage), key
            assert not shell.app._exit

    drive(play, size=(80, 24))


def test_it_begins_with_what_has_the_focus() -> None:
    async def play(shell: Shell) -> None:
        seen = set()
        for _ in range(8):
            await shell.press("question_mark")
            seen.add(shell.lines[0].strip("╭╮─ "))
            await shell.press("escape", "tab")
        assert {"Help: What you see", "Help: Block pool", "Help: Tokens", "Help: Explain", "Help: Event strip"} <= seen

    drive(play, size=(160, 48))


def test_the_chooser_has_help_too() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("question_mark")
        assert "Choose a run" in shell.lines[0]
        await shell.press("escape")
        assert isinstance(shell.app.screen, Chooser)

    drive(play, None, size=(80, 24))


def test_every_panel_says_what_it_shows_with_the_keys_as_they_are() -> None:
    keys = keys_in_use({"zoom": "x", "forward": "w"})
    helps = [cls.HELP for cls in (*subclasses(Panel), MainScreen, Chooser) if cls.HELP]
    assert len(helps) >= 10
    for help in helps:
        rows = list(about(help.strip().partition("\n")[2], keys, 76))
        text = "\n".join("".join(part for part, _ in row) for row in rows)
        assert len(text) > 80
        assert not re.search(r"\*\*|`|[{}]|^#|\|", text, re.MULTILINE), "no marks are left"
        assert all(sum(width_of(part) for part, _ in row) <= 76 for row in rows)
    pool = next(help for help in helps if "Block pool" in help)
    assert "x again" in " ".join("".join(part for part, _ in row) for row in about(pool, keys, 100))


def subclasses(cls: type) -> list[type]:
    return [found for sub in cls.__subclasses__() for found in (sub, *subclasses(sub))]


def test_stress_and_code_are_styled_and_the_words_stay() -> None:
    rows = list(_flow("a **bold word** and `code`, then more", 12))
    lines = ["".join(part for part, _ in row) for row in rows]
    assert lines == ["a bold word", "and code,", "then more"]
    bold = "".join(part for row in rows for part, style in row if style.startswith("bold"))
    assert bold == "boldwordcode"


def test_no_two_signs_are_told_apart_by_colour_alone() -> None:
    for clean in (str, ascii_only):
        assert len(set(map(clean, GLYPHS))) == len(KINDS)
    for ascii in (False, True):
        heads = [row[0][0] for row in legend(ascii, 100) if len(row) > 1 and not row[1][0].strip()]
        assert len(heads) == len(Sign) + len(GLYPHS) + len(OTHER_SIGNS)
        assert len(set(heads[: len(Sign)])) == len(Sign)


# Keys as a person types them


@pytest.mark.parametrize(
    ("name", "shown"),
    [("left_square_bracket", "["), ("question_mark", "?"), ("shift+right", "shift+→"), ("f8", "f8"), ("H", "H")],
)
def test_a_key_is_shown_as_it_is_typed_and_read_so_too(name, shown) -> None:
    assert typed(name) == shown
    assert named(shown) == named(name) == name


def test_every_key_of_the_table_can_be_written_as_it_is_shown() -> None:
    for key in KEYS:
        for name in key.keys.split(","):
            assert "_" not in typed(name)
            assert named(typed(name)) == name


def test_the_palette_shows_keys_as_they_are_typed() -> None:
    """An action is found in it by its words, and its keys stand below."""
    keymap = {"next_hit": "x"}
    tried = ("faster", "previous_alike", "next_request", "next_hit", "leave", "run_to_cursor")

    async def play(shell: Shell) -> None:
        for action in tried:
            names = keys_in_use(keymap)[action]
            what = next(key.what for key in KEYS if key.action == action)
            await shell.press("ctrl+p")
            shell.app.screen.query_one(Input).value = what
            shown = f"Key: {' '.join(names)} "
            await until(shell, lambda: shown in " ".join(shell.lines))  # noqa: B023 (it is called at once)
            assert "_" not in " ".join(shell.lines)
            await shell.press("escape")
        await shell.press("ctrl+p")
        shell.app.screen.query_one(Input).value = "Keys"
        for _ in range(5):
            await shell.pilot.pause(0.05)
        assert "help panel" not in " ".join(shell.lines), "the help is ours"

    drive(play, keymap=keymap, size=(160, 48))
