"""Allocation takes what its demand says, or nothing: if it fails, not a tick has changed (invariant 6).

Release gives everything back, and giving back twice is giving back once.
"""

from tests.core.laws import FailedAllocationChangesNothing, ReleasingTwiceIsReleasingOnce
from tests.properties.core.every_history import hold, in_every_history


@in_every_history
def test_allocation_is_all_or_nothing_and_release_is_idempotent(world, kind):
    hold(FailedAllocationChangesNothing, ReleasingTwiceIsReleasingOnce, world=world, kind=kind)
