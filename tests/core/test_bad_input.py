"""Wrong input raises a `ValueError` of its own name that says which argument is wrong; nothing has changed, and the
rest goes on."""

from contextlib import contextmanager

import pytest

from minicache.core import (
    Adapter,
    HashChainCache,
    Namespace,
    NoCache,
    RadixCache,
    Request,
    RequestStatus,
    Scheduler,
    SchedulerConfig,
)
from minicache.core.errors import InvalidArgument, RequestTooLong, StaleMatch, UnknownRequest

CACHES = {"hash": HashChainCache, "radix": RadixCache, "none": NoCache}
any_cache = pytest.mark.parametrize("make", CACHES.values(), ids=CACHES)
finding_cache = pytest.mark.parametrize("make", [HashChainCache, RadixCache], ids=["hash", "radix"])


@contextmanager
def refused(error, message, *states):
    """The block raises `error` with `message`, and no state is another afterwards."""
    before = [state.snapshot() for state in states]
    with pytest.raises(error, match=message) as caught:
        yield
    assert isinstance(caught.value, ValueError)
    assert [state.snapshot() for state in states] == before
    for state in states:
        if hasattr(state, "check"):
            state.check()


def serving(make=HashChainCache, num_blocks=12):
    """A scheduler with one request that has run a step, and one that waits."""
    cache = make(num_blocks, 2)
    config = SchedulerConfig(publish_at="compute", max_num_seqs=1)
    scheduler = Scheduler(cache, config)
    scheduler.add(Request("runs", [1, 2, 3, 4, 5], 3))
    scheduler.add(Request("waits", [1, 2, 3, 9], 3))
    step(scheduler)
    return cache, scheduler


def step(scheduler, token=7):
    plan = scheduler.schedule()
    return scheduler.update(plan, {item.request.id: token for item in plan.scheduled if item.samples})


def all_finish(cache, scheduler):
    while scheduler.has_unfinished:
        step(scheduler)
    assert cache.num_free == cache.capacity
    assert cache.reset()
    return True


# Making a cache


@any_cache
@pytest.mark.parametrize("value", [0, -1, 2.0, True, "16", None])
def test_block_size_is_a_positive_integer(make, value):
    with pytest.raises(InvalidArgument, match="block_size"):
        make(8, value)


@any_cache
@pytest.mark.parametrize("value", [0, 1, -5, 8.0, True, "8", None])
def test_a_pool_has_a_block_beside_the_null_block(make, value):
    with pytest.raises(InvalidArgument, match="num_blocks"):
        make(value, 4)


def test_an_unknown_strategy_is_answered_with_the_names():
    with pytest.raises(InvalidArgument, match=r"strategy must be one of lru, .*, not 'oldest'"):
        RadixCache(8, 1, "oldest")


# Making a request

NO_TOKENS = [[1, -1], [1, True], [1, 1.0], [1, "2"], [None], [1 << 64], None, 5, "abc", [[1]]]


@pytest.mark.parametrize("tokens", NO_TOKENS, ids=repr)
def test_tokens_are_non_negative_integers(tokens):
    with pytest.raises(InvalidArgument, match="tokens must be non-negative integers"):
        Request("r", tokens)


@pytest.mark.parametrize("tokens", [[0, 1], (0, 1), range(2), b"\x00\x01", bytearray(b"\x00\x01")], ids=repr)
def test_any_sequence_of_integers_will_do(tokens):
    assert list(Request("r", tokens).tokens) == [0, 1]


def test_the_largest_token_fits():
    assert Request("r", [2**64 - 1]).tokens[0] == 2**64 - 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": []}, "request 'r' has an empty prompt"),
        ({"id": ""}, "id must be a non-empty text"),
        ({"id": 5}, "id must be a non-empty text"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"max_tokens": 1.5}, "max_tokens must be an integer"),
        ({"prompt_logprobs": -1}, "prompt_logprobs must be at least 0"),
        ({"namespace": "tenant"}, "namespace must be a Namespace"),
    ],
)
def test_a_request_says_which_of_its_arguments_is_wrong(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        Request(**({"id": "r", "tokens": [1]} | changes))


HALF_A_PAIR = "\ud800"  # what JSON may carry and UTF-8 may not


@pytest.mark.parametrize("text", [5, b"tenant", ["tenant"], HALF_A_PAIR], ids=ascii)
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("salt", lambda text: Namespace(salt=text)),
        ("extra", lambda text: Namespace(extra=("a", text))),
        ("adapter.name", lambda text: Adapter(text, "/p")),
        ("adapter.path", lambda text: Adapter("a", text)),
        ("adapter.digest", lambda text: Adapter("a", "/p", text)),
    ],
)
def test_what_becomes_part_of_a_key_is_text(name, make, text):
    with pytest.raises(InvalidArgument, match=f"^{name} must be text"):
        make(text)


@pytest.mark.parametrize("extra", ["ab", 5, None])
def test_extra_is_a_tuple_of_texts(extra):
    with pytest.raises(InvalidArgument, match="extra must be a tuple of texts"):
        Namespace(extra=extra)


