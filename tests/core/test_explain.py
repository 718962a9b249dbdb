"""Every lookup is given the reason why it ended, and no answer to a tenant depends on another tenant."""

from collections.abc import Callable

import pytest

from minicache.core import EventStream, HashChainCache, Namespace, RadixCache, Request, Scheduler, SchedulerConfig
from minicache.core.errors import UnknownRequest
from minicache.core.explain import Explanation, explain
from minicache.core.history import History
from minicache.core.losses import Loss
from minicache.core.views import EngineView

B = 4


class World:
    """A scheduler over a small cache, with a history that listens; `serve` runs one request to its end."""

    def __init__(self, kind: str, num_blocks: int = 40, **config: object) -> None:
        self.events = EventStream()
        self.history = History()
        view = EngineView(num_blocks, B)
        self.events.sinks += [view, lambda event: self.history.on(event, view)]
        if kind == "hash":
            self.cache: HashChainCache | RadixCache = HashChainCache(num_blocks, B, events=self.events)
            settings = SchedulerConfig.vllm(**config)
        else:
            self.cache = RadixCache(num_blocks, B, events=self.events)
            settings = SchedulerConfig.sglang(**config)
        self.scheduler = Scheduler(self.cache, settings, events=self.events)

    def add(self, id: str, tokens: list[int], **options: object) -> Request:
        request = Request(id, tokens, max_tokens=1, **options)  # type: ignore[arg-type]
        self.scheduler.add(request)
        return request

    def step(self) -> None:
        plan = self.scheduler.schedule()
        self.cache.check()
        self.scheduler.update(plan, {item.request.id: 0 for item in plan.scheduled})
        self.cache.check()

    def serve(self, id: str, tokens: list[int], **options: object) -> Explanation:
        request = self.add(id, tokens, **options)
        while self.scheduler.has_unfinished:
            self.step()
        return explain(request, self.history)


@pytest.fixture(params=["hash", "radix"])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


def test_the_first_request_has_nothing_to_share(world: World) -> None:
    assert world.serve("r1", list(range(12))).reason == "unknown"


def test_a_difference_names_token_block_and_the_other_request(world: World) -> None:
    world.serve("r1", list(range(20)))
    found = world.serve("r2", [0, 1, 2, 3, 4, 99, *range(6, 20)])
    assert (found.reason, found.num_tokens, found.block, found.token, found.other) == ("difference", 4, 1, 5, "r1")
    assert (found.here, found.there, found.length, found.other_length) == (99, 5, 20, 21)


def test_the_nearest_request_is_compared(world: World) -> None:
    world.serve("far", [7, *range(1, 20)])
    world.serve("near", list(range(20)))
    world.serve("later", [8, *range(1, 20)])
    assert world.serve("r", [*range(10), 99, 98, 97]).other == "near"


def test_who_waits_is_no_comparison() -> None:
    """What was never admitted was never in the cache, however much it has in common."""
    world = World("radix", max_num_batched_tokens=100)
    world.serve("served", [*range(5), 90, 91, 92])
    looked_up = world.add("r", [*range(7), 80, 81, 82])
    world.add("waits", [*range(6), 70, 71, 72])
    world.step()
    assert explain(looked_up, world.history).other == "served"


def test_other_request_ends_in_the_middle_of_a_block(world: World) -> None:
    world.serve("r1", list(range(6)))
    found = world.serve("r2", list(range(12)))
    assert (found.reason, found.token, found.there) == ("difference", 6, 0)  # r1's only output token stands there


def test_the_other_request_ends_where_it_does_not_differ(world: World) -> None:
    world.serve("r1", [*range(5)])
    found = world.serve("r2", [*range(5), 0, *range(6, 12)])  # r1's only output token is a 0
    assert (found.reason, found.token, found.here, found.there, found.other_length) == ("difference", 6, 6, None, 6)


