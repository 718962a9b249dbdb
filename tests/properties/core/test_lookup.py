"""A lookup finds whole blocks, never the last token, and does not change what can be found or is held.

Tokens that it found are found again until a block is evicted or unpublished, or the cache is reset (invariant 4). A
match is valid until the next call that changes the cache; an older match raises.
"""

from tests.core.laws import LookupFindsWholeBlocksShortOfTheEnd, StaleMatchRaises
from tests.properties.core.every_history import hold, in_every_history


@in_every_history
def test_lookup_is_bounded_monotone_and_its_match_goes_stale(world, kind):
    hold(LookupFindsWholeBlocksShortOfTheEnd, StaleMatchRaises, world=world, kind=kind)
