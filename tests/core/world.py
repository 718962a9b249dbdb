"""Small worlds for a cache: a history of operations, KV memory, and laws that watch.

Operations are data, `("arrive", 1, 0, 3, ...)`, and their numbers are taken modulo the number of choices, so every list
of operations is a legal history. Hypothesis can therefore shrink histories, fixed ones can be repeated, and mutants run
the same ones.

`CacheWorld` calls the cache as a scheduler does, and in ways in which no scheduler does. `ServingWorld` adds the
scheduler, and a model that can fail. Prompts use only two tokens and one changed token, so many blocks have equal
tokens.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, NamedTuple

from hypothesis import strategies as st

from minicache.core import (
    Adapter,
    EventStream,
    HashChainCache,
    Match,
    Namespace,
    RadixCache,
    Request,
    Scheduler,
    SchedulerConfig,
    StepPlan,
)
from minicache.core.eviction import STRATEGIES
from minicache.core.paged_cache import PagedCache
from minicache.core.queue_policy import POLICIES
from minicache.core.scheduler_config import VICTIMS
from tests.core.shadow_kv import POISON, ShadowKV, next_token

Operation = tuple[Any, ...]

NAMESPACES = (
    Namespace(),
    Namespace(salt="tenant"),
    Namespace(adapter=Adapter("tenant", "/a")),
    Namespace(adapter=Adapter("tenant", "/b"), salt="tenant", extra=("x",)),
)
CACHE_CALLS = ("lookup", "allocate", "publish", "release", "make_room", "evict", "reset")
STEPS_TO_DRAIN = 1500
IDLE_STEPS = 20  # after this many steps that compute nothing, no step ever will


class Subject(NamedTuple):
    """A cache and scheduler that laws are checked on. A mutant is a subject with one wrong part. `at` says from where
    another process can import the subject, as `module:name`."""

    kind: str  # "hash" | "radix"
    cache: Callable[..., PagedCache]
    scheduler: type[Scheduler] = Scheduler
    at: str = ""


HASH = Subject("hash", HashChainCache, at="tests.core.world:HASH")
RADIX = Subject("radix", RadixCache, at="tests.core.world:RADIX")
SUBJECTS = {"hash": HASH, "radix": RADIX}


class ModelFailed(Exception):
    """The forward pass raised."""


class Watcher:
    """A law in a world. Each method is called at its moment and asserts. The docstring of the class is the law."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.cache = world.cache

    def before(self, call: str, *args: Any) -> None:
        """Before a public call of the cache."""

    def after(self, call: str, result: Any, *args: Any) -> None:
        """After a public call of the cache."""

    def after_public(self) -> None:
        """After a call of the scheduler, or of the cache in a world without a scheduler."""

    def read(self, request: Request, values: list[int]) -> None:
        """The model attends to these KV values for the request."""

    def at_rest(self) -> None:
        """No step is in flight."""

    def at_end(self) -> None:
        """At the end, when every request has finished and given its blocks back."""


