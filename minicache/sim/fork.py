"""What if? The same run up to a step boundary, then something is different.

State is never copied: the scenario is run again from its seed, for it comes out the same, and then changed. A fork can
be forked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from minicache.core.errors import MinicacheError
from minicache.core.eviction import strategy_named
from minicache.core.queue_policy import policy_named
from minicache.core.radix_cache import RadixCache
from minicache.sim.collection import no_collection
from minicache.sim.errors import BadChange
from minicache.sim.prompt import Part
from minicache.sim.rerun import scenario_of
from minicache.sim.scenario import CacheSettings, RequestSpec
from minicache.sim.scenario_file import SCHEDULER_FIELDS
from minicache.sim.simulator import Simulator
from minicache.sim.timeline import Timeline
from minicache.sim.toml_table import suggestion


class Change(Protocol):
    """Something that is different from a step boundary on."""

    def apply(self, sim: Simulator, timeline: Timeline) -> None:
        """Make it so. Between two steps of `sim`, whose events `timeline` records. Raises `BadChange`."""
        ...

    def describe(self) -> str:
        """The change in a few words."""
        ...


@dataclass(frozen=True)
class InjectRequest:
    """One more request. It arrives at once, or when its `at`, `step` or `after` says so, if that is later."""

    spec: RequestSpec

    def apply(self, sim: Simulator, timeline: Timeline) -> None:
        spec = self.spec
        if spec.id in sim.scenario.max_tokens:
            raise BadChange(f"there is a request {spec.id!r} already: give the new one another id")
        if spec.after is None and spec.step is None:
            spec = replace(spec, at=max(spec.at, sim.now))
        changed = sim.scenario.with_request(spec)
        changed.require_order()
        changed.require_fit(timeline.kind)
        sim.scenario = changed
        sim.expect(spec)

    def describe(self) -> str:
        return f"request {self.spec.id} is injected"


@dataclass(frozen=True)
class EditPrompt:
    """A request that has not arrived yet comes with another prompt."""

    request: str
    prompt: tuple[Part, ...]

    def apply(self, sim: Simulator, timeline: Timeline) -> None:
        specs = {spec.id: spec for spec in sim.scenario.requests}
        if self.request not in specs:
            raise BadChange(f"there is no request {self.request!r}{suggestion(self.request, specs)}")
        if self.request in sim.arrived:
            place = next(i for i, e in enumerate(timeline.events) if getattr(e, "request", None) == self.request)
            raise BadChange(
                f"{self.request} has arrived already: fork before step {timeline.events[place].step + 1}, "
                f"at event {place - 1} or before"
            )
        spec = replace(specs[self.request], prompt=self.prompt)
        changed = sim.scenario.with_request(spec)
        changed.require_order()
        changed.require_fit(timeline.kind)
        sim.replace(spec)

    def describe(self) -> str:
        return f"the prompt of {self.request} is edited"


@dataclass(frozen=True)
class SetPolicy:
    """Other settings: any field of `SchedulerConfig`, and `strategy` of the radix cache."""

    settings: Mapping[str, Any]

    def apply(self, sim: Simulator, timeline: Timeline) -> None:
        settings, scheduler = dict(self.settings), sim.scheduler
        strategy = settings.pop("strategy", None)
        for name in settings:
            if name not in SCHEDULER_FIELDS:
                raise BadChange(f"there is no setting {name!r}{suggestion(name, (*SCHEDULER_FIELDS, 'strategy'))}")
        try:
            config = replace(scheduler.config, **settings)
            config.require_possible_with(sim.cache)
            order = scheduler.order
            if "queue_policy" in settings:
                order = policy_named(config.queue_policy, sim.cache)
            if strategy is not None:
                if not isinstance(sim.cache, RadixCache):
                    raise BadChange("strategy: only the radix cache has a choice; the hash chain evicts in queue order")
                sim.cache.tree.eviction_key = strategy_named(strategy)
        except (MinicacheError, TypeError) as error:
            raise BadChange(str(error)) from None
        scheduler.config, scheduler.order = config, order

    def describe(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.settings.items())


@dataclass(frozen=True)
class ShrinkPool:
    """`count` blocks are taken out of the pool: the free ones in their order, and what they cached is evicted. If there
    are not enough, everybody who runs is preempted."""

    count: int

    def apply(self, sim: Simulator, timeline: Timeline) -> None:
        left = sim.cache.capacity - sim.num_taken - self.count
        if self.count < 1 or left < 1:
            raise BadChange(f"count: {self.count} blocks cannot be taken from a pool of {left + self.count}")
        _require_fit(sim, left, sim.cache.block_size)
        if not sim.take_away(self.count):
            sim.scheduler.preempt_all()
            sim.take_away(self.count)

    def describe(self) -> str:
        return f"{self.count} blocks are taken away"


@dataclass(frozen=True)
class SetBlockSize:
    """The same memory in blocks of another size. KV lies in blocks, so nothing of it can be kept: whoever runs is
    preempted, and the cache starts empty."""

    block_size: int

    def apply(self, sim: Simulator, timeline: Timeline) -> None:
        if self.block_size < 1:
            raise BadChange(f"block_size must be at least 1, not {self.block_size}")
        cache, old = sim.cache, sim.scenario.caches[timeline.kind]
        tokens = (cache.capacity - sim.num_taken) * cache.block_size
        settings = CacheSettings(timeline.kind, self.block_size, tokens // self.block_size + 1, old.strategy)
        _require_fit(sim, settings.num_blocks - 1, self.block_size)
        sim.scheduler.preempt_all()
        sim.put_in(settings)
        timeline.rebase(settings.num_blocks, settings.block_size)

    def describe(self) -> str:
        return f"blocks of {self.block_size} tokens, and an empty cache"


def _require_fit(sim: Simulator, num_blocks: int, block_size: int) -> None:
    """Every request that is not done must fit into `num_blocks` blocks."""
    for spec in sim.scenario.requests:
        length = sim.scenario.prompt_length(spec) + spec.max_tokens - 1
        needed = -(-length // block_size)
        if needed > num_blocks and spec.id not in sim.outputs:
            raise BadChange(f"{spec.id} needs {needed} blocks of {block_size}, and {num_blocks} would be left")


def fork(timeline: Timeline, place: int, change: Change | None) -> Timeline:
    """See `Timeline.fork`."""
    timeline.require(place, first=-1)
    scenario, sampler = timeline.scenario, timeline.sampler
    if scenario is None:
        scenario, sampler = scenario_of(timeline)
    steps = timeline.completed_steps(place)
    changes = [item for item in timeline.changes if item[0] <= steps]
    branch = Timeline.for_scenario(scenario, timeline.kind)
    branch.sampler, branch.token_words = sampler, timeline.token_words
    sim = Simulator.of(scenario, timeline.kind, branch, sampler=sampler)
    for after, earlier in changes:
        _run_until(sim, after)
        earlier.apply(sim, branch)
    _run_until(sim, steps)
    branch.forked_at = len(branch)
    if change is not None:
        changes.append((steps, change))
        change.apply(sim, branch)
    branch.changes = tuple(changes)
    with no_collection():
        sim.run()
    return branch


def _run_until(sim: Simulator, steps: int) -> None:
    while sim.scheduler.step < steps and sim.step() is not None:
        pass
