"""The cell of every block: its sign, and how many requests share it. Folded event by event, and taken back.

    what it is      empty | findable | used | shared       from block tables and from what can be found
    what is new     hit | computed | generated | evicted | preempted, from the beginning of the step on

What is new goes before what it is, until the next step begins or the block is given back.
"""
# ruff: noqa: N802 - a handler carries the name of its event type

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from minicache.core import events as ev
from minicache.core.block_pool import NULL_BLOCK
from minicache.core.views import EngineView

from .signs import MEANINGS, NEWS, Sign

CODES: tuple[Sign, ...] = tuple(Sign)  # what a code stands for
CODE = {sign: code for code, sign in enumerate(CODES)}
EMPTY, FINDABLE, USED, SHARED = (CODE[sign] for sign in (Sign.EMPTY, Sign.FINDABLE, Sign.USED, Sign.SHARED))
NULL = CODE[Sign.NULL]
NEVER = 2  # whether a block can be found, if it is never handed out: the null block, and removed ones

Saved = list[tuple[int, int, int, int]]  # block, its holders, whether it can be found, its news


class Counts(NamedTuple):
    """Blocks that requests hold; of the others, those that can be found, and those that hold nothing that can."""

    used: int
    cached: int
    empty: int


class Cells:
    """Indexed by block. `take` an event when the view has taken it; `take_back` what it returned, latest first."""

    def __init__(self, view: EngineView) -> None:
        self.view = view
        self._holders = array("I", bytes(4 * view.num_blocks))
        self._findable = bytearray(view.num_blocks)  # 0, 1, or NEVER: not in the pool
        self._news = bytearray(view.num_blocks)  # a code; 0 is none
        self._fresh: set[int] = set()  # blocks with news
        self._touched: dict[int, tuple[int, int]] = {}
        for table in view.tables.values():
            for block in table:
                if block not in view.free:  # a duplicate that is freed stays in its table for one event more
                    self._holders[block] += 1
        for block in chain(view.hashes, *(node.blocks for node in view.nodes.values())):
            self._findable[block] = True
        for block in (NULL_BLOCK, *view.removed):
            self._findable[block] = NEVER
        self.codes = self._findable.translate(bytes([EMPTY, FINDABLE, NULL]).ljust(256))
        for block in set(chain.from_iterable(view.tables.values())):
            self.codes[block] = self._what(block)
        self._totals = [self.codes.count(code) for code in range(len(CODES))]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, block: int) -> Sign:
        return CODES[self.codes[block]]

    def sharers(self, block: int) -> int:
        """By how many requests the block is held."""
        return self._holders[block]

    def of_several(self, blocks: Sequence[int]) -> tuple[Sign, int]:
        """What stands for several blocks: news before anything else, the most held of the rest; and by how many."""
        if len(blocks) == 1:
            return self[blocks[0]], self._holders[blocks[0]]
        signs = {self[block] for block in blocks}
        sharers = max((self._holders[block] for block in blocks), default=0)
        return next((sign for sign in (*NEWS, Sign.SHARED, Sign.USED) if sign in signs), Sign.FINDABLE), sharers

    def counts(self) -> Counts:
        totals = self._totals
        return Counts(totals[USED] + totals[SHARED], totals[FINDABLE], totals[EMPTY])

    def describe(self, block: int) -> str:
        """The block in a few words."""
        if block in self.view.removed:
            return f"block b{block}: taken out of the pool"
        holders = self._holders[block]
        if holders > 1 and self[block] is Sign.SHARED:
            return f"block b{block}: in use by {holders} requests"
        return f"block b{block}: {MEANINGS[self[block]]}"

    # Changes

    def begin(self) -> None:
        """From here on, remember which cells change."""
        self._touched = {}

    def changed(self) -> frozenset[int]:
        """The blocks whose cell is another one than when `begin` was called."""
        codes, holders = self.codes, self._holders
        return frozenset(b for b, was in self._touched.items() if was != (codes[b], holders[b]))

    def differing(self, other: "Cells") -> frozenset[int] | None:
        """The blocks whose cell is another one in `other`; None if the pools are of different sizes."""
        if len(self) != len(other):
            return None
        if self.codes == other.codes and self._holders == other._holders:
            return frozenset()
        ours = zip(self.codes, self._holders, strict=True)
        theirs = zip(other.codes, other._holders, strict=True)
        return frozenset(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)

    def _what(self, block: int) -> int:
        holders = self._holders[block]
        if holders:
            return USED if holders == 1 else SHARED
        return (EMPTY, FINDABLE, NULL)[self._findable[block]]

    def _set(self, block: int, holders: int, findable: int, news: int) -> None:
        if block not in self._touched:
            self._touched[block] = self.codes[block], self._holders[block]
        self._totals[self._what(block)] -= 1
        self._holders[block], self._findable[block], self._news[block] = holders, findable, news
        what = self._what(block)
        self._totals[what] += 1
        self.codes[block] = news or what
        if news:
            self._fresh.add(block)
        else:
            self._fresh.discard(block)

    def _put(
        self, saved: Saved, blocks: Iterable[int], hold: int = 0, findable: int | None = None, news: int | None = None
    ) -> None:
        """Change the blocks: `hold` more holders, findable or not, with these news; None leaves it as it is."""
        for block in blocks:
            holders, found, new = self._holders[block], self._findable[block], self._news[block]
            saved.append((block, holders, found, new))
            self._set(block, holders + hold, found if findable is None else findable, new if news is None else news)

    def take(self, event: ev.Event) -> Saved:
        """Follow the view, which has taken the event. Returns what `take_back` needs."""
        saved: Saved = []
        handler: Callable[[Cells, Any, Saved], None] | None = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event, saved)
        return saved

    def take_back(self, saved: Saved) -> None:
        for block, holders, findable, news in reversed(saved):
            self._set(block, holders, findable, news)

    # Events

    def on_StepStarted(self, event: ev.StepStarted, saved: Saved) -> None:
        self._put(saved, sorted(self._fresh), news=0)

    def on_BlocksAdopted(self, event: ev.BlocksAdopted, saved: Saved) -> None:
        self._put(saved, event.blocks, hold=1, news=CODE[Sign.HIT])

    def on_BlocksAllocated(self, event: ev.BlocksAllocated, saved: Saved) -> None:
        gone = CODE[Sign.EVICTED]
        self._put(saved, (b for b in event.blocks if self._news[b] == gone), hold=1)
        self._put(saved, (b for b in event.blocks if self._news[b] != gone), hold=1, news=0)

    def on_TokensComputed(self, event: ev.TokensComputed, saved: Saved) -> None:
        size = self.view.block_size
        end = event.start + event.num_tokens
        prompt = self.view.requests[event.request].num_prompt_tokens
        blocks = self.view.tables.get(event.request, [])[event.start // size : -(-end // size)]
        of_prompt = -(-min(end, prompt) // size) - event.start // size if event.start < prompt else 0
        self._put(saved, blocks[:of_prompt], news=CODE[Sign.COMPUTED])
        self._put(saved, blocks[of_prompt:], news=CODE[Sign.GENERATED])

    def on_BlocksPublished(self, event: ev.BlocksPublished, saved: Saved) -> None:
        self._put(saved, event.blocks, findable=1)

    def on_BlocksUnpublished(self, event: ev.BlocksUnpublished, saved: Saved) -> None:
        self._put(saved, event.blocks, findable=0)

    def on_BlocksEvicted(self, event: ev.BlocksEvicted | ev.NodesEvicted, saved: Saved) -> None:
        self._put(saved, event.blocks, findable=0, news=CODE[Sign.EVICTED])

    def on_CacheReset(self, event: ev.CacheReset, saved: Saved) -> None:
        findable = [block for block, found in enumerate(self._findable) if found == 1]
        self._put(saved, findable, findable=0, news=CODE[Sign.EVICTED])

    def on_PoolShrunk(self, event: ev.PoolShrunk, saved: Saved) -> None:
        self._put(saved, event.blocks, findable=NEVER, news=0)

    def on_BlocksReleased(self, event: ev.BlocksReleased, saved: Saved) -> None:
        request = self.view.requests.get(event.request)
        news = CODE[Sign.PREEMPTED] if request is not None and request.status == "preempted" else 0
        last = [block for block in event.blocks if self._holders[block] == 1]
        self._put(saved, (block for block in event.blocks if self._holders[block] > 1), hold=-1)
        self._put(saved, last, hold=-1, news=news)

    def on_BlockTableRewritten(self, event: ev.BlockTableRewritten, saved: Saved) -> None:
        """What stood there before were the duplicates, which `on_DuplicatesFreed` has let go."""
        self._put(saved, event.blocks, hold=1)

    def on_DuplicatesFreed(self, event: ev.DuplicatesFreed, saved: Saved) -> None:
        self._put(saved, event.blocks, hold=-1, news=0)


_HANDLERS: dict[type[ev.Event], Callable[..., None]] = {
    ev.StepStarted: Cells.on_StepStarted,
    ev.BlocksAdopted: Cells.on_BlocksAdopted,
    ev.BlocksAllocated: Cells.on_BlocksAllocated,
    ev.TokensComputed: Cells.on_TokensComputed,
    ev.BlocksPublished: Cells.on_BlocksPublished,
    ev.BlocksUnpublished: Cells.on_BlocksUnpublished,
    ev.BlocksEvicted: Cells.on_BlocksEvicted,
    ev.NodesEvicted: Cells.on_BlocksEvicted,
    ev.CacheReset: Cells.on_CacheReset,
    ev.PoolShrunk: Cells.on_PoolShrunk,
    ev.BlocksReleased: Cells.on_BlocksReleased,
    ev.BlockTableRewritten: Cells.on_BlockTableRewritten,
    ev.DuplicatesFreed: Cells.on_DuplicatesFreed,
}
