"""V12, V13, V43 to V46: what vLLM's scheduler asks of the cache, and when it counts."""

from collections.abc import Iterator

from minicache.core import RequestStatus, Scheduler
from tests.vectors.drivers import Chain, add, finish_step, run_step, span, vllm_scheduler
from tests.vectors.registry import story, vector


def with_ten_free(watermark: float, beside_running: bool) -> Scheduler:
    """Ten free blocks of four tokens; if another request runs, it holds an eleventh."""
    scheduler = vllm_scheduler(12 if beside_running else 11, 4, watermark=watermark)
    if beside_running:
        add(scheduler, "running", span(900, 902), max_tokens=3)
        run_step(scheduler)
    assert scheduler.cache.num_free == 10
    return scheduler


@story(
    {
        "V12": "watermark: eight blocks and two that stay free need ten",
        "V12.2": "nine free blocks are too few, unless no request runs: then there is no watermark",
    }
)
def test_watermark() -> Iterator[str]:
    """The specification calls the gate with "something is scheduled" and an empty pool. Here a request really runs; the
    pool is one block larger for it, and a fifth of it is two blocks all the same."""
    scheduler = with_ten_free(0.2, beside_running=True)
    add(scheduler, "waiting", span(0, 32))
    assert run_step(scheduler) == {"running": 1, "waiting": 32}
    yield "V12"

    scheduler = with_ten_free(0.2, beside_running=True)
    add(scheduler, "waiting", span(0, 36))
    assert run_step(scheduler) == {"running": 1}
    scheduler = with_ten_free(0.2, beside_running=False)
    add(scheduler, "waiting", span(0, 36))
    assert run_step(scheduler) == {"waiting": 36}
    yield "V12.2"


@vector("V13", "the gate: the whole prompt must fit, not only its first chunk")
def test_full_sequence_gate() -> None:
    chain = Chain(num_blocks=6, block_size=4)
    request = chain.request(span(0, 40))
    match = chain.cache.lookup(request)
    assert chain.cache.demand(request, match, 40) > chain.cache.num_free  # with the gate: not admitted
    assert chain.cache.allocate(request, match, 8)  # without
    assert request.block_table == [1, 2]


@vector("V13", "the gate: the whole prompt must fit, not only its first chunk")
def test_full_sequence_gate_of_the_scheduler() -> None:
    """The same with five free blocks while a request runs: without it, a prompt of ten blocks would be refused."""
    planned = {}
    for admission in ("full_sequence", "first_chunk"):
        scheduler = vllm_scheduler(12, 4, admission=admission, long_prefill_token_threshold=8)
        add(scheduler, "running", span(900, 921), max_tokens=4)
        for _ in range(3):
            run_step(scheduler)
        waiting = add(scheduler, "waiting", span(0, 40))
        assert scheduler.cache.num_free == 5
        planned[admission] = run_step(scheduler)
        assert len(waiting.block_table) == (2 if admission == "first_chunk" else 0)
    assert planned == {"full_sequence": {"running": 1}, "first_chunk": {"running": 1, "waiting": 8}}


@vector(
    "V43", "reset is refused while requests run; after preemption they wait at the front, in order, and find nothing"
)
def test_reset_with_running_requests() -> None:
    scheduler = vllm_scheduler(12, 4, max_num_seqs=2)
    first, second = add(scheduler, "first", span(0, 9), 8), add(scheduler, "second", span(20, 29), 8)
    add(scheduler, "third", span(40, 44))
    run_step(scheduler)
    assert [request.id for request in scheduler.running] == ["first", "second"]
    assert not scheduler.cache.reset()

    scheduler.preempt_all()
    assert scheduler.cache.reset()
    assert [request.id for request in scheduler.waiting] == ["first", "second", "third"]
    assert {first.status, second.status} == {RequestStatus.PREEMPTED}
    assert scheduler.running == []

    assert run_step(scheduler) == {"first": 10, "second": 10}  # prompt and one output, all of it computed again


@vector("V44", "the second of two equal prompts of two blocks and a token computes one token")
def test_one_token_remains() -> None:
    scheduler = vllm_scheduler(11, 16)
    add(scheduler, "first", span(0, 33))
    assert run_step(scheduler) == {"first": 33}
    second = add(scheduler, "second", span(0, 33))
    assert run_step(scheduler) == {"second": 1}
    assert second.num_cached_tokens == 32


@vector("V45", "three long prompts share the budget in chunks; when two decode, the third gets the rest")
def test_concurrent_partial_prefills() -> None:
    scheduler = vllm_scheduler(200, 16, max_num_batched_tokens=1024, long_prefill_token_threshold=400)
    for index, id in enumerate("abc"):
        add(scheduler, id, span(1000 * index, 1000 * index + 800), max_tokens=4)
    assert run_step(scheduler) == {"a": 400, "b": 400, "c": 224}
    assert run_step(scheduler) == {"a": 400, "b": 400, "c": 224}
    assert run_step(scheduler) == {"a": 1, "b": 1, "c": 352}


@vector("V46", "a request that has to wait after its lookup is counted once, when it is admitted")
def test_retry_is_counted_once() -> None:
    scheduler = vllm_scheduler(6, 16)
    rate = scheduler.recent_hit_rate
    add(scheduler, "before", span(0, 33))
    run_step(scheduler)  # leaves two cached blocks
    add(scheduler, "beside", span(100, 148))
    waiting = add(scheduler, "waiting", span(0, 48))

    plan = scheduler.schedule()
    assert [item.request.id for item in plan.scheduled] == ["beside"]
    assert scheduler.cache.num_free == 2  # and the request needs three, two of them its own hits
    finish_step(scheduler, plan)
    counted = (rate.requests, rate.queries, rate.hits)

    assert run_step(scheduler) == {"waiting": 16}
    assert waiting.num_cached_tokens == 32
    assert (rate.requests, rate.queries, rate.hits) == (counted[0] + 1, counted[1] + 48, counted[2] + 32)


@vector("V46", "a request that has to wait after its lookup is counted once, when it is admitted")
def test_resumed_request_is_not_counted() -> None:
    scheduler = vllm_scheduler(11, 4)
    rate = scheduler.recent_hit_rate
    request = add(scheduler, "request", span(0, 9), max_tokens=4)
    run_step(scheduler)
    assert (rate.requests, rate.queries, rate.hits) == (1, 9, 0)
    scheduler.preempt_all()
    assert run_step(scheduler) == {"request": 2}  # its own blocks were still there
    assert (rate.requests, rate.queries, rate.hits) == (1, 9, 0)
    assert (request.num_preemptions, request.num_cached_tokens) == (1, 0)
