"""The simulator: an engine's loop, with a cost model in place of the model.

    add the requests that are due --> schedule() --> advance the clock by the plan's cost --> update()

Scheduler and cache are the core's own, so the same happens in an engine. Deterministic: the same scenario and settings
give the same events.
"""

import heapq
from collections.abc import Callable
from dataclasses import replace
from itertools import count

from minicache.core import EventStream, HashChainCache, PrefixCache, RadixCache, Request, Scheduler
from minicache.core.errors import InvalidArgument, RequestTooLong
from minicache.core.event_stream import Sink
from minicache.core.events import PoolReplaced
from minicache.core.paged_cache import PagedCache
from minicache.core.step_plan import StepPlan
from minicache.sim import prompt
from minicache.sim.cost_model import CostModel
from minicache.sim.errors import Stuck
from minicache.sim.scenario import CacheSettings, Kind, RequestSpec, Scenario
from minicache.sim.tokens import Sampler

IDLE_STEPS = 20  # steps without a token, with no request still to arrive, after which the run counts as stuck


def build_cache(settings: CacheSettings, events: EventStream) -> HashChainCache | RadixCache:
    """An empty cache of these settings."""
    if settings.kind == "hash":
        return HashChainCache(settings.num_blocks, settings.block_size, events=events)
    return RadixCache(settings.num_blocks, settings.block_size, settings.strategy, events=events)


