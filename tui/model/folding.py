"""Folding a stretch of a run from a checkpoint, in pieces, so that it can be done bit by bit beside something else.

    checkpoint     a step begins             end
        ^ - - quiet - - |<------ undo --------|

A stretch begins where a step does, for what is new in a step is known only by who saw the step begin.
"""

from array import array
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from minicache.core.block_pool import FreeQueue
from minicache.core.views import NodeView
from minicache.sim.timeline import Timeline

from .stretch import Stretch

BEHIND = 1000  # events that a new stretch can take back at least, if the run is so long
PIECE = 500  # blocks or nodes of a checkpoint that are put back at a time
HEAVY = 30  # which is as much work as so many events


class Folding:
    """The stretch that ends at `end`, in the making. `left` is the work still to be done, about, in events."""

    def __init__(self, timeline: Timeline, end: int) -> None:
        self.timeline = timeline
        self.end = end
        self._pool = pool_start(timeline, end)
        begun = timeline.previous(end - BEHIND + 1, "StepStarted")
        index = timeline.checkpoint_before(max(self._pool, -1 if begun is None else begun - 1) + 1)
        self._start, self._checkpoint = timeline.checkpoint_at(index)
        entries = len(self._checkpoint.hashed) + len(self._checkpoint.nodes)
        self.left = HEAVY * (4 + entries // PIECE) + end - self._start
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
        checkpoint = self._checkpoint
        view = replace(checkpoint, num_blocks=1, free=array("I"), hashed=array("I"), hashes=[], nodes={}).restore()
        yield HEAVY
        view.num_blocks, view.free = checkpoint.num_blocks, FreeQueue(checkpoint.free)
        yield HEAVY
        found = zip(checkpoint.hashed, checkpoint.hashes, strict=True)
        while piece := dict(islice(found, PIECE)):
            view.hashes.update(piece)
            for block, hash in piece.items():
                view.copies.setdefault(hash, {})[block] = None
            yield HEAVY
        nodes = iter(checkpoint.nodes.items())
        while some := dict(islice(nodes, PIECE)):
            view.nodes.update((id, NodeView(*fields)) for id, fields in some.items())
            yield HEAVY
        stretch = Stretch(timeline, start, view)
        yield HEAVY
        step = timeline.next(start, "StepStarted")
        for place in range(start + 1, self.end + 1):
            stretch.forward(place)
            if place == step and start != self._pool:
                stretch.begin_here()
            yield 1
        self._stretch = stretch


def pool_start(timeline: Timeline, place: int) -> int:
    """Where the pool that there is at `place` was empty."""
    return max((changed - 1 for changed in timeline.rebases if changed <= place + 1), default=-1)
