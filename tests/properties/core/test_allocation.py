"""An allocation takes exactly the blocks that it demands, or none: if it fails, nothing has changed (invariant 6).

A release gives every block back, and a second release changes nothing.
"""

from tests.core.laws import FailedAllocationChangesNothing, ReleasingTwiceIsReleasingOnce
from tests.properties.core.every_history import hold, in_every_history


@in_every_history
def test_allocation_is_all_or_nothing_and_release_is_idempotent(world, kind):
    hold(FailedAllocationChangesNothing, ReleasingTwiceIsReleasingOnce, world=world, kind=kind)
