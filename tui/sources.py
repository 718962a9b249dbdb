"""What can be opened: a scenario by name, a scenario's file, a recorded log, a run that is there already."""

import shlex
from collections.abc import Iterable
from pathlib import Path

from minicache.core.errors import InvalidArgument
from minicache.sim.library import find_scenario
from minicache.sim.recorded import read_recorded
from minicache.sim.scenario import Kind
from minicache.sim.timeline import Timeline

from .comparison import Comparison
from .player import Player


def open_run(name: str, kind: Kind | None = None, settings: Iterable[str] = ()) -> Player:
    """A player before the first event of a scenario (a name, or a file NAME.toml) or of a recorded log (NAME.jsonl).

    `kind` is the cache, the scenario's first if it is not given; `settings` are texts `key=value` that go over what the
    scenario says. Raises `UnknownScenario`, which suggests the nearest name, `BadScenario`, `Stuck` or `BadLog`: one
    sentence each; and `InvalidArgument` for settings of a recorded log.
    """
    settings = list(settings)
    if name.endswith(".jsonl"):
        return open_log(Path(name), kind, settings)
    scenario = find_scenario(name, settings)
    player = Player(Timeline.record(scenario, kind))
    other = ["--cache", kind] if kind is not None and kind != scenario.kinds[0] else []
    player.command = _command(name, *other, settings=settings)
    return player


def open_log(path: Path, kind: Kind | None = None, settings: Iterable[str] = ()) -> Player:
    """A player of a recorded run, of the simulator or of an engine. Raises `BadLog`, naming file and line."""
    if kind is not None or list(settings):
        raise InvalidArgument(f"{path} is a recorded run: --cache and --set can change nothing any more")
    player = Player(read_recorded(path, whole=False))
    player.name = path.stem
    player.command = _command("--events", str(path))
    return player


def open_both(name: str, settings: Iterable[str] = ()) -> Comparison:
    """The hash chain and the radix tree side by side over a scenario. Raises as `open_run` does."""
    if name.endswith(".jsonl"):
        raise InvalidArgument(f"{name} is a recorded run, of one cache: there is nothing to compare it with")
    settings = list(settings)
    return Comparison.of_kinds(find_scenario(name, settings), command=_command(name, settings=settings))


def _command(*words: str, settings: Iterable[str] = ()) -> str:
    """As one types it in a shell."""
    return shlex.join(["minicache", "tui", *words, *(word for setting in settings for word in ("--set", setting))])


def go_to(
    run: Player | Comparison, step: int | None = None, event: int | None = None, request: str | None = None
) -> None:
    """Where a permalink points, or a person: to a step (its first lookup), to an event, or to where a request arrives,
    which is selected. Of two in lock-step these are the left one's. Raises `UnknownThing` with what there is; the run
    is then where it was."""
    player = run.left if isinstance(run, Comparison) else run
    if request is not None:
        run.go_to_request(request)
    if step is not None:
        if isinstance(run, Comparison) and not 1 <= step <= player.num_steps:
            run.seek_step(step)  # the right one may be longer
        else:
            run.seek(player.place_in_step(step))
    if event is not None:
        player.timeline.require(event, first=-1)
        run.seek(event)
