"""SGLang's radix tree: cached token runs that share nodes as far as they agree.

Every node holds a run of tokens and the blocks with their KV; the tokens on the path from the root to a node are a
cached prefix. Where two prefixes diverge inside a node, the node is split. Token runs are whole blocks: with
`block_size` B a node holds a multiple of B tokens, and a difference inside a block makes the whole block different.

The tree is a data structure: it knows neither requests nor the pool. Its methods return what they did. Source: SGLang
0.5.23, `sglang/srt/mem_cache/radix_cache.py`.
"""

import heapq
from array import array
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from minicache.core.errors import CorruptState, InvalidArgument, require_int
from minicache.core.eviction import strategy_named
from minicache.core.request import DEFAULT_NAMESPACE, Namespace
from minicache.core.runs import common_prefix


@dataclass(slots=True, eq=False)
class Node:
    """`tokens` are this node's own part of the path, and `blocks` the ids of the blocks that hold their KV.

    `lock_count` counts the locks at or below the node. `last_access` and `created` are ticks of the tree. `hit_count`
    counts the requests whose insertions reached the end of this node.
    """

    id: int
    namespace: Namespace
    tokens: "array[int]"
    blocks: list[int]
    parent: "Node | None"
    created: int
    last_access: int
    priority: int = 0
    hit_count: int = 0
    lock_count: int = 0
    children: "dict[Hashable, Node]" = field(default_factory=dict)

    def path(self) -> "Iterator[Node]":
        """This node and its ancestors, bottom up, without the root."""
        node: Node = self
        while node.parent is not None:
            yield node
            node = node.parent


class Split(NamedTuple):
    """`node` was cut after its first `at` tokens. The new node `upper` holds these, and is the parent of `node` now."""

    node: Node
    upper: Node
    at: int


class TreeMatch(NamedTuple):
    """The longest cached prefix: its last `node`, its `blocks`, the `split` that made it end at a node, if it needed
    one, and the `tick` of this call."""

    node: Node
    blocks: list[int]
    split: Split | None
    tick: int


class Insertion(NamedTuple):
    """The first `num_shared` blocks of the run were in the tree before; the new `leaf` holds the others, if there were
    others. The run ends at `node`. `split` and `tick` are as in `TreeMatch`."""

    node: Node
    num_shared: int
    leaf: Node | None
    split: Split | None
    tick: int


