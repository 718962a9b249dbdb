"""What will be handed out next, front first: the free queue; in a radix tree behind it the leaves that can be evicted.

hash chain    · · · · ○28 ○27 ○26                 the free queue, from its head
radix tree    · · · · | n1  n3 | n2               leaves in the strategy's order, and what becomes a leaf by that
"""

import heapq
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from minicache.core.eviction import Strategy, strategy_named
from minicache.core.radix_tree import Node
from minicache.core.request import DEFAULT_NAMESPACE
from minicache.core.views import EngineView, NodeView

from ..cells import Cells
from ..signs import Sign
from .rows import BeltItem, Selection

if TYPE_CHECKING:
    from .tree import Tree

Candidate = tuple[tuple[int, ...], int, int]  # a leaf as it is compared with others; last its number

FEW = 6  # empty blocks in a row that are told one by one; of more, the rest is one item


class QueueBelt:
    """The free queue as items; `text` says what a hash stands for. Of a block that holds the same it keeps the item."""

    def __init__(self, text: Callable[[bytes], str]) -> None:
        self._text = text
        self._kept: dict[tuple[int, bytes], BeltItem] = {}

    def items(self, view: EngineView, cells: Cells, limit: int) -> list[BeltItem]:
        """At most so many, front first."""
        empty = cells.counts().empty
        free = tuple(islice(view.free, limit + empty))  # so many of which are empty at most
        in_front = view.hashes.keys().isdisjoint(free[:empty])  # all that are empty, as it nearly always is
        findable = b"\0" * empty + b"\1" * limit if in_front else cells.findable(free)
        return list(islice(self._items(free, findable, view), limit))

    def _items(self, free: tuple[int, ...], findable: bytes, view: EngineView) -> Iterator[BeltItem]:
        at = 0
        while at < len(free):
            if findable[at]:
                yield self._findable(free[at], view.hashes[free[at]])
                at += 1
                continue
            end = min(findable.find(1, at) % (len(findable) + 1), len(free))  # -1 is the end
            few = min(at + FEW, end)
            yield from (_empty(free[number : number + 1]) for number in range(at, few))
            if few < end:
                yield _empty(free[few:end])
            at = end

    def _findable(self, block: int, hash: bytes) -> BeltItem:
        item = self._kept.get((block, hash))
        if item is None:
            text = f'block b{block}: "{self._text(hash)}"'
            item = BeltItem(f"b{block}", (block,), Sign.FINDABLE, text, Selection("block", block))
            self._kept[block, hash] = item
        return item


def _empty(blocks: tuple[int, ...]) -> BeltItem:
    what = "an empty block" if len(blocks) == 1 else f"{len(blocks):,} empty blocks"
    label = f"b{blocks[0]}" if len(blocks) == 1 else f"+{len(blocks):,}"
    return BeltItem(label, blocks, Sign.EMPTY, what, Selection("block", blocks[0]), len(blocks))


def belt_of_tree(tree: "Tree", view: EngineView, strategy: str, limit: int) -> Iterator[BeltItem]:
    """At most `limit` nodes in the order in which they would be evicted, one after the other."""
    leaves = tree.leaves(view, strategy)[:limit]  # ascending, so it is a heap
    first = {id for *_, id in leaves}
    gone: dict[int, int] = {}  # node -> of how many children
    while leaves and limit:
        limit -= 1
        *_, id = heapq.heappop(leaves)
        node = view.nodes[id]
        yield _leaf(id, node.blocks, tree.text(id, view), id not in first)
        parent = node.parent
        gone[parent] = gone.get(parent, 0) + 1
        if parent and gone[parent] == tree.children(parent) and not view.nodes[parent].locks:
            heapq.heappush(leaves, candidate(parent, view.nodes[parent], strategy_named(strategy)))


@lru_cache(maxsize=1024)
def _leaf(id: int, blocks: tuple[int, ...], text: str, later: bool) -> BeltItem:
    return BeltItem(f"n{id}", blocks, Sign.FINDABLE, text, Selection("node", id), later=later)


def candidate(id: int, view: NodeView, strategy: Strategy) -> Candidate:
    """As the tree compares its leaves. Nodes are numbered as they are created, so that the number says what `created`
    says: two nodes are created at the same tick only if one hangs on the other, and they are not leaves together."""
    node = Node(id, DEFAULT_NAMESPACE, array("Q"), [], None, id, view.tick, view.priority, view.hits, view.locks)
    return strategy(node), view.tick, id
