"""What will be handed out next, front first: the free queue; in a radix tree behind it the leaves that can be evicted.

hash chain    · ×60 ○28 ○27 ○26                   the free queue, from its head
radix tree    · · · · | n1  n3 | n2               leaves in the strategy's order, and what becomes a leaf by that
"""

import heapq
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import groupby, islice
from typing import TYPE_CHECKING

from minicache.core.eviction import Strategy, strategy_named
from minicache.core.radix_tree import Node
from minicache.core.request import DEFAULT_NAMESPACE
from minicache.core.views import EngineView, NodeView

from ..signs import Sign
from .lru import Lru
from .rows import BeltItem, Selection

if TYPE_CHECKING:
    from .tree import Tree

Candidate = tuple[tuple[int, ...], int, int]  # a leaf as it is compared with others; last its number

FEW = 6  # so many empty blocks in a row are items of their own; more of them are one


class QueueBelt:
    """The free queue as items; `text` says what a hash stands for. Of a block that holds the same it keeps the item."""

    def __init__(self, text: Callable[[bytes], str]) -> None:
        self._text = text
        self._kept: dict[tuple[int, bytes], BeltItem] = {}

    def items(self, view: EngineView, lru: Lru) -> Iterator[BeltItem]:
        """Front first; valid until the view moves."""
        free: Iterator[int] = iter(view.free)
        if lru.empty_first:  # then nobody needs to look at each of them
            yield from _empty(free, len(view.free) - len(lru.blocks))
            free = iter(lru.blocks)
        for found, blocks in groupby(free, view.hashes.__contains__):
            if found:
                for block in blocks:
                    yield self._findable(block, view.hashes[block])
            else:
                row = list(blocks)
                yield from _empty(iter(row), len(row))

    def _findable(self, block: int, hash: bytes) -> BeltItem:
        item = self._kept.get((block, hash))
        if item is None:
            text = f'block b{block}: "{self._text(hash)}"'
            item = self._kept[block, hash] = BeltItem(f"b{block}", Sign.FINDABLE, text, Selection("block", block))
        return item


def _empty(blocks: Iterator[int], count: int) -> Iterator[BeltItem]:
    """The next `count` blocks, which hold nothing."""
    if count > FEW:
        yield BeltItem(f"×{count:,}", Sign.EMPTY, f"{count:,} empty blocks", Selection("block", next(blocks)), count)
    else:
        for block in islice(blocks, count):
            yield BeltItem(f"b{block}", Sign.EMPTY, "an empty block", Selection("block", block))


def belt_of_tree(tree: "Tree", view: EngineView, strategy: str) -> Iterator[BeltItem]:
    """Nodes in the order in which they would be evicted, one after the other; valid until the view moves."""
    leaves = tree.leaves(view, strategy).copy()  # ascending, so it is a heap
    gone: dict[int, int] = {}  # node -> of how many children
    while leaves:
        *_, id = heapq.heappop(leaves)
        yield _leaf(id, tree.text(id, view), tree.children(id) > 0)
        parent = view.nodes[id].parent
        gone[parent] = gone.get(parent, 0) + 1
        if parent and gone[parent] == tree.children(parent) and not view.nodes[parent].locks:
            heapq.heappush(leaves, candidate(parent, view.nodes[parent], strategy_named(strategy)))


@lru_cache(maxsize=1024)
def _leaf(id: int, text: str, later: bool) -> BeltItem:
    return BeltItem(f"n{id}", Sign.FINDABLE, text, Selection("node", id), later=later)


def candidate(id: int, view: NodeView, strategy: Strategy) -> Candidate:
    """As the tree compares its leaves. Nodes are numbered as they are created, so that the number says what `created`
    says: two nodes are created at the same tick only if one hangs on the other, and they are not leaves together."""
    node = Node(id, DEFAULT_NAMESPACE, array("Q"), [], None, id, view.tick, view.priority, view.hits, view.locks)
    return strategy(node), view.tick, id
