"""The plain transcript: a run in sentences, one event after the other. What a screen shows is in it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from minicache.core.events import Event, StepFinished, StepStarted
from minicache.sim.listener import Listener
from minicache.sim.rules import Rule, rule_of
from minicache.sim.state_words import CHANGES_FINDABLE, state_words
from minicache.sim.timeline import Timeline
from minicache.sim.words import tell


@dataclass(frozen=True, slots=True)
class Line:
    """An event, its sentence, and the rule behind it."""

    place: int
    event: Event
    words: str
    rule: Rule


@dataclass(frozen=True, slots=True)
class ToldLine(Line):
    """With the narrator that told it: to be read, not to be changed, and before the next line is asked for."""

    narrator: Listener = field(repr=False, compare=False)


def narrate(timeline: Timeline, last: int | None = None) -> Iterator[ToldLine]:
    """Every event up to place `last` with its sentence. The narrator is the same object at every line and goes on."""
    settings = timeline.settings
    narrator = Listener(settings["num_blocks"], settings["block_size"], timeline.is_modelled)
    narrator.token_words = timeline.token_words
    for place, event in enumerate(timeline.events if last is None else timeline.events[: last + 1]):
        narrator.apply(event)
        yield ToldLine(place, event, tell(narrator, event), rule_of(event, narrator), narrator)


def transcript(timeline: Timeline) -> Iterator[str]:
    """Lines of text: the number of the event, the sentence; an empty line before every step, and behind it how things
    stand, without a number. What can be found is told when it has changed."""
    changed = False
    for line in narrate(timeline):
        if isinstance(line.event, StepStarted):
            yield ""
        yield f"{line.place:>4}  {line.words}"
        changed = changed or isinstance(line.event, CHANGES_FINDABLE)
        if isinstance(line.event, StepFinished):
            for words in state_words(line.narrator, changed, timeline.hit_rate(line.place)):
                yield f"      {words}"
            changed = False
