"""A lookup finds whole blocks, never the last token, and changes nothing that matters.

What it found stays found until something is evicted, unpublished or reset (invariant 4). Its match is good until the
next call that changes the cache; a stale one raises.
"""

from tests.core.laws import LookupFindsWholeBlocksShortOfTheEnd, StaleMatchRaises
from tests.properties.core.every_history import hold, in_every_history


@in_every_history
def test_lookup_is_bounded_monotone_and_its_match_goes_stale(world, kind):
    hold(LookupFindsWholeBlocksShortOfTheEnd, StaleMatchRaises, world=world, kind=kind)
