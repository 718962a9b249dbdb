"""A request that reads reused KV reads the KV of its own prefix.

The memory under the cache remembers the writes to each slot (`shadow_kv.py`). In every step, each position that a
request attends to must hold the KV of its own namespace and tokens, even if another request computes it in the same
step. When no step is in flight, every findable block has been computed, also after a preemption, an abort or a failed
forward pass. While the model runs, no block that it writes to is given to another request.
"""

from tests.core.laws import PlannedBlocksStayHeld, ReadsItsOwnPrefix, WhatCanBeFoundWasComputed
from tests.properties.core.every_history import hold, in_every_history


@in_every_history
def test_what_is_read_and_what_can_be_found_is_what_was_computed(world, kind):
    hold(ReadsItsOwnPrefix, WhatCanBeFoundWasComputed, PlannedBlocksStayHeld, world=world, kind=kind)
