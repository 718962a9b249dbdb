"""Parameters of a test; some of them are only for `make nightly`."""

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(values: Iterable[Any], *kept: Any) -> list[Any]:
    """All `values`; those not in `kept` are tried nightly. Without any `kept`, that is all but the first."""
    every = list(values)
    in_every_run = kept or every[:1]
    assert all(value in every for value in in_every_run)
    return [value if value in in_every_run else pytest.param(value, marks=pytest.mark.nightly) for value in every]


def several(cases: Iterable[tuple[Any, ...]], *kept: int) -> list[Any]:
    """The same for cases of several parameters; `kept` are their numbers."""
    return [
        case if number in (kept or (0,)) else pytest.param(*case, marks=pytest.mark.nightly)
        for number, case in enumerate(cases)
    ]
