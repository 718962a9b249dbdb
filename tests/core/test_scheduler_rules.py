"""Single rules of the scheduler and the radix cache, each with the smallest case that shows it."""

import pytest

from minicache.core import (
    CacheSnapshot,
    HashChainCache,
    PrefixCache,
    RadixCache,
    Request,
    Scheduler,
    SchedulerConfig,
    StepPlan,
)
from minicache.core.errors import InvalidArgument, RequestTooLong
from minicache.core.event_stream import EventStream
from minicache.core.events import Event, RequestAdmitted
from tests.core.test_hit_rates_of_a_run import run_step, serve


def nodes_by_tokens(cache: RadixCache) -> dict[tuple[int, ...], int]:
    """Each node's own tokens, and its hits."""
    return {node.tokens: node.hits for node in cache.snapshot().nodes.values()}


def test_a_prefix_that_was_adopted_counts_as_a_hit() -> None:
    """Ten questions over one system prompt: the prompt was hit by each of them, every question by its own only."""
    cache = RadixCache(400)
    scheduler = Scheduler(cache, SchedulerConfig.sglang())
    system_prompt = list(range(20))
    for turn in range(10):
        serve(scheduler, f"r{turn}", [*system_prompt, 100 + turn])
        cache.check()
    hits = nodes_by_tokens(cache)
    assert hits[tuple(system_prompt)] == 10
    assert all(hits[(100 + turn,)] == 1 for turn in range(10))


@pytest.mark.parametrize("strategy", ["lfu", "slru"])
def test_a_hot_prompt_outlives_one_that_was_sent_once(strategy: str) -> None:
    cache = RadixCache(100, strategy=strategy)
    scheduler = Scheduler(cache, SchedulerConfig.sglang())
    for turn in range(3):
        serve(scheduler, f"hot{turn}", list(range(20)))
    serve(scheduler, "once", [50 + i for i in range(20)])
    cache.evict(10)
    cache.check()
    assert cache.lookup(Request("x", list(range(20)))).num_tokens == 19
    assert cache.lookup(Request("y", [50 + i for i in range(20)])).num_tokens == 0


def test_finishing_refreshes_what_the_request_used() -> None:
    """With pages of 4 the last tokens fill no page, and still the finish counts as a use."""
    cache = RadixCache(40, block_size=4)
    scheduler = Scheduler(cache, SchedulerConfig.sglang())
    scheduler.add(Request("a", [1] * 8, max_tokens=3))
    scheduler.add(Request("b", [2] * 8, max_tokens=1))
    while scheduler.has_unfinished:
        run_step(scheduler)  # b ends first
        cache.check()
    cache.evict(2)
    assert cache.lookup(Request("x", [1] * 9)).num_tokens == 8
    assert cache.lookup(Request("y", [2] * 9)).num_tokens == 0


@pytest.mark.parametrize(("num_free", "is_admitted"), [(26, False), (27, True)])
def test_the_output_reserve_is_strict(num_free: int, is_admitted: bool) -> None:
    """SGLang: 20 tokens to compute + 5 of output + 1 block must be *less* than what is free."""
    cache = RadixCache(num_free + 3)  # with the null block, and two that the running request holds by then
    scheduler = Scheduler(cache, SchedulerConfig.sglang(new_token_ratio=0.0))
    scheduler.add(Request("running", [1], max_tokens=9))
    run_step(scheduler)
    candidate = Request("candidate", list(range(100, 120)), max_tokens=5)
    scheduler.add(candidate)
    plan = scheduler.schedule()
    assert any(item.request is candidate for item in plan.scheduled) == is_admitted


def sampled(plan: StepPlan) -> dict[str, int]:
    return {item.request.id: 1 for item in plan.scheduled if item.samples}


def test_what_an_aborted_request_computed_stays_for_who_shares_it() -> None:
    """Two equal prompts in one step; the one that publishes is aborted while the model runs."""
    cache = HashChainCache(40, 4)
    scheduler = Scheduler(cache)
    for id in ("first", "second"):
        scheduler.add(Request(id, list(range(12)), max_tokens=4))
    plan = scheduler.schedule()
    scheduler.abort("first")
    scheduler.update(plan, sampled(plan))
    cache.check()
    assert cache.lookup(Request("third", list(range(13)))).num_tokens == 12


def test_the_reserve_shrinks_only_while_requests_decode() -> None:
    scheduler = Scheduler(RadixCache(100), SchedulerConfig.sglang())
    for _ in range(50):
        run_step(scheduler)
    assert scheduler.new_token_ratio == 0.7
    scheduler.add(Request("r", [1, 2, 3], max_tokens=4))
    run_step(scheduler)
    assert scheduler.new_token_ratio == 0.7
    run_step(scheduler)
    assert 0.69 < scheduler.new_token_ratio < 0.7


