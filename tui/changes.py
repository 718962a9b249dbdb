"""What can be different in a fork, as a person asks for it: each a line of text that becomes a `Change`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minicache.core.errors import MinicacheError
from minicache.core.events import RequestAdmitted
from minicache.sim.errors import BadChange
from minicache.sim.fork import Change, EditPrompt, InjectRequest, SetBlockSize, SetPolicy, ShrinkPool
from minicache.sim.library import read_value
from minicache.sim.rerun import scenario_of
from minicache.sim.scenario import RequestSpec, Scenario
from minicache.sim.simulator import Simulator
from minicache.sim.timeline import Timeline

from .player import Player
from .prompt_text import read_prompt, write_prompt


class CannotAsk(MinicacheError):
    """The line does not say a change."""


@dataclass(frozen=True)
class Together:
    """Several changes at the same step boundary."""

    changes: tuple[Change, ...]
    words: str

    def apply(self, sim: Simulator, timeline: Timeline) -> None:
        for change in self.changes:
            change.apply(sim, timeline)

    def describe(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class Ask:
    """One kind of change: what the menu says, what to type, what stands there at first, and how it is read.

    `suggest` gives None where nothing need be typed; `edit`: what it gives is there to be edited. `from_start`: the
    fork had best begin at the beginning. `offer` gives what the menu says below the title, None where the change cannot
    be made.
    """

    title: str
    hint: str
    suggest: Callable[[Timeline, int], str | None]
    read: Callable[[Timeline, int, str], Change | None]
    from_start: bool = False
    edit: bool = False
    offer: Callable[[Timeline, int], str | None] | None = None

    def offered(self, timeline: Timeline, place: int) -> str | None:
        return self.hint if self.offer is None else self.offer(timeline, place)


def scenario_behind(timeline: Timeline) -> Scenario:
    """The scenario of a run, also of a recorded one. Raises `BadChange` if it cannot be run again."""
    return timeline.scenario or scenario_of(timeline)[0]


def still_to_come(timeline: Timeline, place: int) -> list[RequestSpec]:
    """The requests that have not arrived at the step boundary at or before `place`, where a fork begins."""
    steps = timeline.completed_steps(place)
    boundary = timeline.place_of_step(steps) if steps else -1
    arrived = {id for id, first in arrivals(timeline).items() if first <= boundary}
    return [spec for spec in scenario_behind(timeline).requests if spec.id not in arrived]


def arrivals(timeline: Timeline) -> dict[str, int]:
    """Request -> the place at which it arrived."""
    found: dict[str, int] = {}
    place = timeline.next(-1, "RequestArrived")
    while place is not None:
        found[timeline.events[place].request] = place  # type: ignore[attr-defined]
        place = timeline.next(place, "RequestArrived")
    return found


def _of_parts(timeline: Timeline) -> list[RequestSpec]:
    """The requests whose prompt has a part that could come behind another one."""
    try:
        return [spec for spec in scenario_behind(timeline).requests if len(set(spec.prompt[:2])) > 1]
    except BadChange:
        return []


def _offer_move(timeline: Timeline, place: int) -> str | None:
    """Of which parts it is, as the first prompt has them."""
    found = _of_parts(timeline)
    if not found:
        return None
    first, second = (_short(write_prompt([part])) for part in found[0].prompt[:2])
    who = "every request" if len(found) > 1 else found[0].id
    return f"In the whole run, of {who}: “{first}” behind “{second}”."


def _short(text: str, most: int = 24) -> str:
    text = text.strip()
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _offer_prompt(timeline: Timeline, place: int) -> str | None:
    try:
        later = still_to_come(timeline, place)
    except BadChange:
        return None
    return f"{later[0].id} is the next to arrive." if later else None


def _move_first(timeline: Timeline, place: int, line: str) -> Change:
    edits = []
    for spec in _of_parts(timeline):
        first, second, *rest = spec.prompt
        edits.append(EditPrompt(spec.id, (second, first, *rest)))
    if not edits:
        raise CannotAsk("no prompt of this run has two parts that could change places")
    return Together(tuple(edits), "the first two parts swapped")


def _prompt_line(timeline: Timeline, place: int) -> str:
    later = still_to_come(timeline, place)
    if not later:
        return ""
    return f"{later[0].id}: {write_prompt(later[0].prompt)}"


def _edit_prompt(timeline: Timeline, place: int, line: str) -> Change:
    line = line.lstrip()
    known = [spec.id for spec in scenario_behind(timeline).requests if line.startswith(f"{spec.id}:")]
    request = max(known, key=len) if known else line.partition(":")[0]  # an id may have a colon in it
    if not line.startswith(f"{request}:"):
        raise CannotAsk("write the request, a colon and its prompt: r2: You are a support bot. | [tools 64]")
    return EditPrompt(request.strip(), read_prompt(line[len(request) + 1 :].removeprefix(" ")))


def read_policy(line: str) -> dict[str, Any]:
    """`name=value`, one or several, as settings. Raises `CannotAsk`."""
    settings = {}
    for word in line.split():
        name, sign, value = word.partition("=")
        if not sign or not name or not value:
            raise CannotAsk(f"{word!r}: write name=value, as queue_policy=lpm or max_num_seqs=2")
        settings[name] = read_value(value)
    if not settings:
        raise CannotAsk("write name=value, as queue_policy=lpm, max_num_batched_tokens=256 or strategy=lfu")
    return settings


def _number(line: str, what: str) -> int:
    try:
        return int(line.replace(",", ""))
    except ValueError:
        raise CannotAsk(f"{line!r} is no number: write {what}") from None


def offers(player: Player) -> list[tuple[Ask, str]]:
    """What can be changed at this place, with what there is to say of each."""
    offered = [(ask, ask.offered(player.timeline, player.place)) for ask in ASKS]
    return [(ask, words) for ask, words in offered if words is not None]


def between(player: Player) -> str:
    """Where a fork begins: a step is never cut in two."""
    after = player.timeline.completed_steps(player.place)
    if not after:
        return "before step 1"
    return f"after step {after}" if after == player.num_steps else f"between step {after} and step {after + 1}"


def outcome(branch: Player) -> str:
    """What becomes of the request that was sent into this fork."""
    timeline = branch.timeline
    after, change = timeline.changes[-1]
    assert isinstance(change, InjectRequest)
    id, marks = change.spec.id, branch.index.requests.get(change.spec.id)
    where = f"{id} comes in after step {after}" if after else f"{id} comes in before step 1"
    if marks is None:
        return f"{where} and is refused."
    if not marks.admissions:
        return f"{where} and is never admitted."
    event = timeline.events[marks.admissions[0]]
    assert isinstance(event, RequestAdmitted)
    tokens = len(timeline.events[marks.arrival].tokens)  # type: ignore[attr-defined]
    return f"{where}, is admitted in step {event.step} and hits {event.num_cached_tokens:,} of its {tokens:,} tokens."


ASKS: Sequence[Ask] = (
    Ask(
        "Move what comes first in each prompt behind what comes next",
        "In the whole run.",
        lambda timeline, place: None,
        _move_first,
        from_start=True,
        offer=_offer_move,
    ),
    Ask(
        "Another prompt for a request",
        "REQUEST: PART | PART …  A part is text (\\| is a | of it), [name COUNT] for a text of that length, or "
        "[answer of REQUEST].",
        _prompt_line,
        _edit_prompt,
        edit=True,
        offer=_offer_prompt,
    ),
    Ask(
        "Another policy",
        "name=value, one or several: queue_policy=lpm, publish_at=compute, max_num_seqs=2, strategy=lfu.",
        lambda timeline, place: "queue_policy=lpm",
        lambda timeline, place, line: SetPolicy(read_policy(line)),
    ),
    Ask(
        "Fewer blocks",
        "How many blocks are taken out of the pool.",
        lambda timeline, place: str(max(1, (timeline.settings["num_blocks"] - 1) // 16)),
        lambda timeline, place, line: ShrinkPool(_number(line, "how many blocks to take away")),
    ),
    Ask(
        "Another block size",
        "Tokens of a block; the cache starts empty, and whoever runs starts again.",
        lambda timeline, place: str(max(1, timeline.settings["block_size"] // 2)),
        lambda timeline, place, line: SetBlockSize(_number(line, "the tokens of a block")),
    ),
    Ask(
        "Nothing: a branch that comes out the same",
        "To compare with, or to change later on.",
        lambda timeline, place: None,
        lambda timeline, place, line: None,
    ),
)


def forked(player: Player, ask: Ask, line: str) -> Player:
    """The fork that the line asks for, at the player's step. Raises `BadChange`, `BadPrompt` or `CannotAsk`."""
    if not ask.from_start:
        return player.fork(ask.read(player.timeline, player.place, line))
    timeline = player.timeline.fork(-1, ask.read(player.timeline, -1, line))
    branch = Player(timeline, decode=player.decode, parent=player)
    if player.step_now:
        branch.seek_step(min(player.step_now, branch.num_steps))
    return branch


