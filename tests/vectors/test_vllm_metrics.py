"""V28 to V30: what vLLM counts as a hit, when, and over which window."""

from minicache.core import HashChainCache, Request, Scheduler
from minicache.core.hit_rate import AdmissionStats, RecentHitRate
from tests.vectors.checked import checked
from tests.vectors.drivers import span
from tests.vectors.registry import vector


@vector("V28", "the window: whole steps are dropped while it holds too many requests, but never the latest")
def test_window_of_recent_requests() -> None:
    rate = RecentHitRate(max_requests=5)
    steps = [
        ((1, 20, 9), 0.45),
        ((4, 80, 16), 0.25),
        ((1, 10, 2), 0.2),  # six requests: the oldest step goes, and 18 hits of 90 tokens are left
        ((0, 0, 0), 0.2),  # a step without an admission does not count
        ((11, 20, 10), 0.5),  # eleven requests at once are kept although they are more than five
        ((22, 40, 30), 0.75),
    ]
    for step, expected in steps:
        rate.observe(*step)
        assert rate.value == expected
    rate.observe(1, 10, 5, reset=True)
    assert rate.value == 0.5
    assert (rate.requests, rate.queries, rate.hits) == (1, 10, 5)


@vector("V29", "resumed requests are counted apart")
def test_resumed_requests_are_counted_apart() -> None:
    stats = AdmissionStats()
    stats.record(100, 48, preempted=False)
    stats.record(100, 96, preempted=True)
    assert (stats.requests, stats.queries, stats.hits) == (1, 100, 48)
    assert (stats.preempted_requests, stats.preempted_queries, stats.preempted_hits) == (1, 100, 96)


@vector("V30", "lookups do not count, admissions do")
def test_lookups_are_not_counted() -> None:
    cache = checked(HashChainCache(4, 4))
    scheduler = Scheduler(cache)
    rate = scheduler.recent_hit_rate
    request = Request("r", span(0, 8), max_tokens=1)
    scheduler.add(request)
    cache.lookup(request)
    cache.lookup(request)
    assert (rate.requests, rate.queries, rate.hits) == (0, 0, 0)
    scheduler.update(scheduler.schedule(), {"r": 0})
    assert (rate.requests, rate.queries, rate.hits) == (1, 8, 0)
