"""The plain transcript: a run in sentences, one event after the other. What a screen shows is in it."""

from collections.abc import Iterator
from dataclasses import dataclass

from minicache.core.events import Event
from minicache.sim.narrator import Narrator
from minicache.sim.timeline import Timeline
from minicache.sim.words import tell


@dataclass(frozen=True, slots=True)
class Line:
    """An event, its sentence, and what was known when it was told."""

    place: int
    event: Event
    words: str
    narrator: Narrator


def narrate(timeline: Timeline, last: int | None = None) -> Iterator[Line]:
    """Every event up to place `last` with its sentence. The narrator is the same object at every line and goes on."""
    settings = timeline.settings
    modelled = str(settings.get("clock", "")).startswith("modelled")
    narrator = Narrator(settings["num_blocks"], settings["block_size"], modelled)
    for place, event in enumerate(timeline.events if last is None else timeline.events[: last + 1]):
        if place in timeline.rebases:
            narrator = narrator.rebase(*timeline.rebases[place])
        narrator.apply(event)
        yield Line(place, event, tell(narrator, event), narrator)


def transcript(timeline: Timeline) -> Iterator[str]:
    """Lines of text: the number of the event, the sentence; an empty line before every step."""
    for line in narrate(timeline):
        if type(line.event).__name__ == "StepStarted":
            yield ""
        yield f"{line.place:>4}  {line.words}"
