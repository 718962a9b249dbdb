"""Every usable block is in exactly one place.

It is free, or cached and held by nobody, or held; a held block counts as many references as there are block tables that
name it; a node counts as many locks as there are at or below it; no block table names a free block. When every request
has finished nothing is held or locked, and the cache can be reset. (Invariants 1, 2, 3 and 7.)
"""

from tests.core.laws import CheckFindsNothing, EveryBlockIsInOnePlace, EverythingComesBack
from tests.properties.core.every_history import hold, in_every_history


@in_every_history
def test_every_block_is_in_one_place_until_all_come_back(world, kind):
    hold(CheckFindsNothing, EveryBlockIsInOnePlace, EverythingComesBack, world=world, kind=kind)