def test_an_adapter_is_an_adapter():
    with pytest.raises(InvalidArgument, match="adapter must be an Adapter or None"):
        Namespace(adapter="my-lora")


# Calling a cache


@any_cache
def test_a_request_of_another_cache_is_unknown(make):
    mine, other = make(8, 2), make(8, 2)
    request = Request("r", [1, 2, 3])
    assert other.allocate(request, other.lookup(request), 3)
    for call in (lambda: mine.release(request), lambda: mine.allocate(request, None, 1)):
        with refused(UnknownRequest, "request 'r'", mine, other):
            call()
    assert len(request.block_table) == 2
    other.release(request)
    assert other.reset()


@finding_cache
def test_publishing_for_a_request_of_another_cache_is_refused(make):
    mine, other = make(8, 2), make(8, 2)
    request = Request("r", [1, 2, 3])
    assert other.allocate(request, other.lookup(request), 3)
    request.num_computed_tokens = 3
    with refused(UnknownRequest, "request 'r'", mine, other):
        mine.publish(request, 2)


@any_cache
def test_two_requests_with_one_id_do_not_mix(make):
    cache = make(8, 2)
    first, second = Request("r", [1, 2, 3]), Request("r", [4, 5])
    assert cache.allocate(first, cache.lookup(first), 3)
    match = cache.lookup(second)
    for call in (lambda: cache.allocate(second, match, 2), lambda: cache.release(second)):
        with refused(InvalidArgument, "id 'r'", cache):
            call()


@any_cache
@pytest.mark.parametrize("num_tokens", [-1, 1.5, "2", None, True])
def test_the_number_of_tokens_is_a_non_negative_integer(make, num_tokens):
    cache, request = make(8, 2), Request("r", [1, 2, 3])
    with refused(InvalidArgument, "num_tokens", cache):
        cache.allocate(request, cache.lookup(request), num_tokens)


@any_cache
def test_a_request_is_admitted_once(make):
    cache, request = make(8, 2), Request("r", [1, 2, 3])
    assert cache.allocate(request, cache.lookup(request), 3)
    match = cache.lookup(request)
    with refused(InvalidArgument, "request 'r' holds blocks already", cache):
        cache.allocate(request, match, 1)


@any_cache
def test_a_match_is_of_one_cache_and_one_request(make):
    cache, other = make(8, 2), make(8, 2)
    request = Request("r", [1, 2, 3])
    matches = [other.lookup(request), cache.lookup(Request("another", [1, 2, 3]))]
    for match in matches:
        with refused(StaleMatch, "call lookup.. for request 'r' again before allocate", cache):
            cache.allocate(request, match, 3)


def test_the_hash_chain_publishes_no_block_that_is_not_held():
    cache, request = HashChainCache(8, 2), Request("r", [1, 2, 3, 4])
    assert cache.allocate(request, cache.lookup(request), 2)
    with refused(InvalidArgument, "num_tokens: request 'r' holds too few blocks for 4 tokens", cache):
        cache.publish(request, 4)


def test_the_radix_cache_publishes_nothing_that_is_not_computed():
    cache, request = RadixCache(8, 2), Request("r", [1, 2, 3, 4])
    assert cache.allocate(request, cache.lookup(request), 4)
    with refused(InvalidArgument, "num_tokens: .* request 'r' has 0, not 4", cache):
        cache.publish(request, 4)


@any_cache
def test_who_was_given_room_for_nothing_holds_nothing(make):
    cache, request = make(8, 2), Request("r", [1, 2, 3])
    assert cache.allocate(request, cache.lookup(request), 0)
    assert cache.reset(), "no block is held"
    assert cache.allocate(request, cache.lookup(request), 3)
    cache.check()


# Calling a scheduler


@any_cache
def test_a_request_is_added_once(make):
    cache, scheduler = serving(make)
    running, waiting = scheduler.running[0], scheduler.waiting[0]
    for request in (running, waiting, Request("runs", [1])):
        with refused(InvalidArgument, f"request '{request.id}' was added before", scheduler, cache):
            scheduler.add(request)
    assert all_finish(cache, scheduler)
    with refused(InvalidArgument, "request 'runs' was added before", scheduler, cache):
        scheduler.add(running)


@any_cache
def test_a_request_that_could_not_run_alone_is_refused(make):
    cache, scheduler = serving(make)
    capacity = 2 * cache.capacity
    with refused(RequestTooLong, "request 'long' needs 12 blocks of 2 tokens .* raise num_blocks", scheduler, cache):
        scheduler.add(Request("long", [1] * capacity, 2))
    scheduler.add(Request("fits", [1] * capacity, 1))
    assert all_finish(cache, scheduler)


@any_cache
def test_an_unknown_request_can_neither_be_aborted_nor_finished(make):
    cache, scheduler = serving(make)
    for call in (
        lambda: scheduler.abort("nobody"),
        lambda: scheduler.finish(Request("nobody", [1]), "stop"),
        lambda: scheduler.finish(Request("runs", [1]), "stop"),
    ):
        with refused(UnknownRequest, "request '(nobody|runs)' is", scheduler, cache):
            call()
    scheduler.abort("runs")
    with refused(UnknownRequest, "request 'runs' is not waiting or running here", scheduler, cache):
        scheduler.abort("runs")
    assert all_finish(cache, scheduler)


