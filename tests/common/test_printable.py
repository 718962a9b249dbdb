"""Nothing in a printable text acts on a terminal, and a reader can still see what was there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.common.printable import printable, printable_json


@given(st.text(st.characters(codec=None)))
def test_no_character_acts_on_a_terminal(text):
    shown = printable(text)
    assert shown.isprintable()
    shown.encode()
    assert printable(shown) == shown


def test_escapes():
    assert printable("a\x1b[2J\ud800\n\u2028é") == "a\\x1b[2J\\ud800\\n\\u2028é"
    assert printable("a\nb\t", keep="\n") == "a\nb\\t"


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F)])
def test_what_a_terminal_obeys_is_escaped(code):
    assert len(printable(chr(code))) > 1
    assert printable_json(json.dumps(chr(code), ensure_ascii=False)).isprintable()


def test_what_people_read_stays():
    for text in ("é n\u0303", "語ｆｕ", "❤\ufe0f", "\U000e0100", "שלום", "👍🏽", "ก็"):
        assert printable(text) == text


VALUES = st.recursive(
    st.none() | st.text(st.characters(codec=None)), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_json_keeps_its_value_and_its_lines(value, indent, ascii):
    written = json.dumps(value, indent=indent, ensure_ascii=ascii)
    shown = printable_json(written)
    assert json.loads(shown) == json.loads(json.dumps(value))
    assert all(line.isprintable() for line in shown.split("\n"))
    assert shown.count("\n") == written.count("\n")
