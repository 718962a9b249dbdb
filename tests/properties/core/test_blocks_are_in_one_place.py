"""Every usable block is in exactly one place.

It is free, cached without a request that holds it, or held. The reference count of a held block is the number of block
tables that name it, the lock count of a node the number of locks at or below it. No block table names a free block.
When every request has finished, no block is held or locked, and the cache can be reset. (Invariants 1, 2, 3 and 7.)
"""

from tests.core.laws import CheckFindsNothing, EveryBlockIsInOnePlace, EverythingComesBack
from tests.properties.core.every_history import hold, in_every_history


@in_every_history
def test_every_block_is_in_one_place_until_all_come_back(world, kind):
    hold(CheckFindsNothing, EveryBlockIsInOnePlace, EverythingComesBack, world=world, kind=kind)
