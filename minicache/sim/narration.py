"""A run in sentences, at any place: what the transcript says there, without telling all that comes before.

A sentence needs the state right after its event, and of a lookup what it found. The state is that of whoever has a view
there already (`tell`), else it is folded from the checkpoint before (`at`, `lines`); what lookups found, `lookups.py`
knows. Lines are kept.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from minicache.core import events as ev
from minicache.core.views import EngineView
from minicache.sim.collection import no_collection
from minicache.sim.finding import Finding
from minicache.sim.lookups import Lookups
from minicache.sim.narrator import Narrator
from minicache.sim.places import Places
from minicache.sim.rules import rule_of
from minicache.sim.timeline import Timeline
from minicache.sim.transcript import Line
from minicache.sim.words import tell

KEPT = 4096  # lines that are kept, the latest ones
NEAR = 2000  # so many events are applied rather than folded from a checkpoint


class Narration:
    """The lines of a timeline. Making one takes as long as reading the run once; the timeline may grow afterwards."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.lookups = Lookups(timeline)
        self._places: Places | None = None
        self._lines: OrderedDict[int, Line] = OrderedDict()
        self._view: EngineView | None = None  # has taken the events up to `_stands_at`
        self._stands_at = -1
        self._read()

    def at(self, place: int) -> Line:
        """The event at `place`, told as `narrate` tells it. Raises `UnknownThing` for a place that is not there."""
        self.timeline.require(place)
        if place in self._lines:
            self._lines.move_to_end(place)
            return self._lines[place]
        return self.tell(place, self.view(place))

    def lines(self, places: Iterable[int]) -> Iterator[Line]:
        """The lines of some places; quick if the places ascend. Raises as `at` does."""
        return map(self.at, places)

    def knows(self, place: int) -> bool:
        """Whether the line is kept."""
        return place in self._lines

    def tell(self, place: int, view: EngineView) -> Line:
        """The event at `place` by a view that has just taken it; the line is kept."""
        event = self.timeline.events[place]
        narrator = self.narrator(place, view)
        if isinstance(event, ev.PrefixMatched):
            narrator.finding = self.finding(place)
        line = self._lines[place] = Line(place, event, tell(narrator, event), rule_of(event, narrator))
        if len(self._lines) > KEPT:
            self._lines.popitem(last=False)
        return line

    def narrator(self, place: int, view: EngineView) -> Narrator:
        """A narrator over a view that stands at `place`; valid until the view moves."""
        self._read()
        timeline = self.timeline
        narrator = Narrator.over(view)
        narrator.modelled, narrator.token_words = timeline.is_modelled, timeline.token_words
        narrator.start = 0.0 if timeline.is_modelled or not timeline.events else timeline.events[0].time
        since = self.lookups.radix_from
        narrator.radix = since is not None and since <= place
        return narrator

    def finding(self, place: int) -> Finding:
        """What the lookup at `place` found, and why no more."""
        self._read()
        return self.lookups.finding(place)

    @property
    def places(self) -> Places:
        """Where something happens to what; read when it is first asked for."""
        if self._places is None:
            self._places = Places(self.timeline)
        with no_collection():
            self._places.update()
        return self._places

    def _read(self) -> None:
        """Read what is new."""
        if self.lookups.num_read < len(self.timeline):
            with no_collection():
                self.lookups.update()
                self.timeline.token_words.prepare()

    def view(self, place: int) -> EngineView:
        """The state after the event at `place`; valid until the next line is told. It goes on from where it stands, if
        that is near and not after `place`."""
        timeline, start = self.timeline, self._stands_at + 1
        near = start <= place + 1 <= start + NEAR
        if self._view is None or not near:
            with no_collection():
                checkpoint_place, checkpoint = timeline.checkpoint_at(max(0, timeline.checkpoint_before(place)))
                self._view, start = checkpoint.restore(), checkpoint_place + 1
        self._view.apply_all(timeline.events[start : place + 1])
        self._stands_at = place
        return self._view
