"""Nothing in a printable text acts on a terminal, and a reader can still see what was there."""

from hypothesis import given
from hypothesis import strategies as st

from minicache.common.printable import printable


@given(st.text(st.characters(codec=None)))
def test_no_character_acts_on_a_terminal(text):
    shown = printable(text)
    assert shown.isprintable()
    shown.encode()
    assert printable(shown) == shown


def test_escapes():
    assert printable("a\x1b[2J\ud800\n\u2028é") == "a\\x1b[2J\\ud800\\n\\u2028é"
    assert printable("a\nb\t", keep="\n") == "a\nb\\t"
