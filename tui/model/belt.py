"""What will be handed out next, front first: the free queue; in a radix tree behind it the leaves that can be evicted.

hash chain    · · · · ○28 ○27 ○26                 the free queue, from its head
radix tree    · · · · | n1  n3 | n2               leaves in the strategy's order, and what becomes a leaf by that
"""

import heapq
from array import array
from collections.abc import Callable, Iterator

from minicache.core.eviction import Strategy
from minicache.core.radix_tree import Node
from minicache.core.request import DEFAULT_NAMESPACE
from minicache.core.views import EngineView, NodeView

from ..cells import Cells
from ..signs import Sign
from .rows import BeltItem, Selection

FEW = 6  # empty blocks in a row that are told one by one; of more, the rest is one item


def belt_of_queue(view: EngineView, cells: Cells, limit: int, text: Callable[[int], str]) -> Iterator[BeltItem]:
    """At most `limit` items of the free queue; `text` says what a findable block holds."""
    count = 0
    empty: list[int] = []
    for block in view.free:
        if count >= limit:
            break
        if not cells.holds_findable(block):
            empty.append(block)
            if len(empty) <= FEW:
                yield _empty([block])
                count += 1
            continue
        if len(empty) > FEW:
            yield _empty(empty[FEW:])
        empty = []
        yield BeltItem(str(block), (block,), Sign.FINDABLE, text(block), Selection("block", block))
        count += 1
    if len(empty) > FEW:
        yield _empty(empty[FEW:])


def _empty(blocks: list[int]) -> BeltItem:
    what = "an empty block" if len(blocks) == 1 else f"{len(blocks):,} empty blocks"
    label = str(blocks[0]) if len(blocks) == 1 else f"+{len(blocks):,}"
    return BeltItem(label, tuple(blocks), Sign.EMPTY, what, Selection("block", blocks[0]), len(blocks))


def belt_of_tree(view: EngineView, strategy: Strategy, limit: int, text: Callable[[int], str]) -> Iterator[BeltItem]:
    """At most `limit` nodes in the order in which they would be evicted, one after the other."""
    children: dict[int, int] = {}
    for node in view.nodes.values():
        children[node.parent] = children.get(node.parent, 0) + 1
    leaves = [
        _candidate(id, node, strategy) for id, node in view.nodes.items() if not node.locks and not children.get(id)
    ]
    first = {id for *_, id in leaves}
    heapq.heapify(leaves)
    for _ in range(limit):
        if not leaves:
            return
        *_, id = heapq.heappop(leaves)
        node = view.nodes[id]
        yield BeltItem(f"n{id}", node.blocks, Sign.FINDABLE, text(id), Selection("node", id), later=id not in first)
        parent = node.parent
        children[parent] -= 1
        if parent and not children[parent] and not view.nodes[parent].locks:
            heapq.heappush(leaves, _candidate(parent, view.nodes[parent], strategy))


def _candidate(id: int, view: NodeView, strategy: Strategy) -> tuple[tuple[int, ...], int, int]:
    """As the tree compares its leaves. Nodes are numbered as they are created, so that the number says what `created`
    says: two nodes are created at the same tick only if one hangs on the other, and they are not leaves together."""
    node = Node(id, DEFAULT_NAMESPACE, array("Q"), [], None, id, view.tick, view.priority, view.hits, view.locks)
    return strategy(node), view.tick, id
