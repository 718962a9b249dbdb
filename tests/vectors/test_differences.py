"""F: rules of the two engines that no specification named: random histories against the real code found them.

F1 to F4 are vLLM 0.33's, the others SGLang 0.5.23's. Each is the smallest history that shows the rule.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from minicache.core import RadixCache, Request, Scheduler, SchedulerConfig
from minicache.core.output_reserve import OutputReserve
from minicache.core.queue_policy import lpm, policy_named
from tests.vectors.checked import checked
from tests.vectors.drivers import Radix, Tree, add, finish_step, run_step, span, vllm_scheduler
from tests.vectors.registry import vector


def sglang(num_blocks: int, block_size: int = 1, **settings: Any) -> Scheduler:
    return Scheduler(checked(RadixCache(num_blocks, block_size)), SchedulerConfig.sglang(**settings))


def serve(scheduler: Scheduler, id: str, tokens: Sequence[int], max_tokens: int = 1) -> Request:
    """A request that runs alone until it ends."""
    request = add(scheduler, id, tokens, max_tokens)
    while scheduler.has_unfinished:
        run_step(scheduler)
    return request


def cached(scheduler: Scheduler) -> int:
    """The blocks in the tree."""
    return sum(len(node.blocks) for node in scheduler.cache.snapshot().nodes.values())


@vector("F1", "`long_prefill_token_threshold` does not hold a request back that is the only one")
def test_threshold_of_a_request_alone() -> None:
    scheduler = vllm_scheduler(40, 4, long_prefill_token_threshold=3)
    add(scheduler, "a", span(0, 10))
    assert run_step(scheduler) == {"a": 10}
    scheduler = vllm_scheduler(40, 4, long_prefill_token_threshold=3)
    add(scheduler, "a", span(0, 10))
    add(scheduler, "b", span(20, 30))
    assert run_step(scheduler) == {"a": 3, "b": 3}


@vector("F2", "policy `priority`: after a request has preempted itself, the running ones after it go on")
def test_a_request_that_preempts_itself() -> None:
    scheduler = vllm_scheduler(7, 4, queue_policy="priority")  # six blocks
    low = add(scheduler, "low", span(0, 8), 12, priority=2)
    run_step(scheduler)
    add(scheduler, "high", span(100, 109), 12, priority=1)
    steps = [run_step(scheduler) for _ in range(5)]
    assert low.num_preemptions == 1
    assert steps[-2:] == [{"low": 1, "high": 1}, {"high": 1}]  # both needed a seventh block


@vector("F3", "a request that reads nothing is no query: the hit rate of the last requests does not fall")
@pytest.mark.parametrize("settings", [{"skip_cache_read": True}, {"prompt_logprobs": 0}], ids=["skips", "logprobs"])
@pytest.mark.parametrize("length", [10, 3])
def test_a_request_that_reads_nothing(settings: dict[str, Any], length: int) -> None:
    scheduler = vllm_scheduler(40, 4)
    serve(scheduler, "first", span(0, 16))
    serve(scheduler, "second", span(0, 16))
    before = scheduler.recent_hit_rate.value
    add(scheduler, "a", span(0, length), **settings)
    plan = scheduler.schedule()
    finish_step(scheduler, plan)
    assert (plan.admitted.requests, plan.admitted.queries) == (0, 0)
    assert scheduler.recent_hit_rate.value == before > 0


@vector("F4", "policy `priority`: equal priority and arrival are ordered by id")
def test_equal_priority_and_arrival() -> None:
    scheduler = vllm_scheduler(40, 4, queue_policy="priority", max_num_seqs=1)
    add(scheduler, "t", span(0, 5), arrival=0.0)
    add(scheduler, "s", span(0, 5), arrival=0.0)
    assert run_step(scheduler) == {"s": 5}
    scheduler = vllm_scheduler(40, 4, queue_policy="priority", max_num_seqs=1)
    add(scheduler, "t", span(0, 5))  # without an arrival: in the order in which they are added
    add(scheduler, "s", span(0, 5))
    assert run_step(scheduler) == {"t": 5}


def passes_that_touch(strategy: str, policy_name: str = "fcfs-retouch", num_waiting: int = 1) -> list[int]:
    radix = Radix(100, strategy=strategy)
    radix.cache_prompt(span(0, 50))
    policy = policy_named(policy_name, radix.cache)
    passes = []
    for number in range(70):
        before = radix.cache.tree.tick
        policy([Request("waits", span(0, 51))] * num_waiting, radix.cache)
        if radix.cache.tree.tick != before:
            passes.append(number)
    return passes


@vector("F5", "fcfs touches waiting prefixes in passes 0, 32, 64, …, and with `lru` only")
def test_passes_that_touch() -> None:
    assert passes_that_touch("lru") == [0, 32, 64]
    assert passes_that_touch("lfu") == []


def sorted_by_lpm(radix: Radix, **prompts: Sequence[int]) -> str:
    waiting = [Request(id, tokens) for id, tokens in prompts.items()]
    lpm(waiting, radix.cache)
    return "".join(request.id for request in waiting)


@vector("F6", "lpm: deprioritised requests keep the queue's order among themselves")
def test_order_of_the_deprioritised() -> None:
    one, other = span(100, 150), span(200, 250)
    radix = Radix(400)
    radix.cache_prompt(one[:5])
    radix.cache_prompt(other[:20])
    order = sorted_by_lpm(radix, a=[*one, 1], b=[*other, 2], c=[*one, 3], d=[*other, 4])
    assert order == "bacd"  # c, of which 5 tokens are cached, stays before d, of which 20 are


@vector("F7", "lpm compares the waiting prompts token by token, whatever the block size")
def test_sharers_below_the_block_size() -> None:
    radix = Radix(400, block_size=64)
    shared = span(100, 140)
    assert sorted_by_lpm(radix, a=shared + [1] * 60, b=shared + [2] * 60, c=span(400, 500)) == "acb"


@vector("F8", "mru: of two leaves touched by one insertion the newer goes first")
def test_mru_with_equal_ticks() -> None:
    tree = Tree(strategy="mru")
    tree.insert([1, 2, 3, 4])
    tree.insert([1, 9])
    assert tree.evict(1) == [[9]]


@vector("F9", "the admissions of a step are matched and locked before room is made, once for all")
def test_a_newcomer_does_not_evict_what_the_next_one_hits() -> None:
    scheduler = sglang(27)
    oldest = span(200, 208)
    serve(scheduler, "x", oldest)
    serve(scheduler, "y", span(300, 308))
    add(scheduler, "a", span(500, 512))  # 12 tokens, and 10 slots hold nothing
    add(scheduler, "b", [*oldest, 1])
    plan = scheduler.schedule()
    assert {item.request.id: item.request.num_cached_tokens for item in plan.scheduled} == {"a": 0, "b": 8}


@vector("F10", "an abort while decoding leaves the computed output findable")
def test_abort_while_decoding() -> None:
    for in_flight in (False, True):
        scheduler = sglang(21)
        add(scheduler, "a", [1, 2, 3, 4], 9)
        for _ in range(3):  # three tokens of output, of which two have KV
            plan = scheduler.schedule()
            if in_flight and len(scheduler.running[0].output) == 2:
                scheduler.abort("a")
            finish_step(scheduler, plan)
        if not in_flight:
            scheduler.abort("a")
        assert scheduler.cache.lookup(Request("b", [1, 2, 3, 4, 7, 7, 7, 7])).num_tokens == 6


@vector("F11", "the output of a request admitted in this step is reserved whole")
def test_newcomers_are_reserved_whole() -> None:
    for slots, admitted in ((100, ["a"]), (102, ["a"]), (103, ["a", "b"])):
        scheduler = sglang(slots + 1)
        add(scheduler, "a", span(0, 10), 50)
        add(scheduler, "b", span(100, 110), 30)
        # a: 10 + 50 and a slot more, 61 in all; b: 10 + 30 and a slot more, which must be less than what is left
        assert [request.id for request in scheduler.schedule().newcomers] == admitted


@vector("F11.2", "the part of the running outputs is not rounded up: 2.25 and 2.7 slots are both kept by 2")
@pytest.mark.parametrize("ratio", [0.25, 0.3])
def test_the_part_of_running_outputs_is_floored(ratio: float) -> None:
    least = None
    for num_blocks in range(30, 50):
        scheduler = sglang(num_blocks)
        add(scheduler, "running", span(0, 10), 12)
        for _ in range(3):
            run_step(scheduler)
        scheduler.new_token_ratio = ratio
        newcomer = add(scheduler, "newcomer", span(100, 110), 10)
        if newcomer in scheduler.schedule().newcomers:
            least = num_blocks
            break
    assert least == 38  # 37 slots: 13 are held, 10 + 10 + 1 asked for, 2 kept, and the comparison is strict


@vector("F12", "the reserve starts again when the scheduler is idle")
def test_the_reserve_of_an_idle_scheduler() -> None:
    scheduler = sglang(100)
    add(scheduler, "a", [1, 2, 3], 4)
    run_step(scheduler)
    run_step(scheduler)
    assert scheduler.new_token_ratio < 0.7
    while scheduler.has_unfinished:
        run_step(scheduler)
    assert scheduler.new_token_ratio == 0.7


@vector("F13", "a prefill of retracted requests alone sets the hit rate to 0")
def test_the_hit_rate_of_a_retracted_request() -> None:
    scheduler = sglang(31)
    serve(scheduler, "x", span(0, 8))
    add(scheduler, "a", [*span(0, 8), 9], 9)
    run_step(scheduler)
    rate = scheduler.last_prefill_hit_rate.value
    assert rate > 0
    run_step(scheduler)
    assert scheduler.last_prefill_hit_rate.value == rate  # a step that only decodes
    scheduler.preempt_all()
    run_step(scheduler)
    assert scheduler.last_prefill_hit_rate.value == 0.0


@vector("F14", "blocks of several tokens: a prefill makes room for a block more than each request needs")
def test_room_for_a_prefill() -> None:
    scheduler = sglang(6, 4)
    serve(scheduler, "x", span(100, 109))
    serve(scheduler, "y", span(200, 208))
    assert (cached(scheduler), scheduler.cache.num_free) == (4, 5)
    add(scheduler, "a", span(300, 303))  # one block, and one is empty
    run_step(scheduler)
    assert cached(scheduler) == 2


@vector("F14.2", "and a decoding step for a block of each request, even in the middle of a block")
def test_room_for_a_decoding_step() -> None:
    scheduler = sglang(7, 4)
    serve(scheduler, "x", span(100, 109))
    serve(scheduler, "y", span(200, 208))
    add(scheduler, "a", span(300, 303), 8)
    left = []
    for _ in range(5):
        run_step(scheduler)
        left.append(cached(scheduler))
    # Tokens 3, then 1 each: the fourth fills the first block, the fifth takes the last empty one, the sixth needs none.
    assert left == [4, 4, 4, 2, 2]


@vector("F15", "once a request was refused, no other is admitted until a running one leaves")
def test_a_full_batch() -> None:
    scheduler = sglang(41)
    add(scheduler, "running", span(0, 10), 4)
    run_step(scheduler)
    add(scheduler, "large", span(100, 130), 8)
    assert run_step(scheduler) == {"running": 1}
    scheduler.abort("large")
    add(scheduler, "small", [1], 1)
    assert run_step(scheduler) == {"running": 1}
    assert run_step(scheduler) == {"running": 1}  # its last token
    assert run_step(scheduler) == {"small": 1}


@vector("F16", "a preemption makes room for the next 20 tokens of each survivor at once, from what the victim leaves")
def test_room_after_a_preemption() -> None:
    scheduler = sglang(41, new_token_ratio=0.0)
    add(scheduler, "survivor", span(0, 10), 18)
    run_step(scheduler)
    victim = add(scheduler, "victim", span(100, 108), 18)
    while not victim.num_preemptions:
        run_step(scheduler)
    assert scheduler.cache.lookup(Request("next", span(100, 109))).num_tokens == 0  # 8, if it evicted when it must


@vector("F17", "lpm touches waiting prefixes as fcfs does while more than 128 requests wait")
def test_a_queue_too_long_for_lpm() -> None:
    assert passes_that_touch("lru", "lpm", 129) == [0, 32, 64]
    assert passes_that_touch("lfu", "lpm", 129) == []


@vector("P7", "after a preemption the reserve covers what the others have generated, and 20 tokens more of each")
def test_the_reserve_after_a_preemption() -> None:
    survivors = [Request("a", [1], 100), Request("b", [1], 100)]
    for request, num_output_tokens in zip(survivors, (10, 40), strict=True):
        for _ in range(num_output_tokens):
            request.append(7)
    reserve = OutputReserve(0.7)
    reserve.after_preemption(survivors)
    assert reserve.ratio == pytest.approx(0.44776, abs=1e-5)


@vector("P8", "the reserve of running requests is the sum of their outputs, times the ratio")
def test_the_reserve_of_running_requests() -> None:
    running = [Request(str(max_tokens), [1], max_tokens) for max_tokens in (50, 75, 100)]
    assert OutputReserve(1.0).tokens(running) == 225
