"""The view that is folded from events alone equals the state, after every call (invariant 8).

And so does the view of a log that was written to a file and read back, after any number of its lines.
"""

from tests.core.laws import LogTellsEverything, ViewEqualsSnapshot
from tests.properties.core.every_history import hold, in_every_history


@in_every_history
def test_the_view_and_the_replayed_log_equal_the_snapshot(world, kind):
    hold(ViewEqualsSnapshot, LogTellsEverything, world=world, kind=kind)
