"""Two caches side by side: the same scenario, step by step, on one clock; where the two runs diverge, and why.

The clock advances by the longer of the two steps, so that requests arrive in the same step in both.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from typing import Any

from minicache.core import events as ev
from minicache.sim.narrator import Narrator
from minicache.sim.phrases import plural
from minicache.sim.scenario import CACHE_NAMES, KINDS, Kind, Scenario
from minicache.sim.simulator import Simulator
from minicache.sim.timeline import Timeline

NAMES: dict[Kind, str] = {kind: f"the {name}" for kind, name in CACHE_NAMES.items()}
DECISIONS = ("RequestAdmitted", "TokensComputed", "RequestPreempted", "AdmissionFailed")


@dataclass(slots=True)
class Facts:
    """The facts about one request in one step that can be compared."""

    found: int | None = None
    computed: int = 0
    preempted: bool = False
    refused: bool = False
    decided: list[int] = field(default_factory=list)  # places of the events that decided it

    def differs_from(self, other: "Facts") -> str | None:
        """The name of the first fact that is different."""
        for name in ("found", "preempted", "refused", "computed"):
            if getattr(self, name) != getattr(other, name):
                return name
        return None

    def describe(self, name: str, request: str) -> str:
        """The fact of that name, about `request`: `finds 640 tokens of user2`."""
        match name:
            case "found" if self.found is None:
                return f"does not admit {request}"
            case "found":
                return f"finds {self.found:,} tokens of {request}"
            case "computed":
                return f"computes {self.computed:,} tokens of {request}"
            case "preempted":
                return f"preempts {request}" if self.preempted else f"does not preempt {request}"
            case _:
                return f"has no room for {request}" if self.refused else f"has room for {request}"


@dataclass(frozen=True, slots=True)
class Parting:
    """The first step in which the two caches treat a request differently: in words, `what` each does, and `why`."""

    step: int
    request: str
    what: str
    why: dict[Kind, str]

    @property
    def sentence(self) -> str:
        return f"In step {self.step} {self.what}."

    def to_json(self) -> dict[str, Any]:
        return {"step": self.step, "request": self.request, "sentence": self.sentence, "why": dict(self.why)}


def run_both(scenario: Scenario) -> dict[Kind, Timeline]:
    """Run both caches to the end in lock-step. Raises as `Timeline.record` does."""
    timelines = {kind: Timeline.for_scenario(scenario, kind) for kind in KINDS}
    sims = [Simulator.of(scenario, kind, timelines[kind]) for kind in KINDS]
    while not all(sim.done for sim in sims):
        for sim in sims:
            sim.step()
        now = max(sim.now for sim in sims)
        for sim in sims:
            sim.now = now
    return timelines


def partings(timelines: dict[Kind, Timeline], names: Mapping[Kind, str] = NAMES) -> list[Parting]:
    """Where the two runs diverge: for each request the first step in which they do, in order. `names` are the names of
    the runs, because two runs over the same kind of cache can be compared too."""
    hash_facts, radix_facts = (_facts(timelines[kind]) for kind in KINDS)
    narrators = {kind: Narrator(timelines[kind]) for kind in KINDS}
    found: dict[str, Parting] = {}
    for step, request in sorted({**hash_facts, **radix_facts}, key=lambda key: key[0]):  # stable: as they came
        if request in found:
            continue
        pair = {
            kind: facts.get((step, request), Facts())
            for kind, facts in zip(KINDS, (hash_facts, radix_facts), strict=True)
        }
        name = pair["hash"].differs_from(pair["radix"])
        if name is not None:
            each = [f"{names[kind]} {facts.describe(name, request)}" for kind, facts in pair.items()]
            why = {kind: " ".join(line.words for line in narrators[kind].lines(pair[kind].decided)) for kind in KINDS}
            found[request] = Parting(step, request, f"{each[0]}, {each[1]}", why)
    return list(found.values())


def _facts(timeline: Timeline) -> dict[tuple[int, str], Facts]:
    """For each step and request, the facts about it."""
    facts: dict[tuple[int, str], Facts] = defaultdict(Facts)
    index = timeline.index
    for place in merge(*map(index.of_kind, DECISIONS)):
        event = timeline.events[place]
        match event:
            case ev.RequestAdmitted():
                fact = facts[event.step, event.request]
                fact.found = event.num_cached_tokens
                lookup = index.last_lookup(event.request, place)
                fact.decided += [lookup] if lookup is not None else []
            case ev.TokensComputed():
                facts[event.step, event.request].computed += event.num_tokens
            case ev.RequestPreempted() | ev.AdmissionFailed():
                fact = facts[event.step, event.request]
                fact.preempted |= isinstance(event, ev.RequestPreempted)
                fact.refused |= isinstance(event, ev.AdmissionFailed)
                fact.decided.append(place)
    return facts


def report(found: list[Parting], limit: int = 6) -> Iterator[str]:
    """The partings in lines of text, the first `limit` of them with their reasons."""
    if not found:
        yield "The two caches treat every request alike: in every step they find and compute the same tokens of it."
        return
    for number, parting in enumerate(found[:limit]):
        first = f"The two caches differ first in step {parting.step}: {parting.what}."
        yield parting.sentence if number else first
        for kind, words in parting.why.items():
            if words:
                yield f"  {kind:>5}: {words}"
    if len(found) > limit:
        yield f"They also treat {plural(len(found) - limit, 'more request')} differently."
