"""Folding a stretch of a run from a checkpoint, in pieces, so that it can be done bit by bit beside something else.

    checkpoint     a step begins             end
        ^ - - quiet - - |<------ undo --------|

A stretch begins where a step does, for what is new in a step is known only by who saw the step begin.
"""

from collections.abc import Iterator

from minicache.core.views import EngineView
from minicache.sim.checkpoint import PIECE
from minicache.sim.timeline import Timeline

from ..cells import Cells
from .lru import Lru
from .stretch import Stretch

BEHIND = 1000  # events that a new stretch can take back at least, if the run is so long
HEAVY = 10  # events: as much work as putting back a piece of a checkpoint
CELLS = 100  # and as much as finding out what every cell is


class Folding:
    """The stretch that ends at `end`, in the making. `left` is the work still to be done, about, in events."""

    def __init__(self, timeline: Timeline, end: int) -> None:
        self.timeline = timeline
        self.end = end
        self._pool = pool_start(timeline, end)
        begun = timeline.previous(end - BEHIND + 1, "StepStarted")
        index = timeline.checkpoint_before(max(self._pool, -1 if begun is None else begun - 1) + 1)
        self._start, self._checkpoint = timeline.checkpoint_at(index)
        num_pieces = self._checkpoint.num_pieces + len(self._checkpoint.free) // PIECE
        self.left = HEAVY * num_pieces + CELLS + end - self._start
        self._pieces = self._fold()
        self._stretch: Stretch | None = None

    def go_on(self, work: float) -> None:
        """Do about so much work, as long as there is some left."""
        while work > 0 and self._stretch is None:
            done = next(self._pieces, 0)
            self.left -= done
            work -= done

    def finished(self) -> Stretch:
        """The stretch, with all the work done that is left."""
        while self._stretch is None:
            next(self._pieces, None)
        return self._stretch

    def _fold(self) -> Iterator[int]:
        """Yields after each piece how much work it was."""
        timeline, start = self.timeline, self._start
        view = EngineView(1, self._checkpoint.block_size)
        for _ in self._checkpoint.filling(view):
            yield HEAVY
        cells = Cells(view)
        yield CELLS
        lru, free = Lru(view, ()), self._checkpoint.free
        for begin in range(0, len(free), PIECE):
            lru.extend(free[begin : begin + PIECE])
            yield HEAVY
        stretch = Stretch(timeline, start, view, cells, lru)
        step = timeline.next(start, "StepStarted")
        for place in range(start + 1, self.end + 1):
            stretch.forward(place)
            if place == step and start != self._pool:
                stretch.begin_here()
            yield 1
        self._stretch = stretch


def pool_start(timeline: Timeline, place: int) -> int:
    """Where the pool that there is at `place` was empty."""
    replaced = timeline.previous(place + 1, "PoolReplaced")
    return -1 if replaced is None else replaced
