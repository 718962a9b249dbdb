"""The state at a place of a timeline, and quick ways to another place.

                 |------- fold -------->|<-------- undo ---------|-- apply ->
    stretches    |    the one before    |          now         place

Near places are reached by applying events or taking them back, far ones by folding from a checkpoint. Whoever goes
back will come to where this stretch begins; so with every event that is taken back a little of the stretch before is
folded, and it is there when it is needed.
"""

from minicache.core.views import EngineView
from minicache.sim.collection import no_collection
from minicache.sim.timeline import Timeline

from ..cells import Cells
from .folding import Folding, pool_start
from .touched import Key

NEAR = 400  # so many events are applied rather than folded from a checkpoint


class State:
    """`view` and `cells` at `place`. `go` moves them."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._now = Folding(timeline, -1).finished()
        self._before: Folding | None = None

    @property
    def place(self) -> int:
        return self._now.place

    @property
    def view(self) -> EngineView:
        return self._now.view

    @property
    def cells(self) -> Cells:
        return self._now.cells

    def take_touched(self) -> set[Key] | None:
        """The hashes and nodes that moves touched since the last call; None if any may be another."""
        touched, self._now.touched = self._now.touched, set()
        return touched

    def go(self, place: int) -> frozenset[int] | None:
        """Move to `place`. Returns the blocks whose cell changed; None if the pool is another one."""
        if place == self.place:
            return frozenset()
        self.cells.begin()
        same_pool = self._same_pool(place)
        if same_pool and (self._go_on(place) or self._go_back(place)):
            return self.cells.changed()
        cells = self.cells
        with no_collection():
            self._now = Folding(self.timeline, place).finished()
        return cells.differing(self.cells) if same_pool else None

    def _same_pool(self, place: int) -> bool:
        """Whether no event between here and there found another pool."""
        return pool_start(self.timeline, self.place) == pool_start(self.timeline, place)

    def _go_on(self, place: int) -> bool:
        """By applying events, if they are few."""
        if not self.place < place <= self.place + NEAR:
            return False
        self._now.forward(place)
        return True

    def _go_back(self, place: int) -> bool:
        """By taking events back, if that is possible."""
        now, before = self._now, self._before
        if place > now.place:
            return False
        if place < now.first:
            if before is None or before.end != now.first:
                return False
            stretch = before.finished()
            if place < stretch.first:
                return False
            now.back(now.first)
            stretch.follow(now)
            self._now, self._before = stretch, None
        self._prepare(place)
        self._now.back(place)
        return True

    def _prepare(self, place: int) -> None:
        """Fold as much of the stretch before as going back to `place` is of what can still be taken back."""
        now = self._now
        if now.first == pool_start(self.timeline, now.first):
            return
        if self._before is None or self._before.end != now.first:
            self._before = Folding(self.timeline, now.first)
        self._before.go_on(self._before.left * (now.place - place) / (now.place - now.first))
