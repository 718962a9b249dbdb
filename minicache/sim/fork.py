"""What if? The same run up to a step boundary, then something is different.

State is never copied: the scenario is run again from its seed, for it comes out the same, and then changed. A fork can
be forked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from minicache.common.suggest import suggestion
from minicache.core.errors import MinicacheError
from minicache.sim.collection import no_collection
from minicache.sim.errors import BadChange
from minicache.sim.phrases import plural
from minicache.sim.policy import require_settings
from minicache.sim.prompt import Part
from minicache.sim.rerun import scenario_of
from minicache.sim.scenario import RequestSpec
from minicache.sim.scenario_file import MAX_TOKENS
from minicache.sim.simulator import Simulator
from minicache.sim.timeline import Timeline


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
        require_settings(timeline.kind, self.settings)
        settings = dict(self.settings)
        strategy = settings.pop("strategy", None)
        try:
            sim.scheduler.reconfigure(replace(sim.scheduler.config, **settings))
            if strategy is not None:
                sim.set_strategy(strategy)
        except MinicacheError as error:
            raise BadChange(str(error)) from None

    def describe(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.settings.items())


@dataclass(frozen=True)
class ShrinkPool:
    """`count` blocks are taken out of the pool: the free ones in their order, and what they cached is evicted. If there
    are not enough, everybody who runs is preempted."""

    count: int

    def apply(self, sim: Simulator, timeline: Timeline) -> None:
        there = sim.cache.capacity - sim.num_taken
        left = there - self.count
        if self.count < 1 or left < 1:
            raise BadChange(
                f"count: of {there:,} blocks at least one is taken away and at least one stays, not {self.count:,}"
            )
        _require_fit(sim, left, sim.cache.block_size)
        if not sim.take_away(self.count):
            sim.scheduler.preempt_all()
            sim.take_away(self.count)

    def describe(self) -> str:
        return f"{plural(self.count, 'block')} {'is' if self.count == 1 else 'are'} taken away"


@dataclass(frozen=True)
class SetBlockSize:
    """The same memory in blocks of another size. KV lies in blocks, so nothing of it can be kept: whoever runs is
    preempted, and the cache starts empty."""

    block_size: int

    def apply(self, sim: Simulator, timeline: Timeline) -> None:
        if self.block_size < 1:
            raise BadChange(f"block_size must be at least 1, not {self.block_size:,}")
        tokens = (sim.cache.capacity - sim.num_taken) * sim.cache.block_size
        if self.block_size > tokens:
            raise BadChange(f"block_size must be at most {tokens:,}, all that the pool holds, not {self.block_size:,}")
        _put_in(sim, tokens // self.block_size, self.block_size)

    def describe(self) -> str:
        return f"blocks of {plural(self.block_size, 'token')}, and an empty cache"


@dataclass(frozen=True)
class SetNumBlocks:
    """A pool of so many blocks of the same size, the null block not counted. It starts empty, as that of
    `SetBlockSize`."""

    num_blocks: int

    def apply(self, sim: Simulator, timeline: Timeline) -> None:
        most = MAX_TOKENS // sim.cache.block_size
        if not 1 <= self.num_blocks <= most:
            raise BadChange(f"a pool has from 1 to {most:,} blocks of this size, not {self.num_blocks:,}")
        _put_in(sim, self.num_blocks, sim.cache.block_size)

    def describe(self) -> str:
        return f"{plural(self.num_blocks, 'block')}, and an empty cache"


def _put_in(sim: Simulator, num_blocks: int, block_size: int) -> None:
    """Go on with an empty pool of `num_blocks` blocks, the null block not counted."""
    _require_fit(sim, num_blocks, block_size)
    sim.replace_pool(replace(sim.scenario.caches[sim.kind], num_blocks=num_blocks + 1, block_size=block_size))


def _require_fit(sim: Simulator, num_blocks: int, block_size: int) -> None:
    """Every request that is not done must fit into `num_blocks` blocks."""
    for spec in sim.scenario.requests:
        needed = sim.scenario.blocks_of(spec, block_size)
        if needed > num_blocks and spec.id not in sim.outputs:
            raise BadChange(
                f"{spec.id} needs {plural(needed, 'block')} of {block_size:,}, and there would be {num_blocks:,}"
            )


def fork(timeline: Timeline, place: int, change: Change | None) -> Timeline:
    """See `Timeline.fork`."""
    timeline.require(place, first=-1)
    steps = timeline.completed_steps(place)
    kept = [item for item in timeline.changes if item[0] <= steps]
    return _run_again(timeline, kept, steps, [(steps, change)] if change is not None else [])


def fork_from_start(timeline: Timeline, change: Change) -> Timeline:
    """The whole run again with something different from its beginning on; what earlier forks changed stays changed.
    Raises `BadChange`, also where one of those cannot be made any more."""
    return _run_again(timeline, [], 0, [(0, change), *timeline.changes])


def _run_again(
    timeline: Timeline, before: list[tuple[int, Change]], steps: int, changes: list[tuple[int, Change]]
) -> Timeline:
    """The run with the changes of `before` up to the end of step `steps`, and on from there with `changes`."""
    scenario, sampler = timeline.scenario, timeline.sampler
    if scenario is None:
        scenario, sampler = scenario_of(timeline)
    branch = Timeline.for_scenario(scenario, timeline.kind)
    branch.sampler, branch.token_words = sampler, timeline.token_words
    sim = Simulator.of(scenario, timeline.kind, branch, sampler=sampler)
    for after, change in before:
        _run_until(sim, after)
        change.apply(sim, branch)
    _run_until(sim, steps)
    branch.forked_at = len(branch)
    for after, change in changes:
        _run_until(sim, after)
        change.apply(sim, branch)
    branch.changes = (*before, *changes)
    with no_collection():
        sim.run()
    return branch


def _run_until(sim: Simulator, steps: int) -> None:
    while sim.scheduler.step < steps and sim.step() is not None:
        pass
