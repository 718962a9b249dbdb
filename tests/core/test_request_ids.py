"""An id may be used again as soon as its request has ended, even while the model still runs for the old one."""

import pytest

from minicache.core import HashChainCache, RadixCache, Request, Scheduler, SchedulerConfig


@pytest.mark.parametrize("make", [HashChainCache, RadixCache], ids=["hash", "radix"])
def test_an_aborted_id_is_used_again_before_the_step_ends(make):
    cache = make(20, 2)
    scheduler = Scheduler(cache, SchedulerConfig(publish_at="compute"))
    old, new = Request("r", [1, 2, 3, 4, 5], 3), Request("r", [6, 7, 8], 2)
    scheduler.add(old)
    plan = scheduler.schedule()
    scheduler.abort("r")
    scheduler.add(new)
    assert scheduler.update(plan, {"r": 9}) == []
    cache.check()
    assert (list(old.output), list(new.output)) == ([], [])
    assert (old.block_table, old.finish_reason) == ([], "abort")
    for token in (10, 11):
        plan = scheduler.schedule()
        scheduler.update(plan, {"r": token})
        cache.check()
    assert (list(new.output), new.finish_reason) == ([10, 11], "length")
    scheduler.add(Request("r", [1], 1))
    assert scheduler.waiting[0].id == "r"
