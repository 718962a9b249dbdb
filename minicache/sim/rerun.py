"""A recorded run as a scenario: the same requests arrive before the same steps and generate the recorded tokens.

With it a log can be forked, the simulator's or an engine's. Its clock is not needed, because arrivals are counted in
steps: the run comes out the same except for the times, which are modelled.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from minicache.core import SchedulerConfig
from minicache.core import events as ev
from minicache.core.errors import MinicacheError
from minicache.sim.errors import BadChange
from minicache.sim.prompt import Tokens
from minicache.sim.run_index import RunIndex
from minicache.sim.scenario import KINDS, CacheSettings, Kind, RequestSpec, Scenario
from minicache.sim.tokens import RecordedSampler


def scenario_of(index: RunIndex, settings: Mapping[str, Any], kind: Kind) -> tuple[Scenario, RecordedSampler]:
    """The scenario of a recorded run, and its answers. `settings` are those of the log's header. Raises `BadChange` if
    the log does not say enough, or if something happened in the run that no scenario can do."""
    if settings.get("redacted"):
        raise BadChange("this run is redacted: without its tokens it cannot be run again")
    config = _scheduler(settings)
    _require_own_decisions(index)
    specs: dict[str, RequestSpec] = {}
    for place in index.of_kind("RequestArrived"):
        event = index.events[place]
        assert isinstance(event, ev.RequestArrived)
        if event.request in specs:
            raise BadChange(f"two requests of this run are called {event.request!r}: it cannot be run again")
        specs[event.request] = _spec(event)
    strategy = str(settings.get("strategy", "lru"))
    cache = CacheSettings(kind, settings["block_size"], settings["num_blocks"], strategy)
    scenario = Scenario(
        name=str(settings.get("scenario", "recorded")),
        title=str(settings.get("title", "A recorded run")),
        story="This run was recorded.",
        kinds=(kind,),
        caches={each: cache.as_kind(each) for each in KINDS},
        schedulers={kind: config},
        requests=tuple(specs.values()),
    )
    return scenario, RecordedSampler({id: record.output for id, record in index.requests.items()})


def _require_own_decisions(index: RunIndex) -> None:
    """Raises `BadChange` if the caller or a fork did something in the run that the scheduler would not do again."""
    kinds = ("RequestAborted", "CacheReset", "PoolReplaced", "PoolShrunk")
    places = [place for kind in kinds for place in index.of_kind(kind)[:1]]
    if places:
        event = index.events[min(places)]
        raise BadChange(
            f"event {event.seq} ({type(event).__name__}) was not the scheduler's decision but made from outside: "
            "this run cannot be run again"
        )


def _spec(event: ev.RequestArrived) -> RequestSpec:
    return RequestSpec(
        event.request,
        (Tokens(event.tokens),),
        event.max_tokens,
        step=event.step + 1,
        namespace=event.namespace,
        priority=event.priority,
        prompt_logprobs=event.prompt_logprobs,
        skip_cache_read=event.skip_cache_read,
        stop_tokens=event.stop_tokens,
    )


def _scheduler(settings: Mapping[str, Any]) -> SchedulerConfig:
    """The scheduler that the log's header names."""
    given = settings.get("scheduler")
    names = {item.name for item in fields(SchedulerConfig)}
    if not isinstance(given, dict) or not given.keys() <= names:
        raise BadChange("the log's header does not say how the scheduler was set (scheduler): it cannot be run again")
    try:
        return SchedulerConfig(**given)
    except (MinicacheError, TypeError) as error:
        raise BadChange(f"the log's header sets the scheduler wrongly: {error}") from None
