"""Every definition of "hit rate" on one example that can be counted by hand.

Three requests, blocks of 4 tokens: 8 of 10 tokens hit, then 0 of 6, then 8 of 9.
"""

import pytest

from minicache.core.hit_rate import DEFINITIONS, AdmissionStats, LastPrefillHitRate, Lookup, RecentHitRate

LOOKUPS = [Lookup(10, 8, 4), Lookup(6, 0, 4), Lookup(9, 8, 4)]
BY_HAND = {
    "tokens of all": 16 / 25,
    "blocks of all": 4 / (3 + 2 + 3),
    "full blocks": 4 / (2 + 1 + 2),
    "mean of ratios": (8 / 10 + 0 + 8 / 9) / 3,
    "last half": 8 / 15,
}


def test_every_definition_has_an_example():
    assert BY_HAND.keys() == DEFINITIONS.keys()


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name):
    assert DEFINITIONS[name](LOOKUPS) == pytest.approx(BY_HAND[name])


@pytest.mark.parametrize("name", BY_HAND)
def test_nothing_looked_up_is_no_hit(name):
    assert DEFINITIONS[name]([]) == 0.0


@pytest.mark.parametrize("name", BY_HAND)
def test_all_but_the_last_token_is_as_good_as_it_gets(name):
    assert DEFINITIONS[name]([Lookup(17, 16, 16)] * 4) == {"blocks of all": 0.5, "full blocks": 1.0}.get(name, 16 / 17)


def test_a_step_counts_resumed_requests_apart():
    stats = AdmissionStats()
    stats.record(10, 8, preempted=False)
    stats.record(20, 16, preempted=True)
    assert (stats.requests, stats.queries, stats.hits) == (1, 10, 8)
    assert (stats.preempted_requests, stats.preempted_queries, stats.preempted_hits) == (1, 20, 16)


def test_the_recent_rate_drops_whole_steps():
    rate = RecentHitRate(max_requests=3)
    assert rate.value == 0.0
    rate.observe(2, 20, 0)
    rate.observe(1, 10, 10)
    assert rate.value == pytest.approx(10 / 30)
    rate.observe(1, 10, 10)  # four requests: the first step goes, with both of its requests
    assert (rate.requests, rate.value) == (2, 1.0)


def test_one_step_larger_than_the_window_stays():
    rate = RecentHitRate(max_requests=3)
    rate.observe(5, 50, 25)
    rate.observe(0, 0, 0)
    assert (rate.requests, rate.value) == (5, 0.5)
    rate.observe(1, 10, 0, reset=True)
    assert (rate.requests, rate.value) == (1, 0.0)


def test_the_last_prefill_rate_is_that_of_the_last_step_that_prefilled():
    rate = LastPrefillHitRate()
    rate.observe(5, 15)
    assert rate.value == 0.75
    rate.observe(10, 0)
    assert rate.value == 0.0
    rate.observe(5, 15)
    rate.observe(0, 0)  # requests resumed after a preemption alone: they do not count
    assert rate.value == 0.0
