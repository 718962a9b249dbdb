"""Changes of a run and the forks that they make: what a run is after those before, what comes of another one."""

import re
from dataclasses import dataclass, replace

from minicache.core.errors import MinicacheError
from minicache.core.events import RequestAdmitted
from minicache.sim.fork import Change, EditPrompt, InjectRequest
from minicache.sim.scenario import RequestSpec, Scenario
from minicache.sim.simulator import Simulator
from minicache.sim.timeline import Timeline

from .numbers import whole
from .player import Player
from .prompt_text import read_prompt, write_prompt


class CannotSend(MinicacheError):
    """The line does not say a request."""


@dataclass(frozen=True)
class Together:
    """Several changes at the same step boundary."""

    changes: tuple[Change, ...]
    words: str

    def apply(self, sim: Simulator) -> None:
        for change in self.changes:
            change.apply(sim)

    def describe(self) -> str:
        return self.words


def scenario_behind(timeline: Timeline, place: int) -> Scenario:
    """The scenario of a run, also of a recorded one, with the requests that earlier forks sent or edited up to `place`.
    Raises `BadChange` if it cannot be run again."""
    scenario = timeline.source()[0]
    steps = timeline.completed_steps(place)
    for after, change in timeline.changes:
        for part in change.changes if isinstance(change, Together) else (change,):
            if after <= steps and isinstance(part, InjectRequest):
                scenario = scenario.with_request(part.spec)
            elif after <= steps and isinstance(part, EditPrompt):
                spec = next(spec for spec in scenario.requests if spec.id == part.request)
                scenario = scenario.with_request(replace(spec, prompt=part.prompt))
    return scenario


def still_to_come(timeline: Timeline, place: int) -> list[RequestSpec]:
    """The requests that have not arrived at the step boundary at or before `place`, where a fork begins."""
    steps = timeline.completed_steps(place)
    boundary = timeline.place_of_step(steps) if steps else -1
    arrived = {id for id, first in arrivals(timeline).items() if first <= boundary}
    return [spec for spec in scenario_behind(timeline, place).requests if spec.id not in arrived]


def arrivals(timeline: Timeline) -> dict[str, int]:
    """Request -> the place at which it arrived."""
    return {id: record.arrived for id, record in timeline.index.requests.items()}


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
    id, record = change.spec.id, branch.index.requests.get(change.spec.id)
    where = f"{id} comes in after step {after}" if after else f"{id} comes in before step 1"
    if record is None:
        return f"{where} and is refused."
    if not record.admissions:
        return f"{where} and is never admitted."
    event = timeline.events[record.admissions[0]]
    assert isinstance(event, RequestAdmitted)
    tokens = len(timeline.events[record.arrived].tokens)  # type: ignore[attr-defined]
    return f"{where}, is admitted in step {event.step} and hits {event.num_cached_tokens:,} of its {tokens:,} tokens."


_INJECTED = re.compile(r"(\S+) \((\d+)\): ?(.*)", re.DOTALL)


def injected(player: Player, line: str) -> Player:
    """The fork in which a request of one's own arrives next, written `mine1 (4): You are a support bot.`, or the prompt
    alone."""
    written = _INJECTED.fullmatch(line.lstrip())
    if written is None:
        id, _, usual = injection_defaults(player.timeline, player.place)
        return player.fork(InjectRequest(RequestSpec(id, read_prompt(line), int(usual))))
    max_tokens = whole(written[2], f"how many tokens it may generate, as {written[1]} (4):")
    if max_tokens < 1:
        raise CannotSend(f"{written[1]} may generate {max_tokens} tokens: let it be one at least, as {written[1]} (1):")
    return player.fork(InjectRequest(RequestSpec(written[1], read_prompt(written[3]), max_tokens)))


def injection_defaults(timeline: Timeline, place: int) -> tuple[str, str, str]:
    """An id that is free, the prompt of the latest request, and its max_tokens: what the form shows at first."""
    scenario = scenario_behind(timeline, len(timeline) - 1)
    came = arrivals(timeline)
    taken = {spec.id for spec in scenario.requests} | came.keys()
    id = next(name for number in range(1, len(taken) + 2) if (name := f"mine{number}") not in taken)
    before = [spec for spec in scenario.requests if came.get(spec.id, place + 1) <= place]
    like = (before or list(scenario.requests))[-1] if scenario.requests else None
    if like is None:
        return id, "You are a support bot.", "4"
    return id, write_prompt(like.prompt), str(like.max_tokens)
