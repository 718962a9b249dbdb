"""A text with origins behaves like the plain text, and its origins survive every operation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from minicache.text.origin import Field, Literal, shift
from minicache.text.traced import Traced, first_origin, join_pieces, runs_of
from tests.text.conversations import TEXT

SMALL = st.text("ab \n\tß☂", max_size=6)
PIECES = st.lists(st.tuples(SMALL, st.sampled_from(["field", "other", "literal", "plain"])), max_size=5)
SOURCE = {"field": "ab\nab ☂ß" * 4, "other": "b a\tßab\n" * 4}


@st.composite
def traced(draw) -> Traced:
    """Pieces of two fields, of a literal, and of unknown origin."""
    pieces = []
    for text, kind in draw(PIECES):
        if kind in SOURCE:
            start = draw(st.integers(0, 20))
            pieces.append(Traced(SOURCE[kind], Field((kind,), 0))[start : start + len(text)])
        else:
            pieces.append(Traced(text, Literal(1)) if kind == "literal" else text)
    return join_pieces(pieces)


def origins(text: str) -> list:
    """The origin of each character, computed naively."""
    return [
        origin and shift(origin, step) for length, origin in zip(*runs_of(text), strict=True) for step in range(length)
    ]


def check(text: str) -> None:
    """Every character with a field as origin equals the character there."""
    assert len(origins(text)) == len(text)
    for character, origin in zip(str(text), origins(text), strict=True):
        if isinstance(origin, Field):
            assert SOURCE[origin.path[0]][origin.offset] == character


CUTS = st.none() | st.integers(-8, 8)
COUNTS = st.integers(-1, 3)


@given(text=traced(), start=CUTS, stop=CUTS, step=st.sampled_from([None, 1, 2, -1, -2]))
def test_a_slice_is_that_of_the_characters(text, start, stop, step):
    cut = slice(start, stop, step)
    assert text[cut] == "".join(text)[cut]
    assert origins(text[cut]) == origins(text)[cut]


@given(text=traced())
def test_iterating_gives_each_character_its_origin(text):
    assert [first_origin(character) for character in text] == origins(text)
    assert [first_origin(text[index]) for index in range(-len(text), 0)] == origins(text)


@given(left=traced(), right=traced() | SMALL, count=COUNTS)
def test_adding_and_repeating(left, right, count):
    assert origins(left + right) == origins(left) + origins(right)
    assert origins(right + left) == origins(right) + origins(left)
    assert origins(left * count) == origins(count * left) == origins(left) * count
    assert (left + right, right + left, left * count) == (f"{left}{right}", f"{right}{left}", f"{left}" * count)


METHODS = {
    "strip": lambda s, sep, new, n: [s.strip(), s.lstrip(), s.rstrip(), s.strip("ab"), s.lstrip(sep), s.rstrip(sep)],
    "split": lambda s, sep, new, n: [*s.split(), *s.split(None, n), *(s.split(sep, n) if sep else ())],
    "rsplit": lambda s, sep, new, n: [*s.rsplit(), *s.rsplit(None, n), *(s.rsplit(sep, n) if sep else ())],
    "lines": lambda s, sep, new, n: [*s.splitlines(), *s.splitlines(True)],
    "partition": lambda s, sep, new, n: [*s.partition(sep or "a"), *s.rpartition(sep or "a")],
    "prefix": lambda s, sep, new, n: [s.removeprefix(sep), s.removesuffix(sep)],
    "replace": lambda s, sep, new, n: [s.replace(sep, new), s.replace(sep, new, n)],
    "join": lambda s, sep, new, n: [s.join([new, s, sep]), s.join([])],
    "pad": lambda s, sep, new, n: [s.center(n + 9), s.center(n + 8, "."), s.ljust(9), s.rjust(9, "-")],
}


@pytest.mark.parametrize("name", METHODS)
@given(text=traced(), sep=traced(), new=traced(), count=COUNTS)
def test_methods_of_str(name, text, sep, new, count):
    plain = METHODS[name](*map("".join, (text, sep, new)), count)
    results = METHODS[name](text, sep, new, count)
    assert results == plain
    for result in results:
        check(result)
        assert None not in origins(result) or None in origins(text + sep + new) or name == "pad"


@given(text=traced())
def test_changing_case_changes_the_letters_and_not_their_origins(text):
    for method in (str.upper, str.lower, str.title, str.capitalize):
        changed = getattr(text, method.__name__)()
        assert changed == method(text)
        assert len(changed) != len(text) or origins(changed) == origins(text)
    expected = [
        origin for character, origin in zip("".join(text), origins(text), strict=True) for _ in character.upper()
    ]
    assert origins(text.upper()) == expected


@given(text=traced(), value=traced(), number=st.integers())
def test_percent_signs(text, value, number):
    for form in ("%s", "<%5s>", "%.2s|%%", "%s %d"):
        values = (value, number) if "%d" in form else (value,)
        result = Traced(form, Literal(3)) % values
        assert result == form % values
        check(result)
    assert origins(Traced("%s!", Literal(3)) % value) == [*origins(value), Literal(3)]
    assert origins(Traced("%(a)s", Literal(3)) % {"a": value}) == origins(value)
    assert Traced("%(a(b))s!", Literal(3)) % {"a(b)": value} == f"{value}!"
    assert Traced("%*d", Literal(3)) % (5, number) == f"{number:5}"


@given(text=TEXT)
def test_it_is_the_text(text):
    traced_text = Traced(text, Literal(1))
    assert traced_text == text
    assert hash(traced_text) == hash(text)
    assert {text: 1}[traced_text] == 1
    assert str(traced_text) is traced_text
    assert type(traced_text + "x") is type("x" + traced_text) is Traced


def test_what_fails_on_a_text_fails_on_this_one():
    text = Traced("a", Literal(1))
    for operation in (
        lambda: text + 1,
        lambda: 1 + text,
        lambda: text * "2",
        lambda: text.join([1]),
        lambda: text % 3,
        lambda: Traced("%d", None) % "x",
        lambda: text.split(""),
    ):
        with pytest.raises((TypeError, ValueError)):
            operation()
    with pytest.raises(IndexError):
        text[1]


def test_markup_escapes_it():
    text = Traced("<", Literal(1))
    assert text + Markup("<b>") == Markup("&lt;<b>")
    assert Markup("<b>") + text == Markup("<b>&lt;")
