"""The settings of scheduler and cache that a fork can change: the values allowed, and the values in use."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, get_args, get_type_hints

from minicache.common.suggest import suggestion
from minicache.core.errors import MinicacheError
from minicache.core.eviction import STRATEGIES
from minicache.core.scheduler_config import SchedulerConfig
from minicache.sim.errors import BadChange
from minicache.sim.scenario import Kind, Scenario

POOL = ("num_blocks", "block_size")  # settings of the pool: other changes make them


def settings_of(kind: Kind) -> dict[str, tuple[str, ...]]:
    """The settings that can be changed over this kind of cache: name -> its possible values, empty for a number."""
    found = {name: tuple(map(str, get_args(hint))) for name, hint in get_type_hints(SchedulerConfig).items()}
    if kind == "hash":
        return found
    del found["publish_at"]  # a radix cache can publish only what is computed
    return {**found, "strategy": tuple(STRATEGIES)}


def values_after(changes: Iterable[object], scenario: Scenario, kind: Kind) -> dict[str, Any]:
    """The value of each setting in a run of the scenario over this kind of cache, after these changes."""
    values = {**asdict(scenario.schedulers[kind]), "strategy": scenario.caches[kind].strategy}
    for change in changes:
        values |= getattr(change, "settings", {})
    return {name: values[name] for name in settings_of(kind)}


def require_settings(kind: Kind, settings: Mapping[str, object]) -> None:
    """Raises `BadChange` for a setting that this cache does not have, or a value that the setting cannot have; the
    message lists what is possible."""
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
        return f"{name} is a setting of the pool: fork the run with another number of blocks, or another block size"
    return f"this cache has no setting {_shown(name)}{suggestion(name, known) or ': it has ' + ', '.join(known)}"


def _shown(value: object, most: int = 40) -> str:
    shown = repr(value)
    return shown if len(shown) <= most else f"{shown[:most]}…"