@pytest.mark.parametrize(
    ("tokens", "reason", "num_tokens"),
    [(list(range(10)), "whole", 8), (list(range(8)), "last_token", 4), ([0, 1, 2], "too_short", 0)],
)
def test_ends_that_are_rules(world: World, tokens: list[int], reason: str, num_tokens: int) -> None:
    world.serve("r1", tokens)
    found = world.serve("r2", tokens)
    assert (found.reason, found.num_tokens, found.block) == (reason, num_tokens, None)


def test_skipped(world: World) -> None:
    world.serve("r1", list(range(12)))
    assert world.serve("r2", list(range(12)), skip_cache_read=True).reason == "skipped"
    assert world.serve("r3", list(range(12)), prompt_logprobs=0).reason == "skipped"


def test_evicted_says_when_and_for_what(world: World) -> None:
    world.serve("r1", list(range(12)))
    world.serve("big", [50 + i for i in range(39 * B)])  # takes the whole pool
    evicted_in = world.scheduler.step
    found = world.serve("r2", list(range(12)))
    assert (found.reason, found.block) == ("evicted", 0)
    assert found.loss is not None
    assert (found.loss.cause, found.loss.request) == ("needed", "big")
    assert found.loss.step <= evicted_in


def test_evicted_by_reset(world: World) -> None:
    world.serve("r1", list(range(12)))
    assert world.cache.reset()
    found = world.serve("r2", list(range(12)))
    assert (found.reason, found.loss) == ("evicted", Loss(1, "reset"))


def test_evicted_by_hand(world: World) -> None:
    world.serve("r1", list(range(12)))
    assert world.cache.evict(40)
    found = world.serve("r2", list(range(12)))
    assert (found.reason, found.loss) == ("evicted", Loss(1, "evict_called"))


def test_not_computed_yet() -> None:
    world = World("radix", max_num_batched_tokens=100)
    world.add("r1", list(range(12)))
    r2 = world.add("r2", list(range(12)))
    world.step()  # both are admitted in one step; a radix cache publishes after it
    found = explain(r2, world.history)
    assert (found.reason, found.other) == ("not_computed", "r1")


def test_a_request_that_waits_computes_nothing() -> None:
    world = World("radix", max_num_batched_tokens=100)
    r1 = world.add("r1", list(range(12)))
    world.add("r2", list(range(12)))
    world.step()
    found = explain(r1, world.history)
    assert (found.reason, found.other) == ("waiting", "r2")


def test_of_several_that_have_the_same_block_the_running_one_computes_it() -> None:
    world = World("radix", max_num_batched_tokens=9)
    for id in ("first", "r", "later"):
        world.add(id, list(range(8)))
    world.step()  # `first` is admitted alone with all the budget but one token
    found = explain("r", world.history)
    assert (found.reason, found.other) == ("not_computed", "first")


def test_the_last_generated_token_has_no_kv() -> None:
    world = World("radix")
    world.serve("turn1", list(range(7)))
    found = world.serve("turn2", [*range(7), 0, *range(50, 60)])
    assert (found.reason, found.num_tokens, found.other) == ("no_kv", 4, "turn1")


def other_namespaces() -> list[Namespace]:
    return [Namespace(salt="b"), Namespace(extra=("k",)), Namespace()]


@pytest.mark.parametrize("namespace", other_namespaces(), ids=repr)
def test_only_operators_learn_of_other_namespaces(world: World, namespace: Namespace) -> None:
    world.serve("secret", list(range(12)), namespace=Namespace(salt="a"))
    found = world.serve("r2", list(range(12)), namespace=namespace)
    assert found.reason == "unknown"
    assert "secret" not in repr(found)
    told = explain("r2", world.history, operator=True)
    assert (told.reason, told.other) == ("other_namespace", "secret")


