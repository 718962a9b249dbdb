"""The state at a place of a timeline, and quick ways to another place.

                 |------- fold -------->|<-------- undo ---------|-- apply ->
    stretches    |    the one before    |          now         place

Near places are reached by applying events or taking them back, far ones by folding from a checkpoint. Whoever goes
back will come to where this stretch begins; so with every event that is taken back a little of the stretch before is
folded, and it is there when it is needed.
"""

from collections.abc import Iterable, Iterator

from minicache.core.views import EngineView
from minicache.sim.collection import no_collection
from minicache.sim.timeline import Timeline

from ..cells import Cells
from .folding import Folding, pool_start
from .lru import Lru
from .touched import Key

NEAR = 400  # so many events are applied rather than folded from a checkpoint


class State:
    """`view`, `cells` and `lru` at `place`. `go` moves them."""

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

    @property
    def lru(self) -> Lru:
        return self._now.lru

    def take_touched(self) -> set[Key] | None:
        """The hashes and nodes that moves touched since the last call; None if any may be another."""
        touched, self._now.touched = self._now.touched, set()
        return touched

    def look_back(self, places: Iterable[int]) -> Iterator[tuple[int, EngineView]]:
        """The view at places before this one, which ascend, as far as they can be reached by taking events back. It is
        lent until the next is asked for; let the iteration come to its end, where it is back at this place."""
        now, here = self._now, self._now.place
        touched = None if now.touched is None else set(now.touched)
        try:
            for place in places:
                if now.first < place <= here:
                    now.back(place)
                    now.forward(place)
                    yield place, now.view
        finally:
            now.forward(here)
            now.touched = touched

    def go(self, place: int, reach: int | None = None) -> frozenset[int] | None:
        """Move to `place`. Returns the blocks whose cell changed; None if the pool is another one. Somebody may
        `look_back` as far as `reach` then, if that is told."""
        if place == self.place:
            return frozenset()
        self.cells.begin()
        same_pool = self._same_pool(place)
        if same_pool and (self._go_on(place) or self._go_back(place, min(place, place if reach is None else reach))):
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

    def _go_back(self, place: int, reach: int) -> bool:
        """By taking events back, if that is possible."""
        now = self._now
        if place > now.place:
            return False
        if reach < now.first and not self._swap(place) and place < now.first:
            return False
        self._prepare(place, reach)
        self._now.back(place)
        return True

    def _swap(self, place: int) -> bool:
        """Go on with the stretch before, if it is there and has `place` or ends before it."""
        now, before = self._now, self._before
        if before is None or before.end != now.first or place < before.finished().first:
            return False
        stretch = before.finished()
        now.back(now.first)
        stretch.follow(now)
        self._now, self._before = stretch, None
        stretch.forward(max(place, stretch.place))
        return True

    def _prepare(self, place: int, reach: int) -> None:
        """Fold as much of the stretch before as going back to `place` is of the way until it is needed."""
        now = self._now
        if now.first == pool_start(self.timeline, now.first) or place == now.place:
            return
        if self._before is None or self._before.end != now.first:
            self._before = Folding(self.timeline, now.first)
        way = now.place - place
        self._before.go_on(self._before.left * way / max(way, way + reach - now.first))