_INJECTED = re.compile(r"(\S+) \((\d+)\): ?(.*)")


def injected(player: Player, line: str) -> Player:
    """The fork in which a request of one's own arrives next, written `mine1 (4): You are a support bot.`, or the prompt
    alone."""
    written = _INJECTED.fullmatch(line.lstrip())
    if written is None:
        id, _, max_tokens = injection_defaults(player.timeline, player.place)
        return player.fork(InjectRequest(RequestSpec(id, read_prompt(line), int(max_tokens))))
    if int(written[2]) < 1:
        raise CannotAsk(f"{written[1]} may generate {written[2]} tokens: let it be one at least, as {written[1]} (1):")
    return player.fork(InjectRequest(RequestSpec(written[1], read_prompt(written[3]), int(written[2]))))


def injection_defaults(timeline: Timeline, place: int) -> tuple[str, str, str]:
    """An id that is free, the prompt of the latest request, and its max_tokens: what the form shows at first."""
    scenario = scenario_behind(timeline)
    taken = {spec.id for spec in scenario.requests}
    id = next(name for number in range(1, len(taken) + 2) if (name := f"mine{number}") not in taken)
    came = [spec for spec in scenario.requests if arrivals(timeline).get(spec.id, place + 1) <= place]
    like = (came or list(scenario.requests))[-1] if scenario.requests else None
    if like is None:
        return id, "You are a support bot.", "4"
    return id, write_prompt(like.prompt), str(like.max_tokens)
