"""Both caches agree with naive models that have no hashes and no trees (`naive.py`).

The hash chain agrees with a list of free blocks and a set of prefixes, block for block and in the order of eviction.
The radix cache finds what brute force finds, and evicts whole unlocked leaves in the order of its strategy.
"""

from tests.core.laws import AgreesWithTheNaiveModel, EvictionFollowsTheStrategy
from tests.properties.core.every_history import hold, in_every_history


@in_every_history
def test_the_cache_agrees_with_the_naive_model(world, kind):
    hold(AgreesWithTheNaiveModel, EvictionFollowsTheStrategy, world=world, kind=kind)
