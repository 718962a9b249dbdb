"""Whoever reads reused KV reads the KV of its own prefix.

The memory under the cache remembers what was written where (`shadow_kv.py`). At every position that a request attends
to there must be the KV of its own namespace and tokens, in every step, also where it shares what others compute in the
same step. At rest, whatever can be found has been computed: after a preemption, an abort, a failed forward pass. And
while the model runs, no block that it writes to can be given to others.
"""

from tests.core.laws import PlannedBlocksStayHeld, ReadsItsOwnPrefix, WhatCanBeFoundWasComputed
from tests.properties.core.every_history import hold, in_every_history


@in_every_history
def test_what_is_read_and_what_can_be_found_is_what_was_computed(world, kind):
    hold(ReadsItsOwnPrefix, WhatCanBeFoundWasComputed, PlannedBlocksStayHeld, world=world, kind=kind)
