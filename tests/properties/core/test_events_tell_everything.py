"""A view folded from events alone equals the state, after every call (invariant 8).

So does a view folded from a log that was written to a file and read, after any number of its lines.
"""

from tests.core.laws import LogTellsEverything, ViewEqualsSnapshot
from tests.properties.core.every_history import hold, in_every_history


@in_every_history
def test_the_view_and_the_replayed_log_equal_the_snapshot(world, kind):
    hold(ViewEqualsSnapshot, LogTellsEverything, world=world, kind=kind)
