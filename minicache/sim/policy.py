"""The settings that a run can have otherwise: what each may be, and what it is at a place."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from minicache.common.suggest import suggestion
from minicache.core.errors import MinicacheError
from minicache.core.eviction import STRATEGIES
from minicache.core.scheduler_config import SchedulerConfig
from minicache.sim.errors import BadChange
from minicache.sim.rerun import scenario_of
from minicache.sim.scenario import Kind

if TYPE_CHECKING:
    from minicache.sim.timeline import Timeline

POOL = ("num_blocks", "block_size")  # of the pool, and so no policy


def settings_of(kind: Kind) -> dict[str, tuple[str, ...]]:
    """The settings that have a choice over this kind of cache: name -> the words it can be, none for a number."""
    found = {name: tuple(map(str, get_args(hint))) for name, hint in get_type_hints(SchedulerConfig).items()}
    if kind == "hash":
        return found
    del found["publish_at"]  # a radix cache can publish only what is computed
    return {**found, "strategy": tuple(STRATEGIES)}


def values_at(timeline: "Timeline", place: int) -> dict[str, Any]:
    """What each of them is, after the changes of the forks up to `place`. Raises `BadChange` for a run that cannot be
    run again."""
    scenario = timeline.scenario or scenario_of(timeline)[0]
    values = {**asdict(scenario.schedulers[timeline.kind]), "strategy": scenario.caches[timeline.kind].strategy}
    steps = timeline.completed_steps(place)
    for after, change in timeline.changes:
        if after <= steps:
            values |= getattr(change, "settings", {})
    return {name: values[name] for name in settings_of(timeline.kind)}


def require_settings(kind: Kind, settings: Mapping[str, object]) -> None:
    """Raises `BadChange` for a setting that there is not over this kind of cache, or that cannot have this value; it
    says which there are."""
    known = settings_of(kind)
    for name, value in settings.items():
        if name not in known:
            raise BadChange(_unknown(name, known, kind))
        if known[name] and value not in known[name]:
            raise BadChange(f"{name} must be one of {', '.join(known[name])}, not {_shown(value)}")
        if not known[name]:
            try:
                SchedulerConfig(**{name: value})  # type: ignore[arg-type] # it checks
            except MinicacheError as error:
                raise BadChange(str(error)) from None


def _unknown(name: str, known: Iterable[str], kind: Kind) -> str:
    if name == "strategy":
        return "strategy: only the radix tree has a choice; the hash chain evicts in the order of its free queue"
    if name == "publish_at" and kind == "radix":
        return "publish_at: the radix tree has no choice, it publishes what is computed (compute)"
    if name in POOL:
        return f"{name} is no setting of a policy: fork the run with another number of blocks, or another block size"
    return f"there is no setting {_shown(name)}{suggestion(name, known) or ': there are ' + ', '.join(known)}"


def _shown(value: object, most: int = 40) -> str:
    shown = repr(value)
    return shown if len(shown) <= most else f"{shown[:most]}…"
