"""JSON with origins: written as `json.dumps` writes it, read as `json.loads` reads it, each character traced."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.text.json_writer import dumps
from minicache.text.origin import Field, Key, Value, shift
from minicache.text.payload import loads, path_of, place
from minicache.text.traced import Traced, first_origin, plain_text, runs_of
from tests.text.conversations import JSON, SCALAR, at, marked

PATH = ("tools", 0)
STYLES = st.fixed_dictionaries(
    {"ensure_ascii": st.booleans()},
    optional={
        "indent": st.integers(0, 3) | st.just("\t"),
        "separators": st.just((",", ":")),
        "sort_keys": st.booleans(),
    },
)


def characters(text: str) -> list:
    """Each character with its origin."""
    return [
        (plain_text(text)[start + step], origin and shift(origin, step))
        for start, length, origin in _runs(text)
        for step in range(length)
    ]


def _runs(text: str):
    start = 0
    for length, origin in zip(*runs_of(text), strict=True):
        yield start, length, origin
        start += length


@given(value=JSON, style=STYLES)
def test_it_writes_what_json_writes(value, style):
    assert dumps(place(value, PATH), **style) == json.dumps(value, **style)


@given(value=JSON, style=STYLES)
def test_every_character_is_traced(value, style):
    value, marks = marked({"tools": [{"parameters": value}]})
    text = dumps(place(value["tools"][0], PATH), **style)
    for character, origin in characters(text):
        assert isinstance(origin, (Field, Key, Value))
        assert origin.path[: len(PATH)] == PATH
        found = at(value, origin.path)  # there is something at the path
        if character in marks:
            assert (origin.path, origin.offset) == marks[character]
        elif isinstance(origin, Field):
            assert character in json.dumps(found[origin.offset], ensure_ascii=style["ensure_ascii"])
        elif isinstance(origin, Key):
            assert character in json.dumps(origin.path[-1][origin.offset], ensure_ascii=style["ensure_ascii"])


def test_a_tool_character_by_character():
    text = dumps(place({"name": 'a"\n', "max": 12, "on": True, "no": None, "of": ["é"]}, PATH), ensure_ascii=True)
    pieces = [(plain_text(text)[start : start + length], origin) for start, length, origin in _runs(text)]
    path = lambda *steps: (*PATH, *steps)  # noqa: E731
    assert pieces[:8] == [
        ('{"', Value(PATH)),
        ("name", Key(path("name"), 0)),
        ('": ', Value(PATH)),
        ('"', Value(path("name"))),
        ("a\\", Field(path("name"), 0)),
        ('"\\', Field(path("name"), 1)),
        ("n", Field(path("name"), 2)),
        ('"', Value(path("name"))),
    ]
    assert ("12", Value(path("max"))) in pieces
    assert ("true", Value(path("on"))) in pieces
    assert ("null", Value(path("no"))) in pieces
    assert [origin for _, origin in characters(text)][-9:-3] == [Field(path("of", 0), 0)] * 6


@given(scalar=SCALAR, style=STYLES)
def test_keys_that_are_not_text(scalar, style):
    value = {scalar: scalar}
    key = place(scalar, PATH)
    assert dumps({key: key}, **style) == json.dumps(value, **style)


def test_sorted_keys_keep_their_values():
    value = {"b": 1, "a": {"d": 2, "c": [3]}}
    for style in ({"sort_keys": True}, {"sort_keys": True, "indent": 2}, {}):
        assert dumps(place(value, PATH), **style) == json.dumps(value, **style)


@pytest.mark.parametrize("value", [{1}, object(), {(1, 2): 3}, [b"x"]])
def test_what_json_refuses(value):
    with pytest.raises(TypeError) as theirs:
        json.dumps(value)
    with pytest.raises(TypeError, match=re.escape(str(theirs.value))):
        dumps(value)


@given(value=JSON, style=STYLES)
def test_it_reads_what_json_reads(value, style):
    text = json.dumps(value, **style)
    assert loads(text) == loads(Traced(text, Field(PATH, 0))) == json.loads(text)


@given(value=JSON, style=STYLES)
def test_texts_that_were_read_come_from_their_characters(value, style):
    source = " " + json.dumps(value, **style)
    _check_read(loads(Traced(source, Field(PATH, 0))), source)


def _check_read(value, source: str) -> None:
    if value is None:
        return
    assert path_of(value) == PATH
    if isinstance(value, str):
        for character, origin in characters(value):
            assert source[origin.offset] == character or source[origin.offset] == "\\"
        assert value or source[first_origin(value).offset] == '"'
    elif isinstance(value, dict):
        for key, member in value.items():
            _check_read(key, source)
            _check_read(member, source)
    elif isinstance(value, list):
        for item in value:
            _check_read(item, source)


@pytest.mark.parametrize("text", ["", "{", '{"a" 1}', "[1,]", "nul"])
def test_what_is_no_json(text):
    with pytest.raises(json.JSONDecodeError):
        loads(Traced(text, Field(PATH, 0)))
