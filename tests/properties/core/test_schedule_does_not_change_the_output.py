"""Chunk sizes, the order of admission, preemptions, failures and hits never change an answer.

Every request that is not aborted or ended early gets the answer that it would get alone, without a cache. (Invariant 9;
the engine's tests check the same with a real model.)
"""

import pytest

from tests.core.laws import TheScheduleDoesNotChangeTheOutput
from tests.properties.core.every_history import hold


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_every_request_finishes_with_the_answer_it_would_get_alone(kind):
    hold(TheScheduleDoesNotChangeTheOutput, world="serving", kind=kind)