@dataclass(frozen=True)
class Settings:
    """`room` is the number of blocks that the pool has beyond those of the longest request; `scheduler` holds changes
    to the profile."""

    kind: str
    block_size: int
    room: int
    strategy: str = "lru"
    profile: str = "vllm"
    scheduler: dict[str, Any] = field(default_factory=dict)

    CHOICES: ClassVar[dict[str, tuple[Any, ...]]] = {
        "block_size": (1, 2, 4, 16),
        "room": (0, 2, 5, 12),
        "strategy": tuple(STRATEGIES),
        "profile": ("vllm", "sglang"),
    }
    SCHEDULER_CHOICES: ClassVar[dict[str, tuple[Any, ...]]] = {
        "max_num_batched_tokens": (4, 12, 64),
        "max_num_seqs": (3, 16),
        "long_prefill_token_threshold": (0, 5),
        "queue_policy": (None, *POLICIES),
        "admission": (None, "first_chunk", "full_sequence", "output_reserve"),
        "publish_at": (None, "schedule", "compute"),
        "publish_outputs": (None, "as_filled", "at_finish"),
        "victim": (None, *VICTIMS),
        "preempted_to": (None, "front", "back"),
        "watermark": (0.0, 0.2),
    }

    @property
    def unit(self) -> int:
        """The unit of prompt lengths: prompts have one to three units, or one token less or more."""
        return max(4, self.block_size)

    @property
    def num_blocks(self) -> int:
        longest = 3 * self.unit + 1 + ServingWorld.MAX_OUTPUT
        return 1 + -(-longest // self.block_size) + self.room

    def config(self) -> SchedulerConfig:
        changes = {name: value for name, value in self.scheduler.items() if value is not None}
        if self.kind == "radix" and changes.get("publish_at", self.profile == "vllm") in ("schedule", True):
            changes["publish_at"] = "compute"
        return getattr(SchedulerConfig, self.profile)(**changes)


class World:
    """A cache, its KV memory, its events, and the laws that watch."""

    OPERATIONS: ClassVar[dict[str, tuple[int, ...]]] = {}  # operation -> how many values each of its numbers has
    WEIGHTS: ClassVar[dict[str, int]] = {}  # operations that are drawn more often
    PROMPT: ClassVar[tuple[int, ...]] = (3, 3, 6, 3, 5, 6)  # units, offset, where changed, to what, namespace, flags

    def __init__(self, settings: Settings, subject: Subject, laws: Iterable[type[Watcher]], guard: "Guard") -> None:
        self.settings, self.subject = settings, subject
        self.seen: Counter[str] = Counter()
        self.stream = EventStream(self._on_event, clock=lambda: 0.0)
        strategy = {"strategy": settings.strategy} if subject.kind == "radix" else {}
        self.cache = subject.cache(settings.num_blocks, settings.block_size, events=self.stream, **strategy)
        self.raw = {name: getattr(self.cache, name) for name in CACHE_CALLS}
        for name in CACHE_CALLS:
            setattr(self.cache, name, self._watched(name))
        self.kv = ShadowKV(settings.block_size)
        self.requests: list[Request] = []
        self.plan: StepPlan | None = None  # the one that the model runs
        self._scheduled: set[str] = set()  # requests that got blocks in this step
        self.guard = guard
        self.laws: list[Watcher] = []
        self.build()
        self.laws = [law(self) for law in laws]

    def build(self) -> None:
        """Build the parts of a world that are not the cache."""

    def tell(self, moment: str, *args: Any) -> None:
        for law in self.laws:
            self.guard(law, getattr(law, moment), *args)

    def _watched(self, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.tell("before", name, *args)
            result = self.raw[name](*args)
            if name == "allocate":
                self.seen["failed allocations"] += not result
            self.tell("after", name, result, *args)
            return result

        return call

    def _on_event(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "BlocksAllocated":
            self._scheduled.add(event.request)
            self.kv.poison(event.blocks)
        elif kind == "BlocksAdopted":
            self.seen["hits"] += 1
            unwritten = any(POISON in self.kv.block(block) for block in event.blocks)
            self.seen["same-step sharing"] += unwritten
        elif kind in ("StepStarted", "StepFinished"):
            self._scheduled.clear()
        elif kind == "RequestPreempted":
            self.seen["preemptions"] += 1
            if event.cause == "no_free_block":
                self.seen["scheduled victims"] += event.request in self._scheduled
        elif kind == "BlocksPublished" and event.hashes:
            self.seen["duplicates"] += any(len(copies) > 1 for copies in self.cache.snapshot().copies.values())
        else:
            names = {
                "BlocksEvicted": "evictions",
                "NodesEvicted": "evictions",
                "NodeSplit": "splits",
                "DuplicatesFreed": "duplicates",
                "BlocksUnpublished": "unpublished",
                "QueueReordered": "reordered queues",
            }
            if kind in names:
                self.seen[names[kind]] += 1

    def new_request(self, units: int, offset: int, changed: int, variant: int, namespace: int, flags: int) -> Request:
        length = (units + 1) * self.settings.unit + offset - 1
        tokens = [position % 2 for position in range(length)]
        if variant:
            tokens[changed * length // self.PROMPT[2]] = 1 + variant
        return self.request_for(tokens, NAMESPACES[max(0, namespace - 1)], flags)

    def request_for(self, tokens: list[int], namespace: Namespace, flags: int, max_tokens: int = 4) -> Request:
        number = len(self.requests)
        request = Request(
            f"r{number}",
            tokens,
            max_tokens,
            namespace=namespace,
            priority=number % 3,
            arrival=float(number),
            prompt_logprobs=self.settings.unit + 1 if flags == 3 else None,
            skip_cache_read=flags == 4,
            stop_tokens=(0,) if flags == 5 else (),
        )
        self.requests.append(request)
        return request

    def attend(self, request: Request, table: Iterable[int], end: int) -> list[int]:
        values = self.kv.read(tuple(table), end)
        self.tell("read", request, values)
        return values

    def live(self, operations: Iterable[Operation]) -> None:
        for name, *numbers in operations:
            getattr(self, name)(*numbers)
            self.tell("at_rest")
        self.drain()
        self.tell("at_end")

    def drain(self) -> None:
        raise NotImplementedError


class CacheWorld(World):
    """Calls of the cache alone. A chunk is published after it was computed (`when` is 0 or 1), before (2), or never
    (3)."""

    OPERATIONS: ClassVar = {
        "arrive": (*World.PROMPT, 4, 4),
        "arrive_again": (100, 3, 4, 4),
        "resume": (100, 4, 4),
        "advance": (100, 4, 4),
        "publish": (100, 50),
        "lose": (100, 4),
        "release": (100,),
        "release_any": (100,),
        "evict": (4,),
        "reset": (),
    }
    WEIGHTS: ClassVar = {"arrive": 5, "arrive_again": 3, "resume": 2, "advance": 6, "release": 3}

    def build(self) -> None:
        self.holders: list[Request] = []

    def call(self, name: str, *args: Any) -> Any:
        result = getattr(self.cache, name)(*args)
        self.tell("after_public")
        return result

    def arrive(self, *numbers: int) -> None:
        *prompt, part, when = numbers
        self._admit(self.new_request(*prompt), part, when)

    def arrive_again(self, which: int, tail: int, part: int, when: int) -> None:
        """The next turn of a conversation, or the same prompt once more."""
        if self.requests:
            earlier = self.requests[which % len(self.requests)]
            tokens = [*earlier.tokens, *[1] * tail][: 3 * self.settings.unit + 1]
            self._admit(self.request_for(tokens, earlier.namespace, 0), part, when)

    def resume(self, which: int, part: int, when: int) -> None:
        idle = [request for request in self.requests if request not in self.holders]
        if idle:
            self._admit(idle[which % len(idle)], part, when)

    def _admit(self, request: Request, part: int, when: int) -> None:
        match: Match = self.call("lookup", request)
        count = max(1, (request.num_tokens - match.num_tokens) * (part + 1) // 4)
        if self.call("allocate", request, match, count):
            self.holders.append(request)
            self._compute(request, count, when)
        else:
            request.num_computed_tokens = 0

    def _compute(self, request: Request, count: int, when: int) -> None:
        start = request.num_computed_tokens
        end = start + count
        if when == 2 and self.subject.kind == "hash":
            self.call("publish", request, end)
        self.kv.write(request, request.block_table, start, end)
        values = self.attend(request, request.block_table, end)
        request.num_computed_tokens = end
        if when < 2:
            self.call("publish", request, end)
        if end == request.num_tokens and request.num_output_tokens < request.max_tokens:
            request.append(next_token(values))

    def _one_of_holders(self, which: int) -> Request | None:
        return self.holders[which % len(self.holders)] if self.holders else None

    def advance(self, which: int, part: int, when: int) -> None:
        request = self._one_of_holders(which)
        if request and (missing := request.num_tokens - request.num_computed_tokens):
            count = max(1, missing * (part + 1) // 4)
            if self.call("allocate", request, None, count):
                self._compute(request, count, when)

    def publish(self, which: int, num_tokens: int) -> None:
        if request := self._one_of_holders(which):
            self.call("publish", request, min(num_tokens, request.num_computed_tokens))

    def lose(self, which: int, part: int) -> None:
        """A chunk gets blocks, is published before it is computed if the cache allows that, and is never computed."""
        request = self._one_of_holders(which)
        if request and (missing := request.num_tokens - request.num_computed_tokens):
            count = max(1, missing * (part + 1) // 4)
            if self.call("allocate", request, None, count) and self.subject.kind == "hash":
                self.call("publish", request, request.num_computed_tokens + count)
            self._release(request)

    def release(self, which: int) -> None:
        if request := self._one_of_holders(which):
            self._release(request)

    def release_any(self, which: int) -> None:
        if self.requests:
            self._release(self.requests[which % len(self.requests)])

    def _release(self, request: Request) -> None:
        self.call("release", request)
        request.num_computed_tokens = 0
        if request in self.holders:
            self.holders.remove(request)

    def evict(self, num_blocks: int) -> None:
        self.call("evict", num_blocks)

    def reset(self) -> None:
        self.call("reset")

    def drain(self) -> None:
        for request in list(self.holders):
            self._release(request)


class ServingWorld(World):
    """A scheduler over the cache, and a model that reads and writes the KV memory as the plan says."""

    MAX_OUTPUT = 12
    OPERATIONS: ClassVar = {
        "arrive": (*World.PROMPT, MAX_OUTPUT),
        "follow_up": (100, 3, MAX_OUTPUT),
        "step": (),
        "steps": (8,),
        "fail": (),
        "abort": (100,),
        "abort_in_flight": (100,),
        "abort_and_fail": (100,),
        "arrive_in_flight": (*World.PROMPT, MAX_OUTPUT),
        "finish": (100,),
        "evict": (4,),
        "reset": (),
    }
    WEIGHTS: ClassVar = {"arrive": 10, "follow_up": 5, "step": 8, "steps": 4, "abort_in_flight": 2}

    def build(self) -> None:
        self.scheduler = self.subject.scheduler(self.cache, self.settings.config(), events=self.stream)

    def call(self, call: Callable[..., Any], *args: Any) -> Any:
        result = call(*args)
        self.tell("after_public")
        return result

    def arrive(self, *numbers: int) -> None:
        *prompt, more = numbers
        request = self.new_request(*prompt)
        request.max_tokens = more + 1
        self.call(self.scheduler.add, request)

    def follow_up(self, which: int, tail: int, more: int) -> None:
        """The next turn of a conversation: the whole conversation so far and a few tokens more."""
        if self.requests:
            earlier = self.requests[which % len(self.requests)]
            tokens = [*earlier.tokens, *[1] * tail][: 3 * self.settings.unit + 1]
            self.call(self.scheduler.add, self.request_for(tokens, earlier.namespace, 0, more + 1))

    def step(self, meanwhile: Callable[[], None] = lambda: None) -> StepPlan:
        self.plan = self.call(self.scheduler.schedule)
        meanwhile()
        plan, sampled = self.plan, self._run(self.plan)
        self.plan = None
        self.call(self.scheduler.update, plan, sampled)
        return plan

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()
            self.tell("at_rest")

    def _run(self, plan: StepPlan) -> dict[str, int]:
        """Run the plan as a layer does: write the KV of the whole batch first, then let every request attend."""
        for item in plan.scheduled:
            self.kv.write(item.request, item.block_table, item.start, item.start + item.num_tokens)
        sampled = {}
        for item in plan.scheduled:
            values = self.attend(item.request, item.block_table, item.start + item.num_tokens)
            if item.samples:
                sampled[item.request.id] = next_token(values)
        return sampled

    def fail(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        plan = self.plan = self.call(self.scheduler.schedule)
        meanwhile()
        self.plan = None
        with suppress(ModelFailed), self.scheduler.undo_on_error(plan):
            raise ModelFailed("out of memory")
        self.seen["failed steps"] += bool(plan)
        self.tell("after_public")

    def _unfinished(self, which: int) -> str | None:
        ids = [request.id for request in self.scheduler.running + self.scheduler.waiting]
        return ids[which % len(ids)] if ids else None

    def abort(self, which: int) -> None:
        if id := self._unfinished(which):
            self.call(self.scheduler.abort, id)

    def _abort_now(self, which: int) -> Callable[[], None]:
        def abort() -> None:
            self.seen["aborted in flight"] += bool(self.scheduler.running)
            self.abort(which)

        return abort

    def abort_in_flight(self, which: int) -> None:
        self.step(self._abort_now(which))

    def abort_and_fail(self, which: int) -> None:
        self.fail(self._abort_now(which))

    def arrive_in_flight(self, *numbers: int) -> None:
        self.step(lambda: self.arrive(*numbers))

    def finish(self, which: int) -> None:
        if self.scheduler.running:
            request = self.scheduler.running[which % len(self.scheduler.running)]
            self.call(self.scheduler.finish, request, "stop")

    def evict(self, num_blocks: int) -> None:
        self.call(self.cache.evict, num_blocks)

    def reset(self) -> None:
        """As before new weights are loaded: every request gives its blocks back, and then the reset must succeed."""
        assert self.call(self.scheduler.reset_cache, True), "nothing is held when all were preempted"

    def drain(self) -> None:
        idle = steps = 0
        while self.scheduler.has_unfinished and idle < IDLE_STEPS and steps < STEPS_TO_DRAIN:
            idle = 0 if self.step() else idle + 1
            steps += 1
            self.tell("at_rest")


WORLDS: dict[str, type[World]] = {"cache": CacheWorld, "serving": ServingWorld}


class Guard:
    """The caller of laws. This one lets the errors of broken laws propagate."""

    def __call__(self, law: Watcher, moment: Callable[..., None], *args: Any) -> None:
        moment(*args)


@dataclass(frozen=True)
class History:
    """A world, its settings and its operations."""

    world: str
    settings: Settings
    operations: tuple[Operation, ...]

    def run(self, *laws: type[Watcher], subject: Subject | None = None, guard: Guard | None = None) -> Counter[str]:
        """Run the operations under these laws. Returns how often each kind of event happened."""
        subject = subject or SUBJECTS[self.settings.kind]
        world = WORLDS[self.world](self.settings, subject, laws, guard or Guard())
        world.live(self.operations)
        return world.seen


def _weighted(world: str) -> list[str]:
    kind = WORLDS[world]
    return [name for name in kind.OPERATIONS for _ in range(kind.WEIGHTS.get(name, 1))]


def random_history(world: str, kind: str, seed: int, length: int = 40, **fixed: Any) -> History:
    """A random history; equal arguments give the same one."""
    draw = Random(f"{world} {kind} {seed}")
    choices = {name: draw.choice(options) for name, options in Settings.CHOICES.items()}
    scheduler = {name: draw.choice(options) for name, options in Settings.SCHEDULER_CHOICES.items()}
    names = draw.choices(_weighted(world), k=length)
    operations = ((name, *(draw.randrange(n) for n in WORLDS[world].OPERATIONS[name])) for name in names)
    return History(world, Settings(kind, **(choices | {"scheduler": scheduler} | fixed)), tuple(operations))


def histories(world: str, kind: str, max_size: int = 40) -> st.SearchStrategy[History]:
    """The same for hypothesis, which searches for the shortest history that breaks a law."""
    operations = [
        st.tuples(st.just(name), *(st.integers(0, n - 1) for n in WORLDS[world].OPERATIONS[name]))
        for name in _weighted(world)
    ]
    settings = st.builds(
        Settings,
        kind=st.just(kind),
        scheduler=st.fixed_dictionaries({n: st.sampled_from(o) for n, o in Settings.SCHEDULER_CHOICES.items()}),
        **{name: st.sampled_from(options) for name, options in Settings.CHOICES.items()},
    )
    drawn = st.lists(st.one_of(operations), min_size=5, max_size=max_size).map(tuple)
    return st.builds(History, st.just(world), settings, drawn)
