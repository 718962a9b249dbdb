"""The state at a place of a timeline, and quick ways to another place.

    checkpoints  ^               ^               ^
                                 |---- fold ---->|<- undo -|-- apply ->
                                               place

Near places are reached by applying events or taking them back, far ones from a checkpoint. Folding begins before the
step in which the place lies, for what is new in a step is known only by who saw the step begin.
"""

from collections import deque

from minicache.core import events as ev
from minicache.core.views import EngineView
from minicache.sim.collection import no_collection
from minicache.sim.timeline import Timeline

from ..cells import Cells, Saved
from .inverse import Inverse, inverse_of

NEAR = 400  # so many events are applied rather than folded from a checkpoint
REMEMBERED = 4000  # so many events can be taken back


class State:
    """`view` and `cells` at `place`. `go` moves them."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.place = -1
        self._undo: deque[tuple[Inverse | None, Saved]] = deque(maxlen=REMEMBERED)
        self.view, self.cells = self._from_checkpoint(-1)

    def go(self, place: int) -> frozenset[int] | None:
        """Move to `place`. Returns the blocks whose cell changed; None if the pool is another one."""
        if place == self.place:
            return frozenset()
        self.cells.begin()
        if self._same_pool(place) and self._go_near(place):
            return self.cells.changed()
        before = self.cells
        with no_collection():
            self.view, self.cells = self._from_checkpoint(place)
        self.place = place
        return before.differing(self.cells) if self._same else None

    def _go_near(self, place: int) -> bool:
        """By applying events or taking them back, if that is quick."""
        if self.place - len(self._undo) <= place < self.place:
            while self.place > place:
                inverse, saved = self._undo.pop()
                self.cells.take_back(saved)
                if inverse is not None:
                    inverse()
                self.place -= 1
            return True
        if self.place < place <= self.place + NEAR:
            for event in self.timeline.events[self.place + 1 : place + 1]:
                self._apply(event)
            self.place = place
            return True
        return False

    def _apply(self, event: ev.Event) -> None:
        inverse = inverse_of(self.view, event)
        self.view.apply(event)
        self._undo.append((inverse, self.cells.take(event)))

    def _same_pool(self, place: int) -> bool:
        """Whether no event between here and there found another pool."""
        low, high = sorted((self.place, place))
        self._same = not any(low + 1 < changed <= high + 1 for changed in self.timeline.rebases)
        return self._same

    def _from_checkpoint(self, place: int) -> tuple[EngineView, Cells]:
        timeline = self.timeline
        begun = timeline.previous(place + 1, "StepStarted")
        base = -1 if begun is None else begun - 1
        pool = max((changed - 1 for changed in timeline.rebases if changed <= place + 1), default=-1)
        index = timeline.checkpoint_before(max(base, pool) + 1)
        start, checkpoint = timeline.checkpoint_at(index)
        self.view = checkpoint.restore()
        self.cells = Cells(self.view)
        self._undo.clear()
        for event in timeline.events[start + 1 : place + 1]:
            self._apply(event)
        return self.view, self.cells
