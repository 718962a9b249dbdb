"""All laws at once, in long histories, with blocks of 1, 2, 4 and 16 tokens."""

import pytest

from tests.core.laws import WATCHERS
from tests.core.world import random_history


@pytest.mark.parametrize("length", [150, pytest.param(600, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("block_size", [1, 2, 4, 16])
@pytest.mark.parametrize("kind", ["hash", "radix"])
@pytest.mark.parametrize("world", ["cache", "serving"])
def test_all_laws_hold_in_a_long_history(world, kind, block_size, length):
    seen = random_history(world, kind, block_size, length, block_size=block_size, room=12).run(*WATCHERS)
    assert seen["hits"] >= length // 50
    assert seen["evictions"] >= length // 50
    assert seen["duplicates"] > 0
