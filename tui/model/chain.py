"""The hash chain as rows: findable blocks below one another, runs without a branch folded."""

from bisect import bisect
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from minicache.core import events as ev
from minicache.core.events import Event
from minicache.core.views import EngineView
from minicache.sim.phrases import short_hash
from minicache.sim.run_index import RunIndex
from minicache.sim.timeline import Timeline

from ..cells import Cells
from ..signs import Sign
from .labels import Texts
from .outline import Item, Outline, Row
from .rows import ChainModel, LazyRows, Selection, TreeRow
from .touched import Key

HEAD, TAIL = 2, 1  # blocks at both ends of a run without a branch that are shown when it is folded
SHORTEST_FOLD = 3  # so many blocks are worth a fold
MANY = 500  # so many hashes that come or go are laid out anew


@dataclass(slots=True, eq=False)
class Run(Item):
    """Hashes one below the other, without a branch."""

    hashes: list[bytes] = field(default_factory=list)


class Chain:
    """The findable blocks below one another. `update` it with what moves touched, then ask for the `model`."""

    def __init__(self, timeline: Timeline, index: RunIndex, texts: Texts) -> None:
        self.timeline = timeline
        self.index = index
        self.texts = texts
        self._text: dict[bytes, str] = {}
        self._outline = Outline()
        self._runs: dict[bytes, Run] = {}  # that each findable hash is in
        self._folds: dict[Row, int] = {}  # row of a fold -> how many hashes are in it
        self._missing: set[bytes] = set()  # hashes that cannot be found, but others whose parents they are
        self._stale: set[Run] = set()  # runs whose rows are not as they should be, or not always

    def model(
        self, beat: range, view: EngineView, cells: Cells, chosen: Collection[int], found: Sequence[int] = ()
    ) -> ChainModel:
        """The rows at the end of a beat. What its last event touches and what is chosen is never folded, nor the last
        block that it `found`."""
        events = self.timeline.events[beat.start : beat.stop]
        touched = _hashes_of(events[-1] if events else None, view)
        touched += [view.hashes[block] for block in found[-1:] if block in view.hashes]
        shown = set(touched)
        if len(chosen) == 1:
            shown.update(view.hashes[block] for block in chosen if block in view.hashes)
        opened = {self._runs[hash] for hash in shown}
        for run in self._stale | opened:
            if self._runs.get(run.hashes[0]) is run:
                self._outline.set_rows(run, self._folded(run.hashes, shown))
        self._stale = opened  # to be folded again
        rows = self._outline.rows
        focus = min((self._row_of(hash) for hash in touched), default=None)
        came = (hash for event in events if isinstance(event, ev.BlocksPublished) for hash in event.hashes)
        return ChainModel(LazyRows(rows, lambda key: self._row(key, view, cells)), focus, frozenset(came))

    def _row_of(self, hash: bytes) -> int:
        """The number of the row of a hash that is not folded."""
        run = self._runs[hash]
        return self._outline.start(run) + run.rows.index(hash)

    # What hangs on what

    def update(self, touched: set[Key] | None, view: EngineView) -> None:
        """Follow the view, in which hashes that were touched may have come or gone; None: any may have."""
        changed = [h for h in touched or () if isinstance(h, bytes) and (h in self._runs) != (h in view.copies)]
        if touched is None or len(changed) > MANY:
            self._build(view)
            return
        changed.sort(key=lambda hash: self.index.hashes[hash].number)
        gone = [hash for hash in reversed(changed) if hash in self._runs]  # the end of a prompt before its beginning
        came = [hash for hash in changed if hash in view.copies]
        if not (all(self._take_out(hash) for hash in gone) and all(self._put_in(hash) for hash in came)):
            self._build(view)

    def _build(self, view: EngineView) -> None:
        """Everything anew."""
        self._outline, self._runs = Outline(), {}
        self._missing, self._stale = set(), set()
        children: dict[bytes | None, list[bytes]] = {}
        for hash in view.copies:
            parent = self.index.hashes[hash].parent
            if parent is not None and parent not in view.copies:
                self._missing.add(parent)
                parent = None
            children.setdefault(parent, []).append(hash)
        for siblings in children.values():
            if len(siblings) > 1:
                siblings.sort(key=self._order)
        pending: list[tuple[bytes, Item]] = [(hash, self._outline.root) for hash in reversed(children.get(None, []))]
        while pending:
            hash, above = pending.pop()
            run = Run([], above, hashes=[hash])
            while len(below := children.get(run.hashes[-1], [])) == 1:
                run.hashes += below
            run.rows = self._folded(run.hashes, ())
            above.below.append(run)
            self._runs.update(dict.fromkeys(run.hashes, run))
            pending += [(hash, run) for hash in reversed(below)]
        self._outline.lay_out()

    def _order(self, hash: bytes) -> tuple[int, int]:
        """Siblings stand in the order in which they were published first."""
        first = self.index.hashes[hash]
        return first.place, first.index

    def _take_out(self, hash: bytes) -> bool:
        """False if something hangs on it."""
        run = self._runs[hash]
        if run.hashes[-1] != hash or run.below:
            return False
        del self._runs[hash]
        if len(run.hashes) > 1:
            run.hashes.pop()
            self._stale.add(run)
            return True
        above = run.parent
        self._outline.remove(run)
        if isinstance(above, Run) and len(above.below) == 1:  # no branch any more
            (lower,) = above.below
            assert isinstance(lower, Run)
            self._outline.join(above)
            above.hashes += lower.hashes
            self._runs.update(dict.fromkeys(lower.hashes, above))
            self._stale.add(above)
        return True

    def _put_in(self, hash: bytes) -> bool:
        """False if what it hangs on is missing, or if something was missing it."""
        parent = self.index.hashes[hash].parent
        if hash in self._missing or (parent is not None and parent not in self._runs):
            return False
        above: Item = self._outline.root
        if parent is not None:
            above = run = self._runs[parent]
            if run.hashes[-1] != parent:
                self._cut(run, run.hashes.index(parent) + 1)
            elif not run.below:
                run.hashes.append(hash)
                self._runs[hash] = run
                self._stale.add(run)
                return True
        self._runs[hash] = new = Run([hash], hashes=[hash])
        siblings = [other.hashes[0] for other in above.below if isinstance(other, Run)]
        self._outline.add(new, above, bisect(siblings, self._order(hash), key=self._order))
        return True

    def _cut(self, run: Run, at: int) -> None:
        """There is a branch behind the first `at` hashes of a run now."""
        hashes = run.hashes[at:]
        lower = Run(self._folded(hashes, ()), hashes=hashes)
        del run.hashes[at:]
        self._outline.cut(run, self._folded(run.hashes, ()), lower)
        self._runs.update(dict.fromkeys(hashes, lower))

    # Rows

    def _folded(self, run: list[bytes], shown: Collection[bytes]) -> list[Row]:
        """The rows of a run: hashes that are shown, and folds in the place of others."""
        rows: list[Row] = []
        fold: list[bytes] = []
        for number, hash in enumerate([*run, None]):
            if hash and HEAD <= number < len(run) - TAIL and hash not in shown:
                fold.append(hash)
                continue
            if len(fold) >= SHORTEST_FOLD:
                rows.append(key := ("fold", fold[0]))
                self._folds[key] = len(fold)
            else:
                rows += fold
            fold = []
            rows += [hash] if hash else []
        return rows

    def _row(self, key: Any, view: EngineView, cells: Cells) -> TreeRow:
        folded = self._folds[key] if isinstance(key, tuple) else 0
        hash = key[1] if folded else key
        run = self._runs[hash]
        branches = self._outline.branches(run) + (False,) * run.rows.index(key)
        blocks = tuple(view.copies[hash])
        selection = Selection("block", blocks[0])
        if folded:
            return TreeRow(key, len(branches), branches, "…", (), 0, "", Sign.FINDABLE, selection, folded=folded)
        sign, sharers = cells.of_several(blocks)
        parent = self.index.hashes[hash].parent
        return TreeRow(
            hash,
            len(branches),
            branches,
            short_hash(hash)[:4],
            blocks,
            sharers,
            self.text(hash),
            sign,
            selection,
            orphan=parent is not None and parent not in view.copies,
        )

    def text(self, hash: bytes) -> str:
        """The text of the block with that hash, which is the same wherever it is."""
        if hash not in self._text:
            first = self.index.hashes[hash]
            event = self.timeline.events[first.place]
            assert isinstance(event, ev.BlocksPublished)
            size = len(event.tokens) // len(event.blocks)
            start = first.number * size
            tokens = event.tokens[first.index * size : (first.index + 1) * size]
            self._text[hash] = self.texts.of_run(tokens, event.request, start).piece(0, size)
        return self._text[hash]


def _hashes_of(event: Event | None, view: EngineView) -> list[bytes]:
    """The border of what the event touches: the first and the last of its blocks that can be found."""
    blocks = list(getattr(event, "blocks", ()))
    if isinstance(event, ev.TokensComputed):
        end = -(-(event.start + event.num_tokens) // view.block_size)
        blocks = view.tables.get(event.request, [])[event.start // view.block_size : end]
    blocks = [block for block in blocks if block in view.hashes]
    return [view.hashes[block] for block in (blocks[-1:] + blocks[:1])]