def answers(build: Callable[[], World], foreign: bool) -> list[Explanation]:
    world = build()
    found = []
    for turn, tokens in enumerate(([*range(12)], [*range(5), 99, 98, 97, 96], [*range(12)], [1, 2], [7] * 30)):
        if foreign:
            world.serve(f"foreign{turn}", [*tokens, 5, 5, 5, 5], namespace=Namespace(salt="other"))
        found.append(world.serve(f"own{turn}", tokens, namespace=Namespace(salt="own")))
    return found


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_answers_do_not_depend_on_other_namespaces(kind: str) -> None:
    """In a large pool a tenant gets the same explanation whether or not another tenant sends the same prompts."""
    assert answers(lambda: World(kind, 400), foreign=True) == answers(lambda: World(kind, 400), foreign=False)


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_answers_do_not_name_other_namespaces_when_they_evict(kind: str) -> None:
    world = World(kind)
    mine, yours = Namespace(salt="mine"), Namespace(salt="yours")
    world.serve("mine-1", list(range(12)), namespace=mine)
    world.serve("your-secret", [50 + i for i in range(39 * B)], namespace=yours)
    found = world.serve("mine-2", list(range(12)), namespace=mine)
    assert found.reason == "evicted"
    assert "your-secret" not in repr(found)
    assert found.loss is not None
    assert (found.loss.cause, found.loss.request) == ("needed", None)
    world = World(kind)
    world.serve("mine-1", list(range(12)), namespace=mine)
    world.serve("your-secret", [50 + i for i in range(39 * B)], namespace=yours)
    request = world.add("mine-2", list(range(12)), namespace=mine)
    world.step()
    loss = explain(request, world.history, operator=True).loss
    assert loss is not None
    assert (loss.cause, loss.request) == ("needed", "your-secret")


def test_what_another_namespace_has_lost_it_does_not_have(world: World) -> None:
    world.serve("foreign", list(range(12)), namespace=Namespace(salt="a"))
    assert world.cache.reset()
    world.serve("own", list(range(12)))
    assert explain("own", world.history, operator=True).reason == "unknown"


def test_who_waits_has_not_been_looked_up(world: World) -> None:
    assert explain(world.add("r1", [1, 2, 3]), world.history).reason == "not_looked_up"


def test_an_aborted_request_computes_nothing_any_more() -> None:
    world = World("radix", max_num_batched_tokens=4)
    world.add("gone", list(range(16)))
    world.step()
    world.scheduler.abort("gone")
    found = world.serve("r", list(range(16)))
    assert (found.reason, found.num_tokens) == ("unknown", 4)


def test_a_preempted_request_learns_of_its_own_lost_blocks() -> None:
    """Both decode until the pool is full; the later one is preempted, and its own blocks go to the other."""
    world = World("hash", num_blocks=9)
    a, b = (Request(id, [start + i for i in range(12)], max_tokens=20) for id, start in (("a", 0), ("b", 50)))
    world.scheduler.add(a)
    world.scheduler.add(b)
    while b.num_preemptions == 0 or explain(b, world.history).reason != "evicted":
        world.step()
    found = explain(b, world.history)
    assert found.loss is not None
    assert found.loss.request == "a"
    assert found.block == found.num_tokens // B


def test_a_block_is_remembered_when_its_publisher_is_not() -> None:
    world = World("hash")
    world.history.max_requests = 3
    world.serve("publisher", list(range(12)))
    world.serve("adopter", list(range(12)))
    for id in ("x", "y"):
        world.serve(id, [90 + len(id)] * 9)
    world.serve("big", [50 + i for i in range(39 * B)])
    assert world.serve("r", list(range(12))).reason == "evicted"


def test_duplicates_in_front_of_a_new_leaf_do_not_confuse_the_history() -> None:
    """Two prompts that diverge late, computed in one step: the second publishes its tail after the first's blocks."""
    world = World("radix", num_blocks=60)
    world.add("a", [*range(12), 50, 51, 52, 53])
    world.add("b", [*range(12), 60, 61, 62, 63])
    world.step()
    found = world.serve("c", [*range(12), 60, 61, 62, 63, *range(70, 75)])
    assert (found.reason, found.num_tokens, found.other) == ("difference", 16, "b")


def test_forgotten_requests_are_unknown() -> None:
    world = World("hash")
    world.history.max_requests = 2
    for id in ("r1", "r2", "r3"):
        world.serve(id, list(range(9)))
    with pytest.raises(UnknownRequest, match="r1"):
        explain("r1", world.history)
    assert explain("r3", world.history).reason == "whole"
