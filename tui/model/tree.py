"""The radix tree as rows, and the order in which its leaves will go."""

from bisect import bisect, bisect_left, insort
from collections.abc import Callable, Sequence
from typing import Any

from minicache.core import events as ev
from minicache.core.events import Event
from minicache.core.eviction import strategy_named
from minicache.core.views import ROOT, EngineView

from ..cells import Cells
from ..signs import NEWS, Sign
from .belt import Candidate, candidate
from .labels import Texts
from .outline import Item, Outline
from .rows import LazyRows, Selection, TreeModel, TreeRow
from .touched import Key

TEXT = 40  # tokens of a node whose text is shown
MANY = 300  # so many nodes that were touched are laid out anew

Owner = Callable[[int], tuple[str, int] | None]  # of a node: which request's tokens it holds, from which of them on


class Tree:
    """Nodes below one another. `update` it with what moves touched, then ask for what you need."""

    def __init__(self, texts: Texts, owner: Owner) -> None:
        self.texts = texts
        self.owner = owner
        self._outline = Outline()
        self._items = {ROOT: self._outline.root}
        self._texts: dict[int, tuple[tuple[int, ...], str]] = {}  # node -> its tokens, and what they say
        self._strategy = ""
        self._order: list[Candidate] = []  # leaves that can go
        self._places: dict[int, Candidate] = {}  # where in the order a leaf stands

    def model(self, events: Sequence[Event], view: EngineView, cells: Cells) -> TreeModel:
        """The rows after the events of a beat."""
        event = events[-1] if events else None
        touched = {value for name in ("node", "upper") if (value := getattr(event, name, None))}
        touched.update(getattr(event, "nodes", ()))
        rows = self._outline.rows
        focus = min((self._outline.start(self._items[id]) for id in touched if id in self._items), default=None)
        came = {event.node for event in events if isinstance(event, ev.BlocksPublished)}
        came |= {event.upper for event in events if isinstance(event, ev.NodeSplit)}
        return TreeModel(LazyRows(rows, lambda id: self._row(id, view, cells)), focus, frozenset(came))

    def leaves(self, view: EngineView, strategy: str) -> list[Candidate]:
        """The leaves that nobody locks, in the order in which they would be evicted."""
        if strategy != self._strategy:
            self._strategy = strategy
            self._put_in_order(view)
        return self._order

    def children(self, id: int) -> int:
        """How many nodes hang on a node."""
        return len(self._items[id].below)

    # What hangs on what

    def update(self, touched: set[Key] | None, view: EngineView) -> None:
        """Follow the view, in which nodes that were touched may be others, elsewhere or gone; None: any may."""
        nodes = [id for id in touched or () if isinstance(id, int)]
        if touched is None or len(nodes) > MANY:
            self._build(view)
            self._put_in_order(view)
            return
        self._move(nodes, view)
        for id in nodes:
            self._put_in_place(id, view)

    def _build(self, view: EngineView) -> None:
        self._outline = Outline()
        self._items = {id: Item([id]) for id in view.nodes} | {ROOT: self._outline.root}
        for id in sorted(view.nodes):
            item = self._items[id]
            item.parent = above = self._above(id, view)
            above.below.append(item)
        self._outline.lay_out()

    def _above(self, id: int, view: EngineView) -> Item:
        """What a node hangs on."""
        return self._items[view.nodes[id].parent]

    def _move(self, nodes: list[int], view: EngineView) -> None:
        """Take out what is gone or hangs elsewhere now; hang what is new or was moved where it belongs."""
        away: dict[int, Item] = {}
        for id in nodes:
            node, item = view.nodes.get(id), self._items.get(id)
            if node is None or item is None or item.parent is not self._items.get(node.parent):
                away[id] = item or Item([id])
        there = [item for id, item in away.items() if id in self._items]
        for item in sorted(there, key=lambda item: len(self._outline.branches(item)), reverse=True):  # from below
            self._outline.remove(item)
        for id in away:
            if id not in view.nodes:
                self._items.pop(id, None)
        for id in sorted(away, key=lambda id: _depth(view, id)):
            if id in view.nodes:
                self._items[id] = away[id]
                above = self._above(id, view)
                siblings = [other.rows[0] for other in above.below]
                self._outline.add(away[id], above, bisect(siblings, id))  # type: ignore[type-var]

    # Who goes first

    def _put_in_order(self, view: EngineView) -> None:
        self._order, self._places = [], {}
        for id in view.nodes if self._strategy else ():
            self._put_in_place(id, view)

    def _put_in_place(self, id: int, view: EngineView) -> None:
        before = self._places.pop(id, None)
        if before is not None:
            del self._order[bisect_left(self._order, before)]
        node = view.nodes.get(id)
        if self._strategy and node is not None and not node.locks and not self._items[id].below:
            self._places[id] = place = candidate(id, node, strategy_named(self._strategy))
            insort(self._order, place)

    # Rows

    def _row(self, id: Any, view: EngineView, cells: Cells) -> TreeRow:
        node = view.nodes[id]
        branches = self._outline.branches(self._items[id])
        sign, _ = cells.of_several(node.blocks)
        if sign not in NEWS:
            sign = Sign.FINDABLE if not node.locks else Sign.USED if node.locks == 1 else Sign.SHARED
        selection, locked = Selection("node", id), node.locks > 0
        text = self.text(id, view)
        return TreeRow(id, len(branches), branches, f"n{id}", node.blocks, node.locks, text, sign, selection, locked)

    def text(self, id: int, view: EngineView) -> str:
        """What the first tokens of a node say."""
        tokens = view.nodes[id].tokens
        known = self._texts.get(id)
        if known is None or known[0] is not tokens:  # after a split it has other tokens
            run = self.texts.of_run(tokens, *(self.owner(id) or ()))
            known = self._texts[id] = tokens, run.piece(0, min(TEXT, len(tokens)))
        return known[1]


def _depth(view: EngineView, id: int) -> int:
    depth = 0
    while id in view.nodes:
        id = view.nodes[id].parent
        depth += 1
    return depth
