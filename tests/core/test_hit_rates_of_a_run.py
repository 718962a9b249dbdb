"""The scheduler reports the engines' own hit rates: what is counted, when, and when it is forgotten."""

import pytest

from minicache.core import HashChainCache, RadixCache, Request, Scheduler, SchedulerConfig


def run_step(scheduler: Scheduler) -> None:
    plan = scheduler.schedule()
    scheduler.update(plan, {item.request.id: 1 for item in plan.scheduled if item.samples})


def serve(scheduler: Scheduler, id: str, tokens: list[int], max_tokens: int = 1) -> None:
    scheduler.add(Request(id, tokens, max_tokens))
    while scheduler.has_unfinished:
        run_step(scheduler)


def test_vllm_counts_whole_requests_at_admission() -> None:
    scheduler = Scheduler(HashChainCache(40, 4))
    serve(scheduler, "a", list(range(12)))
    serve(scheduler, "b", list(range(12)))
    assert scheduler.recent_hit_rate.value == 8 / 24


def test_sglang_reports_the_last_prefill_by_what_it_computed() -> None:
    """A chunk that continues a prompt hits nothing; a decode step leaves the figure alone."""
    scheduler = Scheduler(RadixCache(100), SchedulerConfig.sglang(max_num_batched_tokens=4))
    rate = scheduler.last_prefill_hit_rate
    serve(scheduler, "a", list(range(8)))
    scheduler.add(Request("b", [*range(8), *range(90, 96)], max_tokens=3))
    run_step(scheduler)
    assert rate.value == pytest.approx(8 / 12)  # 8 found, 4 computed
    run_step(scheduler)
    assert rate.value == 0  # the other 2
    run_step(scheduler)
    assert rate.value == 0


def test_a_reset_forgets_the_rates() -> None:
    scheduler = Scheduler(HashChainCache(40, 4))
    serve(scheduler, "a", list(range(12)))
    serve(scheduler, "b", list(range(12)))
    assert scheduler.reset_cache()
    assert scheduler.recent_hit_rate.value == 0
    serve(scheduler, "c", list(range(12)))
    assert scheduler.recent_hit_rate.value == 0


def test_a_reset_waits_for_running_requests_or_preempts_them() -> None:
    scheduler = Scheduler(HashChainCache(40, 4))
    for id in ("a", "b"):
        scheduler.add(Request(id, list(range(9)), max_tokens=4))
    run_step(scheduler)
    assert not scheduler.reset_cache()
    assert scheduler.reset_cache(preempt_running=True)
    assert [request.id for request in scheduler.waiting] == ["a", "b"]
    while scheduler.has_unfinished:
        run_step(scheduler)
