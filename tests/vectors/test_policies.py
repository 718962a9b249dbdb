"""P: who is admitted first, and who is preempted first, in SGLang."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from minicache.core import NoCache, RadixCache, Request, SchedulerConfig
from minicache.core.queue_policy import LongestPrefix, fcfs, in_batch_sharers, lpm, policy_named
from tests.vectors.drivers import Radix, span
from tests.vectors.registry import table, vector

Check = Callable[[], None]


def ids(requests: Sequence[Request]) -> str:
    return "".join(request.id for request in requests)


def unknown_name() -> None:
    with pytest.raises(ValueError, match="queue_policy must be one of"):
        policy_named("shortest-job-first", RadixCache(8))


def cache_disabled() -> None:
    assert policy_named("lpm", NoCache(8)) is fcfs
    assert isinstance(policy_named("lpm", RadixCache(8)), LongestPrefix)


def limit_of_lpm() -> None:
    for num_waiting, first in ((128, "cached"), (129, "w0")):
        radix = Radix()
        radix.cache_prompt([1, 2, 3])
        waiting = [Request(f"w{index}", [9]) for index in range(num_waiting - 1)]
        waiting.append(Request("cached", [1, 2, 3, 4]))
        policy_named("lpm", radix.cache)(waiting, radix.cache)
        assert waiting[0].id == first


@vector("P1", "unknown names are refused; lpm is fcfs without a cache, and above 128 waiting requests")
@pytest.mark.parametrize("check", [unknown_name, cache_disabled, limit_of_lpm])
def test_policy_names(check: Check) -> None:
    check()


@vector("P2", "lpm: by the length of the match, without the last token; ties keep their order")
def test_longest_prefix_match() -> None:
    radix = Radix()
    radix.cache_prompt([1, 2, 3])
    waiting = [Request("a", [1, 2]), Request("b", [5]), Request("c", [1, 2, 3, 4]), Request("d", [6])]
    assert [radix.cache.lookup(request).num_tokens for request in waiting] == [1, 0, 3, 0]
    lpm(waiting, radix.cache)
    assert ids(waiting) == "cabd"


def sharer(id: str, shared: int, own: int) -> Request:
    """A prompt that begins with the first `shared` of the common tokens and goes on with 10 of its own."""
    return Request(id, span(0, shared) + [own] * 10)


UNRELATED = 5000


@table(
    "cached, waiting, deprioritised, order",
    {
        "P5": (
            "of three requests that share 100 tokens one goes first; a request that shares nothing does not wait",
            0,
            [sharer("a", 100, 1), sharer("b", 100, 2), sharer("c", 100, 3), Request("d", [UNRELATED] * 50)],
            {"b", "c"},
            "adbc",
        ),
        "P5.2": (
            "sharing 32 tokens is enough to wait",
            0,
            [sharer("a", 32, 1), sharer("b", 32, 2)],
            {"b"},
            "ab",
        ),
        "P5.3": (
            "a prefix that is cached already is no reason to wait",
            40,
            [Request("x", [UNRELATED] * 20), sharer("a", 40, 1), sharer("b", 40, 2)],
            set(),
            "abx",
        ),
        "P5.4": (
            "with 32 tokens cached and 92 shared, a request waits",
            32,
            [Request("x", [UNRELATED] * 20), sharer("a", 92, 1), sharer("b", 92, 2)],
            {"b"},
            "axb",
        ),
    },
)
def test_in_batch_sharers(cached: int, waiting: list[Request], deprioritised: set[str], order: str) -> None:
    check_in_batch(cached, waiting, deprioritised, order)


@vector("P5.2", "sharing 32 tokens is enough to wait")
def test_sharing_31_tokens_is_not_enough() -> None:
    check_in_batch(0, [sharer("a", 31, 1), sharer("b", 31, 2)], set(), "ab")


def check_in_batch(cached: int, waiting: list[Request], deprioritised: set[str], order: str) -> None:
    radix = Radix(num_blocks=128)
    if cached:
        radix.cache_prompt(span(0, cached))
    matched = {request.id: radix.cache.lookup(request).num_tokens for request in waiting}
    assert in_batch_sharers(waiting, matched) == deprioritised
    queue = list(waiting)
    lpm(queue, radix.cache)
    assert ids(queue) == order


def running(id: str, num_output: int, num_input: int) -> Request:
    request = Request(id, [1] * num_input, max_tokens=100)
    for _ in range(num_output):
        request.append(2)
    return request


@vector("P6", "the victim of a preemption: the request with the least output, the longest input among equals")
def test_order_of_preemption() -> None:
    config: Any = SchedulerConfig.sglang()
    left = [running("0", 10, 100), running("1", 3, 50), running("2", 3, 500), running("3", 40, 20)]
    order = ""
    while left:  # the last one would not go of its own accord: alone, it always fits
        victim = config.choose_victim(left)
        order += victim.id
        left.remove(victim)
    assert order == "2103"
