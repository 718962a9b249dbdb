"""From a vector's id to its test, and back.

A vector is one row of the specification: operations on a real engine's cache, and what came out. Its test carries the
row's id, twice: in a decorator of this module, which says what the row fixes, and in pytest's own id, so that

    python -m pytest tests/vectors -k "V1.3]"

runs it. `docs/reference/vectors.md` is written from this registry by `write_page.py`.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
Test = Callable[..., Any]


@dataclass
class Held:
    """A vector that holds: the rule that it fixes, and the tests that check it, as `path::name`."""

    fixes: str
    tests: list[str] = field(default_factory=list)


HELD: dict[str, Held] = {}


def _register(id: str, fixes: str, test: Test) -> None:
    path = Path(test.__code__.co_filename).resolve().relative_to(ROOT).as_posix()
    held = HELD.setdefault(id, Held(fixes))
    name = f"{path}::{test.__name__}"
    if name not in held.tests:
        held.tests.append(name)


def vector(id: str, fixes: str) -> Callable[[Test], Test]:
    """The test checks one row. It may be parametrized further."""

    def decorate(test: Test) -> Test:
        _register(id, fixes, test)
        return pytest.mark.parametrize((), [pytest.param(id=id)])(test)

    return decorate


def table(names: str, rows: dict[str, tuple[Any, ...]]) -> Callable[[Test], Test]:
    """The test checks one row a run. `rows` maps ids to what the row fixes and the values of the arguments `names`."""

    def decorate(test: Test) -> Test:
        for id, (fixes, *_) in rows.items():
            _register(id, fixes, test)
        params = [pytest.param(*values, id=id) for id, (_, *values) in rows.items()]
        return pytest.mark.parametrize(tuple(name.strip() for name in names.split(",")), params)(test)

    return decorate


def story(rows: dict[str, str]) -> Callable[[Callable[[], Iterator[str]]], Test]:
    """Rows that go on from one another. The test is a generator that yields each id when its row has been checked.

    Each row is a run of its own, from the beginning of the story to its own `yield`.
    """

    def decorate(test: Callable[[], Iterator[str]]) -> Test:
        for id, fixes in rows.items():
            _register(id, fixes, test)

        @functools.wraps(test)
        def up_to(vector_id: str) -> None:
            assert vector_id in test(), f"the story ends before it comes to {vector_id}"

        parameter = inspect.Parameter("vector_id", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        up_to.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
        return pytest.mark.parametrize("vector_id", list(rows))(up_to)

    return decorate