@pytest.mark.parametrize("cache", [HashChainCache(40, 4), RadixCache(160)], ids=["hash", "radix"])
def test_a_failed_step_counts_nothing(cache: PrefixCache) -> None:
    seen: list[Event] = []
    make = SchedulerConfig.vllm if isinstance(cache, HashChainCache) else SchedulerConfig.sglang
    scheduler = Scheduler(cache, make(), events=EventStream(seen.append))
    request = Request("r", list(range(12)), max_tokens=2)
    scheduler.add(request)
    plan = scheduler.schedule()
    with pytest.raises(RuntimeError), scheduler.undo_on_error(plan):
        raise RuntimeError
    assert request.num_cached_tokens is None
    assert scheduler.recent_hit_rate.requests == 0
    run_step(scheduler)
    assert scheduler.recent_hit_rate.requests == 1
    assert request.num_cached_tokens == 0
    assert [event.resumed for event in seen if isinstance(event, RequestAdmitted)] == [False, False]


@pytest.mark.parametrize("publish_at", ["schedule", "compute"])
@pytest.mark.parametrize(("publish_outputs", "found"), [("as_filled", 8), ("at_finish", 4)])
def test_outputs_are_published_when_the_settings_say(publish_at: str, publish_outputs: str, found: int) -> None:
    cache = HashChainCache(40, 4)
    config = SchedulerConfig(publish_at=publish_at, publish_outputs=publish_outputs)  # type: ignore[arg-type]
    scheduler = Scheduler(cache, config)
    scheduler.add(Request("r", [1] * 5, max_tokens=9))
    for _ in range(6):
        run_step(scheduler)
        cache.check()
    assert cache.lookup(Request("x", [1] * 20)).num_tokens == found
    while scheduler.has_unfinished:
        run_step(scheduler)
    assert cache.lookup(Request("x", [1] * 20)).num_tokens == 12


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_another_cache_takes_the_place_of_the_first_between_two_steps(kind: str) -> None:
    make = HashChainCache if kind == "hash" else RadixCache
    scheduler = Scheduler(make(40, 4), SchedulerConfig.vllm() if kind == "hash" else SchedulerConfig.sglang())
    serve(scheduler, "before", list(range(20)))
    scheduler.add(Request("goes on", list(range(24)), max_tokens=3))
    run_step(scheduler)
    first, second = scheduler.cache, make(9, 8)
    assert scheduler.recent_hit_rate.value > 0
    scheduler.replace_cache(second)
    first.check()
    assert first.num_free == first.capacity, "all blocks were given back"
    assert [request.id for request in scheduler.waiting] == ["goes on"]
    assert (scheduler.recent_hit_rate.value, scheduler.last_prefill_hit_rate.value) == (0.0, 0.0)
    while scheduler.has_unfinished:
        run_step(scheduler)
        second.check()
    assert second.lookup(Request("again", list(range(25)))).num_tokens == 24


def test_a_cache_or_settings_that_cannot_be_are_refused_and_nothing_changes() -> None:
    cache = HashChainCache(40, 4)
    scheduler = Scheduler(cache)
    scheduler.add(Request("long", list(range(40)), max_tokens=3))
    run_step(scheduler)
    before = scheduler.snapshot()
    with pytest.raises(RequestTooLong, match="request 'long' needs 11 blocks of 4 tokens"):
        scheduler.replace_cache(HashChainCache(9, 4))
    with pytest.raises(InvalidArgument, match="publish_at"):
        scheduler.replace_cache(RadixCache(40))
    over_a_tree = Scheduler(RadixCache(40), SchedulerConfig.sglang())
    with pytest.raises(InvalidArgument, match="publish_at"):
        over_a_tree.reconfigure(SchedulerConfig.sglang(publish_at="schedule"))
    assert over_a_tree.config == SchedulerConfig.sglang()
    assert (scheduler.cache, scheduler.snapshot()) == (cache, before)
    plan = scheduler.schedule()
    for too_early in (
        lambda: scheduler.replace_cache(HashChainCache(40, 4)),
        lambda: scheduler.reconfigure(SchedulerConfig.vllm(max_num_seqs=1)),
    ):
        with pytest.raises(InvalidArgument, match="is in flight: call update"):
            too_early()
    scheduler.update(plan, {"long": 1})


@pytest.mark.parametrize("kind", ["hash", "radix"])
@pytest.mark.parametrize("num_tokens", [4, 9, 20])
def test_to_publish_again_changes_neither_what_is_found_nor_who_holds_it(kind: str, num_tokens: int) -> None:
    """Recency and hit counts aside."""
    cache = HashChainCache(40, 4) if kind == "hash" else RadixCache(40, 4)
    first, second = (Request(id, [*range(18), *tail]) for id, tail in (("first", [1, 2]), ("second", [3, 4])))
    for request in (first, second):
        assert cache.allocate(request, cache.lookup(request), 20 - request.num_computed_tokens)
        request.num_computed_tokens = 20
        cache.publish(request, num_tokens)
        before = cache.snapshot()
        cache.publish(request, num_tokens)
        cache.publish(request, max(0, num_tokens - 4))
        cache.check()
        after = cache.snapshot()
        for name in ("free", "tables", "hashes", "copies", "locks"):
            assert getattr(after, name) == getattr(before, name)
        assert nodes_but_recency(after) == nodes_but_recency(before)


def nodes_but_recency(state: CacheSnapshot) -> dict[int, tuple[object, ...]]:
    return {id: (node.parent, node.tokens, node.blocks, node.locks) for id, node in state.nodes.items()}
