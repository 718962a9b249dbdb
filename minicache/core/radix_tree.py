"""SGLang's radix tree: cached token runs, shared where they agree.

Every node holds a run of tokens and the blocks with their KV; the path from the root spells the prefix. Where two
prefixes part, the node is split. Token runs are whole blocks: with `block_size` B a node holds a multiple of B tokens,
and a difference inside a block makes the whole block different.

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
    """`tokens` are this node's own part of the path, `blocks` one id per block of them.

    `lock_count` counts the locks at or below the node. `last_access` and `created` are ticks. `hit_count` counts the
    requests whose insertion passed or ended here.
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
        """This node and its ancestors, the root left out, bottom up."""
        node: Node = self
        while node.parent is not None:
            yield node
            node = node.parent


class Split(NamedTuple):
    """`node` was cut after `at` tokens; the new node `upper` holds these and is its parent now."""

    node: Node
    upper: Node
    at: int


class TreeMatch(NamedTuple):
    """The longest cached prefix: its blocks, the node where it ends, and the split that made it end there."""

    node: Node
    blocks: list[int]
    split: Split | None
    tick: int


class Insertion(NamedTuple):
    """`num_shared` blocks of the run were in the tree before; the rest hang in the new `leaf`; `node` ends the run."""

    node: Node
    num_shared: int
    leaf: Node | None
    split: Split | None
    tick: int


class RadixTree:
    """A tree of token runs in whole blocks; `strategy` names the order in which unlocked leaves are evicted.

    Sizes are in blocks: `num_evictable` (nobody holds them) and `num_protected` (a lock is at or below them).
    """

    def __init__(self, block_size: int = 1, strategy: str = "lru") -> None:
        self.block_size = require_int("block_size", block_size, 1)
        self.eviction_key = strategy_named(strategy)
        self.clear()

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
        """The longest cached prefix of the first `limit` tokens, in whole blocks.

        Not pure: every node on the way, the partly matching one included, is refreshed, and that one is split so that
        the match ends at a node. What can be found stays the same.
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
        """Add a run of whole blocks. Blocks that the tree has already are kept; the caller still owns its copies.

        The path is refreshed and raised to `priority`; each of its nodes counts one more hit if it ends beyond
        `num_inserted`, the tokens that the same request inserted before, so that a request counts once in each node.
        The path to `below` is known to spell the beginning of `tokens`, so that it need not be compared again.
        """
        if len(tokens) % self.block_size or len(tokens) > len(blocks) * self.block_size:
            raise InvalidArgument(f"tokens: {len(tokens)} tokens are not whole blocks of the {len(blocks)} given")
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
        """Down along `tokens[:end]` from `below` (None: the root): the last node, the tokens matched, and the split at
        the end."""
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
        """A child is found by its first block; children of the root by their namespace as well."""
        first = tokens[start] if self.block_size == 1 else tokens[start : start + self.block_size].tobytes()
        return (namespace, first) if parent is self.root else first

    def _split(self, node: Node, at: int) -> Split:
        """Cut `node` after `at` tokens. It keeps its identity as the lower part, so whoever holds it still does."""
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
        """The blocks from the root down to the end of `node`."""
        blocks: list[int] = []
        for step in reversed(list(node.path())):
            blocks += step.blocks
        return blocks

    def lock(self, node: Node) -> None:
        """Keep `node` and its ancestors from being evicted. Its descendants are not protected."""
        for step in node.path():
            if step.lock_count == 0:
                self.num_evictable -= len(step.blocks)
                self.num_protected += len(step.blocks)
                self._evictable_leaves.pop(step.id, None)
            step.lock_count += 1

    def unlock(self, node: Node) -> None:
        """Take one lock back; raises `InvalidArgument` if there is none (SGLang's count would go negative)."""
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
        """Blocks on the path to `node` that are not protected yet: what `lock(node)` would take from the evictable."""
        count = 0
        for step in node.path():
            if step.lock_count:
                break
            count += len(step.blocks)
        return count

    def evict(self, count: int) -> list[Node]:
        """Remove unlocked leaves in the strategy's order until at least `count` blocks are free; returns them in order.

        Whole nodes go, so it may be more. A parent that becomes a leaf joins the candidates of the same call.
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
        """Every node but the root, each before its children."""
        pending = list(self.root.children.values())
        while pending:
            node = pending.pop()
            yield node
            pending.extend(node.children.values())

    def check(self, locked: list[Node]) -> None:
        """Compare every size and count with a recount; `locked` names the node of each live lock, once per lock."""
        locks: dict[int, int] = {}
        for lock in locked:
            for step in lock.path():
                locks[step.id] = locks.get(step.id, 0) + 1
        evictable = protected = 0
        leaves = set()
        for node in self.nodes():
            key = self._child_key(node.parent or self.root, node.namespace, node.tokens, 0)
            if node.parent is None or node.parent.children.get(key) is not node:
                raise CorruptState(f"node {node.id} is not the child that its parent knows")
            if not node.blocks or len(node.tokens) != len(node.blocks) * self.block_size:
                raise CorruptState(f"node {node.id} has {len(node.tokens)} tokens in {len(node.blocks)} blocks")
            if node.lock_count != locks.pop(node.id, 0):
                raise CorruptState(f"node {node.id} counts {node.lock_count} locks, which its holders do not")
            if node.lock_count:
                protected += len(node.blocks)
            else:
                evictable += len(node.blocks)
                if not node.children:
                    leaves.add(node.id)
        if locks:
            raise CorruptState(f"locks are held on nodes that are not in the tree: {sorted(locks)}")
        if (evictable, protected) != (self.num_evictable, self.num_protected):
            raise CorruptState(
                f"sizes are {self.num_evictable}+{self.num_protected}, a recount says {evictable}+{protected}"
            )
        if leaves != self._evictable_leaves.keys():
            raise CorruptState("the set of evictable leaves is wrong")