class RadixTree:
    """A tree of token runs in whole blocks. `strategy` is the order in which unlocked leaves are evicted
    (`eviction.py`).

    Sizes are in blocks: `num_protected` counts the blocks of nodes with a lock at or below them, `num_evictable` all
    others. `tick` counts the calls of `match` and `insert`: recency is this counter, never a clock.
    """

    def __init__(self, block_size: int = 1, strategy: str = "lru") -> None:
        self.block_size = require_int("block_size", block_size, 1)
        self.set_strategy(strategy)
        self.clear()

    def set_strategy(self, strategy: str) -> None:
        """Evict in another order from now on; raises `InvalidArgument` for a name that `eviction.py` does not have."""
        self.eviction_key = strategy_named(strategy)
        self.strategy = strategy

    def clear(self) -> None:
        """Forget everything, locks included."""
        self.root = Node(0, DEFAULT_NAMESPACE, array("Q"), [], None, 0, 0)
        self.num_evictable = 0
        self.num_protected = 0
        self.tick = 0
        self._next_id = 1
        self._evictable_leaves: dict[int, Node] = {}

    @property
    def num_blocks(self) -> int:
        return self.num_evictable + self.num_protected

    def match(self, namespace: Namespace, tokens: "array[int]", limit: int | None = None) -> TreeMatch:
        """Find the longest cached prefix of the first `limit` tokens (`None`: of all), in whole blocks.

        Not pure: it refreshes every node on the path. If the match ends inside a node, it refreshes that node too and
        splits it there, so that the match ends at a node. It never changes what can be found. The result is valid until
        `clear`, or until `evict` while its node is not locked.
        """
        self.tick += 1
        end = len(tokens) if limit is None else min(limit, len(tokens))
        node, _, split = self._walk(namespace, tokens, end)
        return TreeMatch(node, self.path_blocks(node), split, self.tick)

    def insert(
        self,
        namespace: Namespace,
        tokens: "array[int]",
        blocks: list[int],
        priority: int = 0,
        num_inserted: int = 0,
        *,
        below: Node | None = None,
    ) -> Insertion:
        """Add a run of whole blocks: `blocks[i]` holds the KV of the `i`-th block of `tokens`.

        For tokens that are in the tree already, the tree keeps its own blocks and the caller still owns its copies. The
        tree owns the blocks of the new leaf. Every node on the path is refreshed and raised to at least `priority`. A
        node counts one more hit if it ends after the first `num_inserted` tokens, those that the same request has
        inserted before: a request counts once in each node. `below`, if given, is a node whose path is known to agree
        with the beginning of `tokens`; the walk starts there.

        Raises `InvalidArgument`, with nothing changed, if `tokens` are not whole blocks or `blocks` are too few.
        """
        if len(tokens) % self.block_size:
            raise InvalidArgument(f"tokens: {len(tokens)} tokens are not whole blocks of {self.block_size}")
        if len(tokens) > len(blocks) * self.block_size:
            raise InvalidArgument(f"blocks: {len(blocks)} blocks are too few for {len(tokens)} tokens")
        self.tick += 1
        node, matched, split = self._walk(namespace, tokens, len(tokens), below)
        leaf = None
        if matched < len(tokens):
            first, last = matched // self.block_size, len(tokens) // self.block_size
            leaf = self._new_node(namespace, tokens[matched:], blocks[first:last], node, priority)
            node.children[self._child_key(node, namespace, tokens, matched)] = leaf
            self._evictable_leaves.pop(node.id, None)
            self._evictable_leaves[leaf.id] = leaf
            self.num_evictable += len(leaf.blocks)
            node = leaf
        end = len(tokens)
        for step in node.path():
            step.priority = max(step.priority, priority)
            step.hit_count += end > num_inserted
            end -= len(step.tokens)
        return Insertion(node, matched // self.block_size, leaf, split, self.tick)

    def _walk(
        self, namespace: Namespace, tokens: "array[int]", end: int, below: Node | None = None
    ) -> tuple[Node, int, Split | None]:
        """Walk down along `tokens[:end]` from `below` (`None`: the root). Returns the last node, the number of tokens
        matched, and the split at the end, if one was necessary."""
        node, matched = below or self.root, 0
        for step in node.path():
            step.last_access = self.tick
            matched += len(step.tokens)
        while matched + self.block_size <= end:
            child = node.children.get(self._child_key(node, namespace, tokens, matched))
            if child is None:
                break
            child.last_access = self.tick
            common = common_prefix(child.tokens, tokens, matched, end, self.block_size)
            matched += common
            if common < len(child.tokens):
                split = self._split(child, common)
                return split.upper, matched, split
            node = child
        return node, matched, None

    def _child_key(self, parent: Node, namespace: Namespace, tokens: "array[int]", start: int) -> Hashable:
        """The key of a child in `parent.children`: its first block, and under the root its namespace too."""
        first = tokens[start] if self.block_size == 1 else tokens[start : start + self.block_size].tobytes()
        return (namespace, first) if parent is self.root else first

    def _split(self, node: Node, at: int) -> Split:
        """Cut `node` after `at` tokens. It stays the same object as the lower part, so locks on it stay valid."""
        parent, blocks_at = node.parent, at // self.block_size
        assert parent is not None
        upper = self._new_node(node.namespace, node.tokens[:at], node.blocks[:blocks_at], parent, node.priority)
        upper.hit_count, upper.lock_count = node.hit_count, node.lock_count
        parent.children[self._child_key(parent, node.namespace, node.tokens, 0)] = upper
        upper.children[self._child_key(upper, node.namespace, node.tokens, at)] = node
        node.parent, node.tokens, node.blocks = upper, node.tokens[at:], node.blocks[blocks_at:]
        return Split(node, upper, at)

    def _new_node(
        self, namespace: Namespace, tokens: "array[int]", blocks: list[int], parent: Node, priority: int
    ) -> Node:
        node = Node(self._next_id, namespace, tokens, blocks, parent, self.tick, self.tick, priority)
        self._next_id += 1
        return node

    def path_blocks(self, node: Node) -> list[int]:
        """The ids of the blocks on the path from the root to the end of `node`, in order."""
        blocks: list[int] = []
        for step in reversed(list(node.path())):
            blocks += step.blocks
        return blocks

    def lock(self, node: Node) -> None:
        """Protect `node` and its ancestors from eviction, until `unlock`. Its descendants are not protected."""
        for step in node.path():
            if step.lock_count == 0:
                self.num_evictable -= len(step.blocks)
                self.num_protected += len(step.blocks)
                self._evictable_leaves.pop(step.id, None)
            step.lock_count += 1

    def unlock(self, node: Node) -> None:
        """Remove one lock. Raises `InvalidArgument` if `node` is not locked (in SGLang the count becomes negative)."""
        for step in node.path():
            if step.lock_count == 0:
                raise InvalidArgument(f"node: node {step.id} is unlocked more often than it was locked")
            step.lock_count -= 1
            if step.lock_count == 0:
                self.num_evictable += len(step.blocks)
                self.num_protected -= len(step.blocks)
                if not step.children:
                    self._evictable_leaves[step.id] = step

    def num_unlocked(self, node: Node) -> int:
        """The number of evictable blocks on the path to `node`: `lock(node)` would protect these. Pure."""
        count = 0
        for step in node.path():
            if step.lock_count:
                break
            count += len(step.blocks)
        return count

    def evict(self, count: int) -> list[Node]:
        """Remove unlocked leaves, in the order of the strategy, until they held at least `count` blocks together.
        Returns the removed nodes in order; their blocks belong to the caller.

        Whole nodes are removed, so they may hold more than `count` blocks, and fewer if no unlocked leaf is left. A
        parent that becomes an unlocked leaf can be removed in the same call.
        """
        if count <= 0:
            return []
        candidates = [self._candidate(leaf) for leaf in self._evictable_leaves.values()]
        heapq.heapify(candidates)
        evicted, freed = [], 0
        while candidates and freed < count:
            *_, leaf = heapq.heappop(candidates)
            self._remove(leaf)
            evicted.append(leaf)
            freed += len(leaf.blocks)
            if leaf.parent is not None and leaf.parent.id in self._evictable_leaves:
                heapq.heappush(candidates, self._candidate(leaf.parent))
        return evicted

    def _candidate(self, leaf: Node) -> tuple[tuple[int, ...], int, int, Node]:
        return self.eviction_key(leaf), leaf.last_access, leaf.id, leaf

    def _remove(self, leaf: Node) -> None:
        parent = leaf.parent
        assert parent is not None
        del parent.children[self._child_key(parent, leaf.namespace, leaf.tokens, 0)]
        del self._evictable_leaves[leaf.id]
        self.num_evictable -= len(leaf.blocks)
        if parent is not self.root and not parent.children and parent.lock_count == 0:
            self._evictable_leaves[parent.id] = parent

    def nodes(self) -> Iterator[Node]:
        """Every node but the root, each before its children. Do not change the tree while iterating."""
        pending = list(self.root.children.values())
        while pending:
            node = pending.pop()
            yield node
            pending.extend(node.children.values())

    def check(self, locked: list[Node]) -> None:
        """Compare every size and count with a recount. `locked` holds the node of each lock, once per lock. Raises
        `CorruptState` at the first disagreement. Changes nothing."""
        locks: dict[int, int] = {}
        for lock in locked:
            for step in lock.path():
                locks[step.id] = locks.get(step.id, 0) + 1
        evictable = protected = 0
        leaves = set()
        for node in self.nodes():
            key = self._child_key(node.parent or self.root, node.namespace, node.tokens, 0)
            if node.parent is None or node.parent.children.get(key) is not node:
                raise CorruptState(f"node {node.id} is not among the children of its parent under its own key")
            if not node.blocks or len(node.tokens) != len(node.blocks) * self.block_size:
                raise CorruptState(f"node {node.id} has {len(node.tokens)} tokens in {len(node.blocks)} blocks")
            if node.lock_count != (expected := locks.pop(node.id, 0)):
                raise CorruptState(f"node {node.id} counts {node.lock_count} locks, but requests hold {expected}")
            if node.lock_count:
                protected += len(node.blocks)
            else:
                evictable += len(node.blocks)
                if not node.children:
                    leaves.add(node.id)
        if locks:
            raise CorruptState(f"requests hold locks on nodes that are not in the tree: {sorted(locks)}")
        if (evictable, protected) != (self.num_evictable, self.num_protected):
            raise CorruptState(
                f"the tree counts {self.num_evictable} evictable and {self.num_protected} protected blocks, a recount "
                f"finds {evictable} and {protected}"
            )
        if leaves != self._evictable_leaves.keys():
            raise CorruptState("the set of evictable leaves disagrees with a recount")
