"""A stretch of a run: a state in it, and what takes that state back as far as the stretch's first place.

    checkpoint   first              place
        ^          |<---- undo -------|

A stretch is folded from a checkpoint (`folding.py`).
"""

from collections import deque

from minicache.core.views import EngineView
from minicache.sim.timeline import Timeline

from ..cells import Cells, Saved
from .inverse import Inverse, inverse_of
from .lru import Change, Lru
from .touched import Key, touched_by

REMEMBERED = 4000  # events that can be taken back at most

Undo = tuple[Inverse | None, Saved, Change | None, tuple[Key, ...] | None]


class Stretch:
    """`view`, `cells` and `lru` at `place`. `touched` gathers the hashes and nodes that moves touch; None is all."""

    def __init__(self, timeline: Timeline, place: int, view: EngineView, cells: Cells, lru: Lru) -> None:
        self.timeline = timeline
        self.place = place
        self.view = view
        self.cells = cells
        self.lru = lru
        self.touched: set[Key] | None = None
        self._undo: deque[Undo] = deque(maxlen=REMEMBERED)

    @property
    def first(self) -> int:
        """The place before which nothing can be taken back."""
        return self.place - len(self._undo)

    def begin_here(self) -> None:
        """Forget how to take back what came before."""
        self._undo.clear()

    def forward(self, place: int) -> None:
        """Apply the events up to `place`."""
        for event in self.timeline.events[self.place + 1 : place + 1]:
            keys = touched_by(self.view, event)
            inverse = inverse_of(self.view, event)
            self.view.apply(event)
            self._undo.append((inverse, self.cells.take(event), self.lru.take(event), keys))
            self._touch(keys)
        self.place = place

    def back(self, place: int) -> None:
        """Take the events after `place` back, which is not before `first`."""
        while self.place > place:
            inverse, saved, change, keys = self._undo.pop()
            self.cells.take_back(saved)
            self.lru.take_back(change)
            if inverse is not None:
                inverse()
            self._touch(keys)
            self.place -= 1

    def follow(self, later: "Stretch") -> None:
        """Stand in for `later`, which has come back to its first place, where this one is."""
        self.cells, self.touched = later.cells, later.touched
        self.cells.view = self.view

    def _touch(self, keys: tuple[Key, ...] | None) -> None:
        if keys is None:
            self.touched = None
        elif self.touched is not None:
            self.touched.update(keys)
