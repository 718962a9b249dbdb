"""The free blocks that can be found, in the order of the free queue. Folded event by event, and taken back.

    the free queue      · · · · · · ○28 ○27 ○26 ○3 ○9
    in here                          0   1   2   5  6       ranks: who came later has a higher one

Whoever wants to know which of ten thousand free blocks is evicted first need not pass over all that hold nothing.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from minicache.core import events as ev
from minicache.core.views import EngineView


@dataclass(slots=True)
class Change:
    """What an event did to the order: the blocks that came to its end, and those that left, with their ranks."""

    came: list[int] = field(default_factory=list)
    left: list[tuple[int, int]] = field(default_factory=list)


class Lru:
    """`take` an event when the view has taken it; `take_back` what it returned, latest first. `empty_first` says that
    in the free queue all blocks that hold nothing stand before these; False, that one has to look."""

    def __init__(self, view: EngineView, free: Iterable[int]) -> None:
        """`free` is the free queue of the view; or its beginning, if the rest is put in by `extend`."""
        self.view = view
        self.blocks = array("I")
        self._ranks = array("q")  # theirs, ascending
        self._rank: dict[int, int] = {}
        self._next = 0
        self.empty_first = True
        self.extend(free)

    def extend(self, free: Iterable[int]) -> None:
        """Put in what follows in the free queue."""
        for block in free:
            if block in self.view.hashes:
                self._append(block)
            elif self.blocks:
                self.empty_first = False

    def take(self, event: ev.Event) -> Change | None:
        """Returns what `take_back` needs; None if the order is as before."""
        match event:
            case ev.BlocksReleased():
                return self._change(came=[block for block in event.freed if block in self.view.hashes])
            case ev.BlocksAdopted() | ev.BlocksAllocated() | ev.PoolShrunk() | ev.BlocksEvicted():
                return self._change(left=event.blocks)
            case ev.BlocksUnpublished():
                self.empty_first = self.empty_first and self._rank.keys().isdisjoint(event.blocks)
                return self._change(left=event.blocks)
            case ev.CacheReset():
                return self._change(left=tuple(self.blocks))
        return None

    def take_back(self, change: Change | None) -> None:
        if change is not None:
            for block in change.came:
                self._remove(block)
            for rank, block in change.left:
                at = bisect_left(self._ranks, rank)
                self._ranks.insert(at, rank)
                self.blocks.insert(at, block)
                self._rank[block] = rank

    def _change(self, came: Iterable[int] = (), left: Iterable[int] = ()) -> Change:
        change = Change(list(came), [(self._rank[block], block) for block in left if block in self._rank])
        for _, block in change.left:
            self._remove(block)
        for block in change.came:
            self._append(block)
        return change

    def _append(self, block: int) -> None:
        self.blocks.append(block)
        self._ranks.append(self._next)
        self._rank[block] = self._next
        self._next += 1

    def _remove(self, block: int) -> None:
        at = bisect_left(self._ranks, self._rank.pop(block))
        del self._ranks[at], self.blocks[at]
