"""What if? The changes that a fork can make to a run between two steps.

`Timeline.fork` runs a scenario again from its seed up to a step boundary, applies a change to the simulator, and goes
on. State is never copied. A fork can be forked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from minicache.common.suggest import suggestion
from minicache.core.errors import MinicacheError
from minicache.sim.errors import BadChange
from minicache.sim.phrases import plural
from minicache.sim.policy import require_settings
from minicache.sim.prompt import Part
from minicache.sim.scenario import RequestSpec
from minicache.sim.scenario_file import MAX_TOKENS
from minicache.sim.simulator import Simulator


class Change(Protocol):
    """A change that takes effect at a step boundary."""

    def apply(self, sim: Simulator) -> None:
        """Make the change, between two steps of `sim`. Raises `BadChange`."""
        ...

    def describe(self) -> str:
        """The change in a few words."""
        ...


@dataclass(frozen=True)
class InjectRequest:
    """One more request. It arrives at once, or when its `at`, `step` or `after` says so, if that is later."""

    spec: RequestSpec

    def apply(self, sim: Simulator) -> None:
        spec = self.spec
        if spec.id in sim.scenario.max_tokens:
            raise BadChange(f"this run has a request {spec.id!r} already: give the new request another id")
        if spec.after is None and spec.step is None:
            spec = replace(spec, at=max(spec.at, sim.now))
        changed = sim.scenario.with_request(spec)
        changed.require_order()
        changed.require_fit(sim.kind)
        sim.scenario = changed
        sim.expect(spec)

    def describe(self) -> str:
        return f"request {self.spec.id} is injected"


@dataclass(frozen=True)
class EditPrompt:
    """A request that has not arrived yet comes with another prompt."""

    request: str
    prompt: tuple[Part, ...]

    def apply(self, sim: Simulator) -> None:
        specs = {spec.id: spec for spec in sim.scenario.requests}
        if self.request not in specs:
            raise BadChange(f"this run has no request {self.request!r}{suggestion(self.request, specs)}")
        if self.request in sim.arrived:
            step, place = sim.arrived[self.request]
            raise BadChange(
                f"{self.request} has arrived already: fork before step {step + 1}, at event {place - 1} or before"
            )
        spec = replace(specs[self.request], prompt=self.prompt)
        changed = sim.scenario.with_request(spec)
        changed.require_order()
        changed.require_fit(sim.kind)
        sim.replace(spec)

    def describe(self) -> str:
        return f"the prompt of {self.request} is edited"


@dataclass(frozen=True)
class SetPolicy:
    """Other settings: any field of `SchedulerConfig`, and `strategy` of the radix cache. Only the settings named here
    change, so that `queue_policy="priority"` does not change `victim`, as the vLLM profile would."""

    settings: Mapping[str, Any]

    def apply(self, sim: Simulator) -> None:
        require_settings(sim.kind, self.settings)
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
    """Takes `count` blocks out of the pool: free blocks in their order, evicting what they cached. If too few are free,
    all running requests are preempted."""

    count: int

    def apply(self, sim: Simulator) -> None:
        there = sim.cache.capacity
        left = there - self.count
        if self.count < 1 or left < 1:
            raise BadChange(
                f"count must be from 1 to {there - 1:,}, as one of the {there:,} blocks must stay, not {self.count:,}"
            )
        _require_fit(sim, left, sim.cache.block_size)
        sim.shrink_pool(self.count)

    def describe(self) -> str:
        return f"{plural(self.count, 'block')} {'is' if self.count == 1 else 'are'} taken away"


@dataclass(frozen=True)
class SetBlockSize:
    """The same memory in blocks of another size. KV is stored by block, so none of it can be kept: the running requests
    are preempted, and the cache starts empty."""

    block_size: int

    def apply(self, sim: Simulator) -> None:
        if self.block_size < 1:
            raise BadChange(f"block_size must be at least 1, not {self.block_size:,}")
        tokens = sim.cache.capacity * sim.cache.block_size
        if self.block_size > tokens:
            raise BadChange(f"block_size must be at most {tokens:,}, the tokens of the pool, not {self.block_size:,}")
        _put_in(sim, tokens // self.block_size, self.block_size)

    def describe(self) -> str:
        return f"blocks of {plural(self.block_size, 'token')}, and an empty cache"


@dataclass(frozen=True)
class SetNumBlocks:
    """A pool of `num_blocks` blocks of the same size, the null block not counted. It starts empty, as with
    `SetBlockSize`."""

    num_blocks: int

    def apply(self, sim: Simulator) -> None:
        most = MAX_TOKENS // sim.cache.block_size
        if not 1 <= self.num_blocks <= most:
            raise BadChange(f"num_blocks must be from 1 to {most:,} with blocks of this size, not {self.num_blocks:,}")
        _put_in(sim, self.num_blocks, sim.cache.block_size)

    def describe(self) -> str:
        return f"{plural(self.num_blocks, 'block')}, and an empty cache"


def _put_in(sim: Simulator, num_blocks: int, block_size: int) -> None:
    """Go on with an empty pool of `num_blocks` blocks, the null block not counted."""
    _require_fit(sim, num_blocks, block_size)
    sim.replace_pool(replace(sim.scenario.caches[sim.kind], num_blocks=num_blocks + 1, block_size=block_size))


def _require_fit(sim: Simulator, num_blocks: int, block_size: int) -> None:
    """Raises `BadChange` unless every unfinished request fits into `num_blocks` blocks."""
    for spec in sim.scenario.requests:
        needed = sim.scenario.blocks_of(spec, block_size)
        if needed > num_blocks and spec.id not in sim.outputs:
            raise BadChange(
                f"{spec.id} needs {plural(needed, 'block')} of {block_size:,}, and the pool would have {num_blocks:,}"
            )
