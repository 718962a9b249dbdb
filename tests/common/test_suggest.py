"""A misspelt name is answered with the nearest one, in the same words everywhere."""

from pathlib import Path

import pytest

from minicache.common import suggest
from minicache.common.suggest import nearest, not_one_of, suggestion

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("word", "near"), [("rdx", "radix"), ("hahs", "hash"), ("radix", "radix"), ("xyzzy", None)])
def test_the_nearest_name(word, near):
    assert nearest(word, iter(["hash", "radix"])) == near
    assert suggestion(word, ["hash", "radix"]) == (f": did you mean {near!r}?" if near else "")


def test_what_is_not_one_of_the_names():
    assert not_one_of("rdx", ("hash", "radix")) == "must be one of hash, radix, not 'rdx': did you mean 'radix'?"
    assert not_one_of(3, ["a"]) == "must be one of a, not 3"


def test_no_other_file_looks_for_the_nearest_name():
    files = [file for folder in ("minicache", "tui", "lessons") for file in (ROOT / folder).rglob("*.py")]
    users = [str(file.relative_to(ROOT)) for file in files if "get_close_matches" in file.read_text(encoding="utf-8")]
    assert users == ["minicache/common/suggest.py"]


def test_long_words_and_long_lists_cost_little(monkeypatch):
    monkeypatch.setattr(suggest, "get_close_matches", lambda word, options, n: compared.append((word, options)) or [])
    compared: list = []
    suggest.nearest("a" * 101, ["a" * 100])
    assert not compared
    suggest.nearest("a" * 100, ["a" * 101, *["b" * 100] * 10_000])
    assert [(len(word), len(options)) for word, options in compared] == [(100, 5000)]