class Simulator:
    """Runs `scenario` over `cache` and `scheduler`, which share one event stream; the simulator sets its clock.

    `now` is in modelled seconds. `sampler` returns the next token of a request.
    """

    def __init__(
        self,
        scenario: Scenario,
        cache: PrefixCache,
        scheduler: Scheduler,
        cost_model: CostModel | None = None,
        sampler: Callable[[Request], int] | None = None,
    ) -> None:
        self.scenario = scenario
        self.cache = cache
        self.scheduler = scheduler
        self.cost_model = cost_model or CostModel.named(scenario.model, scenario.device)
        self.sampler = sampler or Sampler(scenario.seed)
        self.now = 0.0
        self.events = scheduler.events
        self.events.clock = lambda: self.now
        self.outputs: dict[str, list[int]] = {}  # the answers of finished requests
        self.arrived: dict[str, tuple[int, int]] = {}  # request -> last step before it, and its event's number
        self._numbers = count()
        self._timed: list[tuple[float, int, RequestSpec]] = []
        self._stepped: list[tuple[int, int, RequestSpec]] = []
        self._followers: dict[str, list[RequestSpec]] = {}
        self._idle = 0
        for spec in scenario.requests:
            self.expect(spec)

    @classmethod
    def of(
        cls, scenario: Scenario, kind: Kind | None = None, *sinks: Sink, sampler: Callable[[Request], int] | None = None
    ) -> "Simulator":
        """A simulator with the cache and scheduler that the scenario asks for; `sinks` receive the events.

        Raises `BadScenario` if a request can never fit, and `InvalidArgument` for settings that exclude each other.
        """
        kind = kind or scenario.kinds[0]
        scenario.require_fit(kind)
        events = EventStream(*sinks)
        cache = build_cache(scenario.caches[kind], events)
        return cls(scenario, cache, Scheduler(cache, scenario.schedulers[kind], events=events), sampler=sampler)

    @property
    def kind(self) -> Kind:
        return "radix" if isinstance(self.cache, RadixCache) else "hash"

    # The pool

    def replace_pool(self, settings: CacheSettings) -> None:
        """Go on with an empty cache of these settings; running requests are preempted first. Emits `PoolReplaced`,
        except before the first event: then the run begins with this cache. Raises as `Scheduler.replace_cache` does."""
        cache = build_cache(settings, self.events)
        self.scheduler.replace_cache(cache)
        self.scenario = replace(self.scenario, caches=self.scenario.caches | {settings.kind: settings})
        self.cache = cache
        if self.events.seq:
            self.events.emit(PoolReplaced(settings.num_blocks, settings.block_size))

    def shrink_pool(self, count: int) -> None:
        """Take `count` blocks out of the pool until it is replaced. If too few are free, all running requests are
        preempted first. Raises `InvalidArgument` as `PagedCache.shrink` does, and for a cache that cannot shrink."""
        if not isinstance(self.cache, PagedCache):
            raise InvalidArgument(f"a {type(self.cache).__name__} cannot shrink")
        if not self.cache.shrink(count):
            self.scheduler.preempt_all()
            self.cache.shrink(count)

    def set_strategy(self, strategy: str) -> None:
        """Evict in another order from now on, also from a pool that replaces this one. Raises `InvalidArgument` for an
        unknown strategy, and over a hash chain, which has no choice."""
        if not isinstance(self.cache, RadixCache):
            raise InvalidArgument("strategy: only the radix cache has a choice of eviction strategies")
        self.cache.set_strategy(strategy)
        settings = replace(self.scenario.caches[self.kind], strategy=strategy)
        self.scenario = replace(self.scenario, caches=self.scenario.caches | {self.kind: settings})

    # Arrivals

    def expect(self, spec: RequestSpec) -> None:
        """Add the request when it is due."""
        number = next(self._numbers)
        if spec.after is not None and spec.after not in self.outputs:
            self._followers.setdefault(spec.after, []).append(spec)
        elif spec.step is not None:
            heapq.heappush(self._stepped, (spec.step, number, spec))
        else:
            start = self.now if spec.after is not None else 0.0
            heapq.heappush(self._timed, (start + spec.at, number, spec))

    def replace(self, spec: RequestSpec) -> None:
        """Let `spec` take the place of the request of the same id, which must not have arrived yet."""
        self.scenario = self.scenario.with_request(spec)
        self._timed = [(due, n, spec if old.id == spec.id else old) for due, n, old in self._timed]
        self._stepped = [(due, n, spec if old.id == spec.id else old) for due, n, old in self._stepped]
        for followers in self._followers.values():
            followers[:] = [spec if old.id == spec.id else old for old in followers]

    def _deliver(self) -> None:
        """Add every request that is due. If no request is unfinished, the clock advances to the next arrival."""
        if not self.scheduler.has_unfinished:
            if self._timed:
                self.now = max(self.now, self._timed[0][0])
            elif self._stepped:
                self._add(heapq.heappop(self._stepped)[2])
        while self._timed and self._timed[0][0] <= self.now:
            self._add(heapq.heappop(self._timed)[2])
        while self._stepped and self._stepped[0][0] <= self.scheduler.step + 1:
            self._add(heapq.heappop(self._stepped)[2])

    def _add(self, spec: RequestSpec) -> None:
        tokens, _ = prompt.build(spec.prompt, self.scenario.seed, self.outputs)
        request = Request(
            spec.id,
            tokens,
            spec.max_tokens,
            namespace=spec.namespace,
            priority=spec.priority,
            arrival=self.now,
            prompt_logprobs=spec.prompt_logprobs,
            skip_cache_read=spec.skip_cache_read,
            stop_tokens=spec.stop_tokens,
        )
        self.arrived[spec.id] = self.scheduler.step, self.events.seq
        try:
            self.scheduler.add(request)
        except RequestTooLong:
            self._followers.pop(spec.id, None)  # the event says why; requests that wait for its answer never arrive

    # One step

    @property
    def done(self) -> bool:
        return not (self.scheduler.has_unfinished or self._timed or self._stepped)

    def step(self) -> StepPlan | None:
        """Run one step; `None` at the end of the scenario. Raises `Stuck` if the waiting requests can never run."""
        if self.done:
            return None
        self._deliver()
        plan = self.scheduler.schedule()
        self.now += self.cost_model.step(plan).seconds
        sampled = {item.request.id: self.sampler(item.request) for item in plan.scheduled if item.samples}
        for request in self.scheduler.update(plan, sampled):
            self.outputs[request.id] = list(request.output)
            for spec in self._followers.pop(request.id, ()):
                self.expect(spec)
        self._watch(plan)
        return plan

    def _watch(self, plan: StepPlan) -> None:
        self._idle = 0 if plan or not self.scheduler.has_unfinished else self._idle + 1
        if self._idle and self._timed:
            self.now = max(self.now, self._timed[0][0])
        elif self._idle > IDLE_STEPS:
            waiting = ", ".join(request.id for request in self.scheduler.waiting)
            raise Stuck(f"step {self.scheduler.step}: {waiting} can never be admitted: raise cache.num_blocks")

    def run_until(self, steps: int) -> None:
        """Run to the end of step `steps`, or to the end of the scenario."""
        while self.scheduler.step < steps and self.step() is not None:
            pass

    def run(self) -> None:
        """Run to the end."""
        while self.step() is not None:
            pass
