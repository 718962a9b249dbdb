"""A recorded run as a scenario: the same requests, arriving before the same steps, who say what was recorded.

With it a log can be forked, be it the simulator's or an engine's. Its clock is not needed, for arrivals go by steps:
the run comes out the same but for the times, which are modelled.
"""

from dataclasses import fields
from typing import Any

from minicache.core import SchedulerConfig
from minicache.core import events as ev
from minicache.core.errors import MinicacheError
from minicache.sim.errors import BadChange
from minicache.sim.prompt import Tokens
from minicache.sim.scenario import KINDS, CacheSettings, RequestSpec, Scenario
from minicache.sim.timeline import Timeline
from minicache.sim.tokens import RecordedSampler


def scenario_of(timeline: Timeline) -> tuple[Scenario, RecordedSampler]:
    """The scenario of a recorded run, and its answers. Raises `BadChange` if the log does not tell enough."""
    if timeline.settings.get("redacted"):
        raise BadChange("this run is redacted: without its tokens it cannot be run again")
    config = _scheduler(timeline.settings)
    outputs: dict[str, list[int]] = {}
    specs: list[RequestSpec] = []
    for event in timeline.events:
        if isinstance(event, ev.RequestArrived):
            if event.request in outputs:
                raise BadChange(f"two requests of this run are called {event.request!r}: it cannot be run again")
            outputs[event.request] = []
            specs.append(_spec(event))
        elif isinstance(event, ev.TokensSampled):
            outputs[event.request] += event.tokens
        elif isinstance(event, ev.RequestAborted | ev.CacheReset):
            raise BadChange(f"event {event.seq} came from outside ({type(event).__name__}): no scenario can say that")
    kind, settings = timeline.kind, timeline.settings
    strategy = str(settings.get("strategy", "lru"))
    cache = CacheSettings(kind, settings["block_size"], settings["num_blocks"], strategy)
    scenario = Scenario(
        name=str(settings.get("scenario", "recorded")),
        title=str(settings.get("title", "A recorded run")),
        story="This run was recorded.",
        kinds=(kind,),
        caches={each: cache.as_kind(each) for each in KINDS},
        schedulers={kind: config},
        requests=tuple(specs),
    )
    return scenario, RecordedSampler(outputs)


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


def _scheduler(settings: dict[str, Any]) -> SchedulerConfig:
    """The scheduler that the log's header names."""
    given = settings.get("scheduler")
    names = {item.name for item in fields(SchedulerConfig)}
    if not isinstance(given, dict) or not given.keys() <= names:
        raise BadChange("the log's header does not say how the scheduler was set (scheduler): it cannot be run again")
    try:
        return SchedulerConfig(**given)
    except (MinicacheError, TypeError) as error:
        raise BadChange(f"the log's header sets the scheduler wrongly: {error}") from None
