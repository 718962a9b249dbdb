"""The dialogs about the run as it is: where to go, what to find, where to stop. Each changes the player and draws."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

from minicache.core.errors import MinicacheError
from minicache.sim.phrases import plural

from .. import sources
from ..keys import key_of
from ..numbers import is_number, whole
from ..player import Found
from ..stops import Completion, kinds_of, read_breakpoints, stopping_places
from .ask import Ask
from .menu import Menu

if TYPE_CHECKING:
    from .stage import Stage


_PLACES = (
    ("step", "step", "the number of a step, such as step 42"),
    ("event", "event", "the number of an event, such as event 1234"),
    ("e", "event", "the number of an event, such as e1234"),
)


class NothingTyped(MinicacheError):
    """The line is empty."""


class NothingFound(MinicacheError):
    """Nothing in this run is as it was looked for."""


async def go_to(stage: Stage) -> None:
    """A step, an event or a request."""

    def read(line: str) -> bool:
        sources.go_to(stage.playable, **_where(line.strip(), stage.player.index.requests))
        return True

    hint = "A step of the scheduler (42), an event (e1234) or a request (its id)."
    if await stage.app.push_screen_wait(Ask("Go to", hint, read)):
        stage.sync()


def _where(line: str, requests: Container[str]) -> dict[str, Any]:
    """`step`, `event` or `request`, as `sources.go_to` takes them. Raises `NothingTyped` and `NoNumber`."""
    if not line:
        raise NothingTyped("nothing is typed: write a step (42), an event (e1234) or a request (its id)")
    if is_number(line):
        return {"step": whole(line, "a step of this run")}
    for prefix, what, write in _PLACES if line not in requests else ():
        number = line[len(prefix) :]
        alone = prefix != "e" and not number
        if line.lower().startswith(prefix) and (is_number(number) or alone or number[:1].isspace()):
            return {what: whole(number, write)}
    return {"request": line}


async def find(stage: Stage) -> None:
    """A block, a hash, a request or a piece of a prompt; it is selected."""

    def read(line: str) -> list[Found]:
        if not line.strip():
            raise NothingTyped("nothing is typed: write what to look for")
        found = stage.player.find(line.strip())
        if not found:
            raise NothingFound(f"there is nothing here that is called, begins with or holds {line.strip()!r}")
        return found

    hint = "A block's number, the beginning of a hash, a request, or a piece of a prompt."
    found = await stage.app.push_screen_wait(Ask("Find", hint, read))
    if not found:
        return
    index: int | None = 0
    if len(found) > 1:
        index = await stage.app.push_screen_wait(Menu("Found", "", [(item.label, "") for item in found]))
    if index is None:
        return
    stage.player.select(found[index].selection)
    place = found[index].place
    if place is not None:
        stage.playable.seek(place)
    stage.sync()


async def breakpoints(stage: Stage) -> None:
    """One more, or one less."""
    players, points = stage.players, stage.playable.breakpoints
    if points:
        choices = [("Another breakpoint", ""), *((f"Remove: {point.describe()}", "") for point in points)]
        chosen = await stage.app.push_screen_wait(
            Menu("Breakpoints", "■ on the event strip: they stop there.", choices)
        )
        if chosen is None:
            return
        if chosen:
            stage.playable.breakpoints = [point for i, point in enumerate(points, 1) if i != chosen]
            stage.sync()
            return
    runs = "this run" if len(players) == 1 else "these runs"
    hint = (
        "A kind of event (evict), request=ID, block=7, hash=9c1f or hit_rate<0.5; several with spaces between must "
        "all hold. "
        f"Kinds of events in {runs}: {', '.join(kinds_of(*(side.timeline for side in players))) or 'none yet'}."
    )
    asked = Ask(
        "Stop where (→ completes what you type)",
        hint,
        lambda line: read_breakpoints(line, *players, may_come=stage.live is not None),
        _suggestion(stage),
        suggester=Completion(*players),
    )
    new = await stage.app.push_screen_wait(asked)
    if new is None:
        return
    stage.playable.breakpoints = [*points, *(point for point in new if point not in points)]
    count = sum(len(stopping_places(side.timeline, new)) for side in players)
    what = " or ".join(point.describe() for point in new)
    if count:
        on, back = key_of(stage.app, "resume"), key_of(stage.app, "reverse")
        where = f"stops at {plural(count, 'event')} of {runs}"
        stage.say(f"{what} {where}. {on} goes on to the next one, {back} back to the last.")
    else:
        stage.say(f"{what} never stops in {runs}{' so far' if stage.live else ''}.")
    stage.sync()


def _suggestion(stage: Stage) -> str:
    selection = stage.player.selection
    if selection.kind in ("block", "request"):
        return f"{selection.kind}={selection.id}"
    current = stage.player.current
    return f"kind={type(current).__name__}" if current else "kind=BlocksEvicted"
