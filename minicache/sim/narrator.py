"""The narrator: the events of a run in sentences with their rules, in any order. Transcript, TUI and CLI use this one.

A sentence needs the state right after its event, and for a lookup the reason why it ended. The caller
may pass a view in this state; otherwise the narrator's own view is used. `timeline.findings` has the reason.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from minicache.core.events import Event, PrefixMatched
from minicache.core.views import EngineView
from minicache.sim.collection import no_collection
from minicache.sim.rules import Rule, rule_of
from minicache.sim.scene import Scene
from minicache.sim.timeline import Timeline
from minicache.sim.words import describe

KEPT = 4096  # lines that are kept, the latest ones
NEAR = 2000  # events that are applied to the own view rather than folded from a checkpoint


@dataclass(frozen=True, slots=True)
class Line:
    """An event, its sentence, and the rule for it."""

    place: int
    event: Event
    words: str
    rule: Rule


class Narrator:
    """Describes the events of a timeline, which may grow."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._lines: OrderedDict[int, Line] = OrderedDict()
        self._view: EngineView | None = None  # has taken the events up to `_at`
        self._at = -1

    def line(self, place: int, view: EngineView | None = None) -> Line:
        """The event at `place` in a sentence. `view`, if given, has just taken that event. Raises `UnknownThing`."""
        if place in self._lines:
            self._lines.move_to_end(place)
            return self._lines[place]
        self.timeline.require(place)
        event, scene = self.timeline.events[place], self.scene(place, view)
        line = self._lines[place] = Line(place, event, describe(event, scene), rule_of(event, scene))
        if len(self._lines) > KEPT:
            self._lines.popitem(last=False)
        return line

    def lines(self, places: Iterable[int] | None = None) -> Iterator[Line]:
        """The lines of some places, or of the whole run; quick if the places ascend. Raises as `line` does."""
        return map(self.line, range(len(self.timeline)) if places is None else places)

    def is_kept(self, place: int) -> bool:
        """Whether `line` needs no view for this place."""
        return place in self._lines

    def scene(self, place: int, view: EngineView | None = None) -> Scene:
        """What is known at `place`. `view`, if given, is in that state. Valid until the view takes another event."""
        timeline = self.timeline
        event = timeline.events[place] if place >= 0 else None
        view = view if view is not None else self.view(place)
        return Scene(
            view,
            timeline.token_words,
            timeline.kind == "radix" or bool(view.nodes),  # the header of a log need not name the cache
            None if timeline.is_modelled else timeline.events[0].time if timeline.events else 0.0,
            timeline.findings.at(place) if isinstance(event, PrefixMatched) else None,
        )

    def view(self, place: int) -> EngineView:
        """The state after the event at `place`, -1 for before the first; valid until the next call. It takes
        more events if `place` is at most `NEAR` events ahead, and else begins at a checkpoint."""
        timeline, start = self.timeline, self._at + 1
        if self._view is None or not start <= place + 1 <= start + NEAR:
            with no_collection():
                checkpoint_place, checkpoint = timeline.checkpoint_at(max(0, timeline.checkpoint_before(place)))
                self._view, start = checkpoint.restore(), checkpoint_place + 1
        self._view.apply_all(timeline.events[start : place + 1])
        self._at = place
        return self._view
