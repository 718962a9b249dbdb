"""The dialogs about the run as it is: where to go, what to find, where to stop. Each changes the player and draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minicache.sim.errors import BadChange
from minicache.sim.phrases import plural

from ..keys import key_of
from ..player import Found
from ..stops import Completion, kinds_of, read_breakpoint, stopping_places
from .ask import Ask
from .menu import Menu

if TYPE_CHECKING:
    from .stage import Stage


class NothingFound(BadChange):
    """Nothing in this run is as it was looked for."""


async def go_to(stage: Stage) -> None:
    """A step, an event or a request."""

    def read(line: str) -> int:
        player, line = stage.player, line.strip()
        word = line.removeprefix("event").removeprefix("step").strip()
        if word.isdecimal() and not line.startswith("event"):
            return player.timeline.place_of_step(int(word))
        if word.removeprefix("e").isdecimal():
            place = int(word.removeprefix("e"))
            player.timeline.require(place)
            return place
        player.go_to_request(line)
        return player.place

    hint = "A step of the scheduler (42), an event (e1234) or a request (its id)."
    place = await stage.app.push_screen_wait(Ask("Go to", hint, read))
    if place is not None:
        stage.playable.seek(place)
        stage.sync()


async def find(stage: Stage) -> None:
    """A block, a hash, a request or a piece of a prompt; it is selected."""

    def read(line: str) -> list[Found]:
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
        lambda line: read_breakpoint(line, *players, may_come=stage.live is not None),
        _suggestion(stage),
        suggester=Completion(*players),
    )
    point = await stage.app.push_screen_wait(asked)
    if point is None:
        return
    stage.playable.breakpoints = [*points, point]
    count = sum(len(stopping_places(side.timeline, [point])) for side in players)
    where = f"stops at {plural(count, 'event')} of {runs}" if count else f"stops nowhere in {runs}"
    on, back = key_of(stage.app, "resume"), key_of(stage.app, "reverse")
    stage.say(f"{point.describe()} {where}. {on} goes on to the next one, {back} back to the last.")
    stage.sync()


def _suggestion(stage: Stage) -> str:
    selection = stage.player.selection
    if selection.kind in ("block", "request"):
        return f"{selection.kind}={selection.id}"
    current = stage.player.current
    return f"kind={type(current).__name__}" if current else "kind=BlocksEvicted"
