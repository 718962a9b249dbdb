"""Text on its way to the screen: nothing in it acts on the terminal, and its width is what the terminal makes of it."""

import random
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from minicache_tui.panels.line import Line, ascii_only, cut, head, printable, width_of, wrapped

NASTY = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b31m",
    "a\rb\nc\td\x00\x08\x7f",
    "\u202eabc\u202c\u2066x\u2069\u200f\u061c",
    "\u200b\u2028\u2029\ufeff\u00ad",
    "\ud800\ue000\U0010ffff",
]


@pytest.mark.parametrize("text", NASTY)
def test_nothing_that_acts_on_the_terminal_gets_through(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for char in shown)


def test_every_character_alone_is_shown_in_one_cell_or_two_or_dropped() -> None:
    for code in (*range(0x20000), *range(0xE0000, 0xE0200)):  # the others are ideographs, private or unassigned
        shown = printable(chr(code))
        assert shown.isprintable()
        assert cell_len(shown) == width_of(shown) <= 2, hex(code)
        assert shown == "" or width_of(shown) >= 1, hex(code)


@given(st.text(max_size=12))
def test_the_width_is_the_sum_of_its_characters_as_the_library_counts(text: str) -> None:
    assert width_of(printable(text)) == cell_len(printable(text))


def test_the_width_holds_for_characters_that_act_on_their_neighbours() -> None:
    marks = [chr(code) for code in range(0x300, sys.maxunicode + 1) if unicodedata.category(chr(code)) in ("Mn", "Mc")]
    bases = ["a", "中", "👩", "ᄀ", "ᅡ", "\u200d", "\ufe0f", "🏽", "🇩", "क", "❤", " "]
    chance = random.Random(1)
    for _ in range(20_000):
        text = "".join(chance.choice(bases) if chance.random() < 0.6 else chance.choice(marks) for _ in range(6))
        assert width_of(printable(text)) == cell_len(printable(text)), ascii(text)


def test_what_people_write_stays_as_it_is() -> None:
    for text in ("[x] and [/red] stay", "naïve cafe\u0301", "你好，世界", "שלום", "🙂 ok", "a_b {c} | d"):
        assert printable(text) == text


def test_an_emoji_of_several_parts_becomes_its_parts_and_a_flag_its_letters() -> None:
    assert printable("👨‍👩‍👧") == "👨👩👧"
    assert printable("👍🏽❤️") == "👍❤"
    assert printable("🇩🇪") == "DE"


def test_cutting_never_halves_a_wide_character() -> None:
    assert cut("你好世界", 5) == "你好…"
    assert cut("你好世界", 4) == "你…"
    assert head("你好", 3) == "你"
    assert head("e\u0301x", 1) == "e\u0301"


@given(st.text(max_size=20), st.integers(0, 12), st.integers(0, 30))
def test_a_line_is_never_longer_than_its_width(text: str, width: int, column: int) -> None:
    line = Line(width).add("ab").add(text, "hit", width=column).add(text)
    assert cell_len(line.text) == line.end <= width


def test_neighbours_of_one_style_are_one_run() -> None:
    line = Line(20).add("a", "hit").add("b", "hit").add("c")
    assert list(line) == [("ab", "hit"), ("c", "")]


def test_half_a_wide_character_at_the_edge_is_a_space() -> None:
    assert Line(3).add("你好").text == "你 "


@given(st.text(max_size=60), st.integers(1, 20))
def test_wrapping_keeps_every_word_and_the_width(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert all(width_of(line) <= max(width, 2) for line in lines)
    assert "".join("".join(lines).split()) == "".join("".join(printable(part) for part in text.split("\n")).split())


def test_wrapping_breaks_between_words() -> None:
    assert wrapped("one two three", 8) == ["one two", "three"]
    assert wrapped("a verylongword", 6) == ["a very", "longwo", "rd"]


@given(st.text(max_size=20))
def test_ascii_only_keeps_the_width(text: str) -> None:
    shown = ascii_only(printable(text))
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) == width_of(printable(text))
