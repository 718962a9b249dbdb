"""`queue_policy` and `eviction_strategy` of an `EngineConfig`: each takes effect, and each wrong pair is named."""

import pytest

from minicache.core import Request
from minicache.core.errors import InvalidArgument
from minicache.core.eviction import STRATEGIES
from minicache.core.queue_policy import POLICIES
from minicache.engine import Engine, EngineConfig, SamplingParams

ONE = SamplingParams(max_tokens=1, ignore_eos=True)
CACHES = ("hash", "radix", "none")


def order_of_answers(engine: Engine, prompts: list[tuple[str, int]]) -> list[str]:
    """The prompts in the order in which their answers end, one request at a time."""
    ids = {engine.submit(prompt, ONE, priority=priority): prompt for prompt, priority in prompts}
    ended: list[str] = []
    while engine.has_unfinished:
        ended += [ids[output.request_id] for output in engine.step() if output.finished]
    return ended


@pytest.mark.parametrize(("policy", "first"), [(None, "late"), ("fcfs", "late"), ("priority", "urgent")])
@pytest.mark.parametrize("cache", CACHES)
def test_the_priority_policy_serves_the_most_urgent_request_first(cache: str, policy: str | None, first: str) -> None:
    engine = Engine(cache=cache, num_blocks=200, max_num_seqs=1, queue_policy=policy)
    assert order_of_answers(engine, [("late", 5), ("urgent", 1)])[0] == first


@pytest.mark.parametrize(("policy", "first"), [(None, "cold"), ("lpm", "warm")])
@pytest.mark.parametrize("cache", ["hash", "radix"])
def test_the_lpm_policy_serves_the_longest_cached_prefix_first(cache: str, policy: str | None, first: str) -> None:
    engine = Engine(cache=cache, num_blocks=200, max_num_seqs=1, queue_policy=policy)
    cold, warm = "Something else entirely. " * 2, "A prefix cache keeps keys and values. " * 2
    engine.generate([warm], ONE)
    assert order_of_answers(engine, [(cold, 0), (warm + "?", 0)])[0] == {"cold": cold, "warm": warm + "?"}[first]


def test_the_sglang_profile_keeps_its_own_policy_unless_another_is_set() -> None:
    assert Engine(cache="radix", num_blocks=50).scheduler.config.queue_policy == "fcfs-retouch"
    assert Engine(cache="radix", num_blocks=50, queue_policy="lpm").scheduler.config.queue_policy == "lpm"
    assert Engine(num_blocks=50, queue_policy="priority").scheduler.config.victim == "lowest_priority"


def hits_after_pressure(strategy: str | None) -> tuple[bool, bool]:
    """Whether two prompts, A older but used last and B newer, are found after a third one needed room."""
    engine = Engine(cache="radix", num_blocks=61, eviction_strategy=strategy)
    a, b, c = ("A" * 25, "B" * 25, "C" * 25)
    for prompt in (a, b):
        engine.generate([prompt], ONE)
    engine.cache.lookup(Request("hit", engine.encode(a + "?"), 1))  # finds all of A
    engine.generate([c], ONE)
    found_a, found_b = (engine.cache.lookup(Request("probe", engine.encode(prompt), 1)) for prompt in (a, b))
    return found_a.num_tokens >= 20, found_b.num_tokens >= 20


@pytest.mark.parametrize(
    ("strategy", "kept"),
    [
        (None, "A"),
        ("lru", "A"),  # B was used less recently
        ("lfu", "A"),  # of two with as many hits, B was used less recently
        ("slru", "A"),
        ("fifo", "B"),  # A came first
        ("mru", "B"),  # A was used last
        ("filo", "A"),  # B came last
    ],
)
def test_the_strategy_chooses_the_prefix_that_is_evicted(strategy: str | None, kept: str) -> None:
    assert hits_after_pressure(strategy) == (kept == "A", kept == "B")


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_a_radix_cache_has_a_strategy(cache: str, strategy: str) -> None:
    if cache == "radix":
        EngineConfig(cache=cache, eviction_strategy=strategy)
        return
    with pytest.raises(InvalidArgument, match=f"eviction_strategy is a setting of cache radix, not of {cache}"):
        EngineConfig(cache=cache, eviction_strategy=strategy)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_that_could_do_nothing_is_refused(cache: str, policy: str) -> None:
    useless = (policy == "fcfs-retouch" and cache != "radix") or (policy == "lpm" and cache == "none")
    if useless:
        with pytest.raises(InvalidArgument, match=rf"queue_policy {policy} .*cache.*{cache}.*: use fcfs"):
            EngineConfig(cache=cache, queue_policy=policy)
    else:
        EngineConfig(cache=cache, queue_policy=policy)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"queue_policy": "lmp"}, r"queue_policy must be one of fcfs, fcfs-retouch, priority, lpm, not 'lmp'"),
        ({"cache": "radix", "eviction_strategy": "lur"}, r"eviction_strategy must be one of lru, lfu, .*, not 'lur'"),
    ],
)
def test_an_unknown_name_is_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        EngineConfig(**settings)
