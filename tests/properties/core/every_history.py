"""The check of a law on histories: on fixed ones that are known to be eventful, then on those that hypothesis finds."""

from collections import Counter

import pytest
from hypothesis import example, given

from tests.core.laws import fixed_histories, nothing_missing
from tests.core.world import Watcher, histories

in_every_history = pytest.mark.parametrize(
    ("world", "kind"), [(world, kind) for world in ("cache", "serving") for kind in ("hash", "radix")]
)


def hold(*laws: type[Watcher], world: str, kind: str) -> None:
    """Run all histories under these laws, and check that they contained the events that the laws are about."""
    seen: Counter[str] = Counter()

    @given(history=histories(world, kind))
    def laws_hold(history):
        seen.update(history.run(*laws))

    for history in fixed_histories(world, kind):
        laws_hold = example(history=history)(laws_hold)
    laws_hold()
    nothing_missing(world, kind, seen)
