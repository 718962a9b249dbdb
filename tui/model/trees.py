"""The hash chain and the radix tree as rows: what hangs on what."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from minicache.core import events as ev
from minicache.core.events import Event
from minicache.core.views import EngineView
from minicache.sim.phrases import short_hash
from minicache.sim.timeline import Timeline

from ..cells import Cells
from ..signs import Sign
from .labels import Texts
from .rows import ChainModel, Selection, TreeModel, TreeRow
from .run_index import RunIndex

HEAD, TAIL = 2, 1  # blocks at both ends of a run without a branch that are shown when it is folded
SHORTEST_FOLD = 3  # so many blocks are worth a fold
TEXT = 40  # tokens of a node whose text is shown
CHANGE_FINDABLE = (ev.BlocksPublished, ev.BlocksUnpublished, ev.BlocksEvicted, ev.CacheReset)
Children = dict[bytes | None, list[bytes]]
NEWS = (Sign.EVICTED, Sign.HIT, Sign.COMPUTED, Sign.GENERATED, Sign.PREEMPTED)


class Chain:
    """The findable blocks below one another. The order is kept while nothing is published and nothing is lost."""

    def __init__(self, timeline: Timeline, index: RunIndex, texts: Texts) -> None:
        self.timeline = timeline
        self.index = index
        self.texts = texts
        self._text: dict[bytes, str] = {}
        self._kept: dict[bytes, TreeRow] = {}  # most rows stay as they are from step to step
        self._changed: int | None = None  # the place since which the same can be found
        self._children: Children = {}
        self._orphans: set[bytes] = set()

    def model(self, place: int, view: EngineView, cells: Cells, chosen: Collection[int]) -> ChainModel:
        """The rows at a place. Runs without a branch are folded; what the event touches and what is chosen is shown."""
        changed = self._last_change(place)
        if self._changed != changed:
            self._changed = changed
            self._children, self._orphans = self._hang(view)
        touched = set(_hashes_of(self.timeline.events[place] if place >= 0 else None, view))
        shown = set(touched)
        if len(chosen) == 1:
            shown.update(view.hashes[block] for block in chosen if block in view.hashes)
        rows = list(self._rows(shown, view, cells))
        return ChainModel(rows, next((i for i, row in enumerate(rows) if row.key in touched), None))

    def _last_change(self, place: int) -> int:
        """The last event up to `place` since which other blocks can be found; -1 if there is none."""
        places = [self.timeline.previous(place + 1, kind.__name__) for kind in CHANGE_FINDABLE]
        places += [changed for changed in self.timeline.rebases if changed <= place + 1]
        return max((found for found in places if found is not None), default=-1)

    def _hang(self, view: EngineView) -> tuple[Children, set[bytes]]:
        """What hangs on each hash, in the order of publication; and the hashes whose parent cannot be found."""
        children: Children = {}
        orphans: set[bytes] = set()
        for hash in view.copies:
            parent = self.index.hashes[hash].parent
            if parent is not None and parent not in view.copies:
                orphans.add(hash)
                parent = None
            children.setdefault(parent, []).append(hash)
        for siblings in children.values():
            if len(siblings) > 1:
                siblings.sort(key=lambda hash: (self.index.hashes[hash].place, self.index.hashes[hash].index))
        return children, orphans

    def _rows(self, shown: set[bytes], view: EngineView, cells: Cells) -> Iterator[TreeRow]:
        children, orphans = self._children, self._orphans
        pending = [(hash, branches) for hash, branches in _with_branches(children.get(None, []), ())]
        while pending:
            hash, branches = pending.pop()
            run = [hash]
            while len(below := children.get(run[-1], [])) == 1:
                run.append(below[0])
            for piece in _folded(run, shown):
                if isinstance(piece, bytes):
                    yield self._row(piece, branches, piece in orphans, view, cells)
                else:
                    first = next(iter(view.copies[piece[0]]))
                    yield TreeRow(
                        ("fold", piece[0]),
                        len(branches),
                        branches,
                        "…",
                        (),
                        0,
                        "",
                        Sign.FINDABLE,
                        Selection("block", first),
                        folded=len(piece),
                    )
                branches = (*branches, False)
            pending += _with_branches(below, branches[:-1])

    def _row(self, hash: bytes, branches: tuple[bool, ...], orphan: bool, view: EngineView, cells: Cells) -> TreeRow:
        blocks = tuple(view.copies[hash])
        sign, sharers = _aggregate(blocks, cells)
        row = self._kept.get(hash)
        if (
            row is not None
            and (row.sign, row.sharers, row.orphan) == (sign, sharers, orphan)
            and (row.blocks, row.branches) == (blocks, branches)
        ):
            return row
        selection = Selection("block", blocks[0])
        label = short_hash(hash)[:4]
        row = self._kept[hash] = TreeRow(
            hash, len(branches), branches, label, blocks, sharers, self.text(hash), sign, selection, orphan=orphan
        )
        return row

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


def _with_branches(siblings: Sequence[bytes], above: tuple[bool, ...]) -> list[tuple[bytes, tuple[bool, ...]]]:
    """The siblings with their branches, last first, as a stack wants them."""
    last = len(siblings) - 1
    return [(hash, (*above, number < last)) for number, hash in reversed(list(enumerate(siblings)))]


def _folded(run: list[bytes], shown: set[bytes]) -> Iterator[bytes | list[bytes]]:
    """The run, with lists in the place of what is folded."""
    fold: list[bytes] = []
    for number, hash in enumerate(run):
        if HEAD <= number < len(run) - TAIL and hash not in shown:
            fold.append(hash)
            continue
        yield from _unless_short(fold)
        fold = []
        yield hash
    yield from _unless_short(fold)


def _unless_short(fold: list[bytes]) -> Iterable[bytes | list[bytes]]:
    return [fold] if len(fold) >= SHORTEST_FOLD else fold


def _hashes_of(event: Event | None, view: EngineView) -> list[bytes]:
    """The border of what the event touches: the first and the last of its blocks that can be found."""
    blocks = list(getattr(event, "blocks", ()))
    if isinstance(event, ev.TokensComputed):
        end = -(-(event.start + event.num_tokens) // view.block_size)
        blocks = view.tables.get(event.request, [])[event.start // view.block_size : end]
    blocks = [block for block in blocks if block in view.hashes]
    return [view.hashes[block] for block in (blocks[-1:] + blocks[:1])]


def _aggregate(blocks: Sequence[int], cells: Cells) -> tuple[Sign, int]:
    """What stands for several blocks: news before anything else, the most held of the rest; and by how many."""
    if len(blocks) == 1:
        return cells[blocks[0]], cells.sharers(blocks[0])
    sharers = max((cells.sharers(block) for block in blocks), default=0)
    signs = {cells[block] for block in blocks}
    for sign in (*NEWS, Sign.SHARED, Sign.USED):
        if sign in signs:
            return sign, sharers
    return Sign.FINDABLE, sharers


def tree_model(
    view: EngineView, cells: Cells, event: Event | None, texts: Texts, owner: Callable[[int], tuple[str, int] | None]
) -> TreeModel:
    """The radix tree at a place. `owner` says which request's token a node begins with, where that is known."""
    children: dict[int, list[int]] = {}
    for id, node in view.nodes.items():
        children.setdefault(node.parent, []).append(id)
    touched = {value for name in ("node", "upper") if (value := getattr(event, name, None))}
    touched.update(getattr(event, "nodes", ()))
    rows: list[TreeRow] = []
    pending = _nodes_with_branches(children.get(0, []), ())
    while pending:
        id, branches = pending.pop()
        node = view.nodes[id]
        sign, _ = _aggregate(node.blocks, cells)
        if sign not in NEWS:
            sign = Sign.FINDABLE if not node.locks else Sign.USED if node.locks == 1 else Sign.SHARED
        known = owner(id)
        text = texts.of_run(node.tokens, *(known or ())).piece(0, min(TEXT, len(node.tokens)))
        selection = Selection("node", id)
        rows.append(
            TreeRow(
                id, len(branches), branches, f"n{id}", node.blocks, node.locks, text, sign, selection, node.locks > 0
            )
        )
        pending += _nodes_with_branches(children.get(id, []), branches)
    return TreeModel(rows, next((i for i, row in enumerate(rows) if row.key in touched), None))


def _nodes_with_branches(siblings: Iterable[int], above: tuple[bool, ...]) -> list[tuple[int, tuple[bool, ...]]]:
    ordered = sorted(siblings, reverse=True)
    return [(id, (*above, id != ordered[0])) for id in ordered]
