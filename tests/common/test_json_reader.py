import pytest

from minicache.common.json_reader import DEEPEST, read_json


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + "1" + closing * depth


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a": ', "}"), ('[{"a": [', "]}]")])
def test_depth(opening, closing):
    levels = opening.count("[") + opening.count("{")
    assert read_json(nested(DEEPEST // levels, opening, closing))
    for depth in (DEEPEST // levels + 1, 500, 20_000):
        with pytest.raises(ValueError, match=f"nested more than {DEEPEST} levels deep"):
            read_json(nested(depth, opening, closing))


def test_many_values_are_no_depth():
    assert len(read_json("[" + "[[]], " * 10_000 + "1]")) == 10_001


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "line 1 column 2"),
        (b'"\xff"', "not text in UTF-8: byte 1 is 0xff"),
        ("9" * 5_000, "more digits than can be converted"),
        ("[1, -" + "9" * 5_000 + "]", "more digits than can be converted"),
    ],
)
def test_what_cannot_be_read(text, reason):
    with pytest.raises(ValueError, match=reason):
        read_json(text)


def test_what_python_reads_is_read_the_same():
    assert str(read_json('{"a": NaN, "b": [-Infinity, 1e400], "a": 2, "é": null}')) == str(
        {"a": 2, "b": [float("-inf"), float("inf")], "é": None}
    )
