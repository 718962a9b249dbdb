"""Chunk size, order of admission, preemption, failure and hits change what is computed, never what is answered.

Every request that is neither aborted nor ended early gets the whole answer that it would have got alone, without a
cache. (Invariant 9; the engine's tests say the same of a real model.)
"""

import pytest

from tests.core.laws import TheScheduleDoesNotChangeTheOutput
from tests.properties.core.every_history import hold


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_every_request_finishes_with_the_answer_it_would_get_alone(kind):
    hold(TheScheduleDoesNotChangeTheOutput, world="serving", kind=kind)