@any_cache
def test_only_the_plan_in_flight_can_be_accounted_for(make):
    cache, scheduler = serving(make)
    stale = scheduler.schedule()
    scheduler.update(stale, {"runs": 7})
    with refused(InvalidArgument, "plan: the plan of step 2 is not the one in flight", scheduler, cache):
        scheduler.update(stale, {"runs": 7})
    plan = scheduler.schedule()
    with refused(InvalidArgument, "plan: the plan of step 2", scheduler, cache):
        scheduler.update(stale, {"runs": 7})
    scheduler.update(plan, {"runs": 7})
    assert all_finish(cache, scheduler)


@any_cache
def test_while_a_step_is_in_flight_nothing_else_is_scheduled_or_finished(make):
    cache, scheduler = serving(make)
    plan = scheduler.schedule()
    for call in (
        scheduler.schedule,
        scheduler.preempt_all,
        lambda: scheduler.finish(scheduler.running[0], "stop"),
    ):
        with refused(InvalidArgument, "step 2 is in flight", scheduler, cache):
            call()
    scheduler.update(plan, {"runs": 7})
    assert all_finish(cache, scheduler)


BAD_SAMPLES = [-1, 1 << 64, 1.5, "7", None]


@any_cache
@pytest.mark.parametrize("token", BAD_SAMPLES, ids=repr)
def test_a_sampled_token_is_a_token(make, token):
    """The whole batch is refused, not only what comes after the bad token, and can be accounted for once more."""
    cache = make(20, 2)
    scheduler = Scheduler(cache, SchedulerConfig(publish_at="compute"))
    first, second = Request("first", [1, 2, 3], 2), Request("second", [5, 6, 7], 2)
    scheduler.add(first)
    scheduler.add(second)
    plan = scheduler.schedule()
    with refused(InvalidArgument, "sampled must be non-negative integers", scheduler, cache):
        scheduler.update(plan, {"first": 1, "second": token})
    assert (list(first.output), list(second.output)) == ([], [])
    scheduler.update(plan, {"first": 1, "second": 2})
    assert all_finish(cache, scheduler)


@any_cache
def test_whoever_must_sample_needs_a_token(make):
    cache, scheduler = serving(make)
    plan = scheduler.schedule()
    with refused(InvalidArgument, "sampled: no token for runs, which must sample in step 2", scheduler, cache):
        scheduler.update(plan, {"waits": 7})
    scheduler.update(plan, {"runs": 7})
    assert all_finish(cache, scheduler)


@pytest.mark.parametrize("token", BAD_SAMPLES, ids=repr)
def test_append_refuses_what_is_no_token(token):
    request = Request("r", [1])
    with pytest.raises(InvalidArgument, match="request 'r'"):
        request.append(token)
    assert list(request.tokens) == [1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_num_batched_tokens": 0}, "max_num_batched_tokens must be at least 1"),
        ({"max_num_seqs": 0}, "max_num_seqs must be at least 1"),
        ({"long_prefill_token_threshold": -1}, "long_prefill_token_threshold must be at least 0"),
        ({"publish_at": "never"}, "publish_at must be one of schedule, compute, not 'never'"),
        ({"victim": "oldest"}, "victim must be one of"),
        ({"watermark": 1.5}, "watermark must be between 0 and 1"),
        ({"new_token_ratio": float("nan")}, "new_token_ratio must be a number"),
    ],
)
def test_settings_say_which_of_them_is_wrong(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        SchedulerConfig(**changes)


def test_a_scheduler_refuses_settings_that_its_cache_cannot_follow():
    with pytest.raises(InvalidArgument, match="publish_at: this cache publishes computed tokens only"):
        Scheduler(RadixCache(8), SchedulerConfig.vllm())
    with pytest.raises(InvalidArgument, match="queue_policy must be one of fcfs"):
        SchedulerConfig(queue_policy="lifo")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"priority": "high"},
        {"priority": 0.5},
        {"arrival": "now"},
        {"arrival": float("nan")},
        {"stop_tokens": 5},
        {"stop_tokens": "ab"},
        {"stop_tokens": [-1]},
        {"prompt_logprobs": -1},
    ],
    ids=repr,
)
def test_an_option_that_would_stop_the_scheduler_later_is_refused_at_once(options):
    """A request that cannot be ordered or ended would make every later step raise, for all requests."""
    [name] = options
    with pytest.raises(InvalidArgument, match=name):
        Request("r", [1, 2, 3], **options)


def test_a_refused_request_leaves_no_trace_of_itself():
    _, scheduler = serving()
    request = Request("long", [1] * 100)
    with pytest.raises(RequestTooLong):
        scheduler.add(request)
    assert request.status is RequestStatus.WAITING
    scheduler.add(Request("long", [1], 1))
