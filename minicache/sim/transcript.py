"""The plain transcript: a run in sentences, one event after the other, with everything that a screen shows."""

from collections.abc import Iterator

from minicache.core.events import BlocksPublished, StepFinished, StepStarted
from minicache.sim.narrator import Narrator
from minicache.sim.timeline import Timeline
from minicache.sim.words import CHANGES_FINDABLE, state_words


def transcript(timeline: Timeline) -> Iterator[str]:
    """Lines of text, each with the number of an event and its sentence. Before every step comes an empty line. After it
    come lines without a number: the state, and what lookups can find if that has changed."""
    narrator = Narrator(timeline)
    publishers: dict[int, tuple[str, int]] = {}
    changed = False
    for line in narrator.lines():
        event = line.event
        if isinstance(event, StepStarted):
            yield ""
        yield f"{line.place:>4}  {line.words}"
        changed = changed or isinstance(event, CHANGES_FINDABLE)
        if isinstance(event, BlocksPublished):
            first = event.start // (len(event.tokens) // len(event.blocks))
            publishers |= {block: (event.request, first + number) for number, block in enumerate(event.blocks)}
        elif isinstance(event, StepFinished):
            scene = narrator.scene(line.place)
            for words in state_words(scene, publishers, changed, timeline.hit_rate(line.place)):
                yield f"      {words}"
            changed = False
