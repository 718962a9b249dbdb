"""Two caches side by side: the same scenario, step by step, on one clock; where they part, and why.

The clock goes on by the longer of the two steps, so that requests arrive in the same step in both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from minicache.core import events as ev
from minicache.sim.scenario import CACHE_NAMES, KINDS, Kind, Scenario
from minicache.sim.simulator import Simulator
from minicache.sim.timeline import Timeline
from minicache.sim.transcript import narrate

NAMES: dict[Kind, str] = {kind: f"the {name}" for kind, name in CACHE_NAMES.items()}


@dataclass(slots=True)
class Facts:
    """What one step did with one request, as far as it can be compared."""

    found: int | None = None
    computed: int = 0
    preempted: bool = False
    refused: bool = False
    words: list[str] = field(default_factory=list)

    def differs_from(self, other: "Facts") -> str | None:
        """Which fact is another, by name."""
        for name in ("found", "preempted", "refused", "computed"):
            if getattr(self, name) != getattr(other, name):
                return name
        return None

    def say(self, name: str, request: str) -> str:
        if name == "found":
            return f"does not admit {request}" if self.found is None else f"finds {self.found:,} tokens of {request}"
        if name == "computed":
            return f"computes {self.computed:,} tokens of {request}"
        done = {"preempted": "preempts", "refused": "has no room for"}[name]
        return f"{done} {request}" if getattr(self, name) else f"has no need to: {request} stays"


@dataclass(frozen=True, slots=True)
class Parting:
    """The first step in which the two treat a request differently: `what` each does, in words, and `why`, in its own
    account."""

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
    """Where the two part: for each request the first step in which they do, in order. `names` is what they are called:
    two runs over the same kind of cache can be compared too."""
    hash_facts, radix_facts = (_facts(timelines[kind]) for kind in KINDS)
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
            each = [f"{names[kind]} {facts.say(name, request)}" for kind, facts in pair.items()]
            why = {kind: " ".join(facts.words) for kind, facts in pair.items()}
            found[request] = Parting(step, request, f"{each[0]}, {each[1]}", why)
    return list(found.values())


def _facts(timeline: Timeline) -> dict[tuple[int, str], Facts]:
    """(step, request) -> what was done with it."""
    facts: dict[tuple[int, str], Facts] = {}
    lookups: dict[str, str] = {}
    for line in narrate(timeline):
        event = line.event
        request = getattr(event, "request", None)
        if request is None:
            continue
        if isinstance(event, ev.PrefixMatched):
            lookups[request] = line.words
            continue
        if not isinstance(event, ev.RequestAdmitted | ev.TokensComputed | ev.RequestPreempted | ev.AdmissionFailed):
            continue
        fact = facts.setdefault((event.step, request), Facts())
        if isinstance(event, ev.RequestAdmitted):
            fact.found = event.num_cached_tokens
            fact.words.append(lookups[request])
        elif isinstance(event, ev.TokensComputed):
            fact.computed += event.num_tokens
        else:
            fact.preempted |= isinstance(event, ev.RequestPreempted)
            fact.refused |= isinstance(event, ev.AdmissionFailed)
            fact.words.append(line.words)
    return facts


def report(found: list[Parting], limit: int = 6) -> Iterator[str]:
    """The partings in lines of text, the first `limit` of them with their reasons."""
    if not found:
        yield "The two caches never part: they find and compute the same tokens of every request in every step."
        return
    for number, parting in enumerate(found[:limit]):
        yield f"They part first here. {parting.sentence}" if number == 0 else parting.sentence
        for kind, words in parting.why.items():
            if words:
                yield f"  {kind:>5}: {words}"
    if len(found) > limit:
        yield f"And {len(found) - limit} more requests that they treat differently."
