"""Every vector is held by a test or out for a reason, and the page says which."""

import pytest

from tests.vectors import write_page
from tests.vectors.registry import HELD
from tests.vectors.scope import OUT, PARTLY, SPEC, ids_of_spec, in_scope, load_all, number

load_all()


def test_every_vector_in_scope_has_a_test() -> None:
    assert [id for id in in_scope() if id not in HELD] == []


def test_no_vector_is_held_and_out() -> None:
    assert [id for id in HELD if id in OUT or number(id) in OUT] == []
    assert [id for id in HELD if number(id) not in in_scope()] == []
    assert [id for id in PARTLY if id not in HELD] == []


def test_every_vector_of_the_specification_is_held_or_out() -> None:
    if not SPEC.exists():
        pytest.skip(f"the specification is not in this checkout: {SPEC}")
    ids = ids_of_spec()
    assert len(ids) > 150
    assert sorted(id for id in ids if id not in HELD and id not in OUT and number(id) not in OUT) == []
    assert sorted(id for id in [*HELD, *OUT] if id not in ids and not id.startswith("F")) == []


def test_the_page_is_up_to_date() -> None:
    assert write_page.PAGE.exists(), "run: python -m tests.vectors.write_page"
    assert write_page.PAGE.read_text(encoding="utf-8") == write_page.page(), (
        "docs/reference/vectors.md is not what the tests say: run python -m tests.vectors.write_page"
    )
