"""Both caches in their simplest form: no hashes, no tree, no queue, only prefixes and lists.

A *prefix* is a namespace and the tokens of some whole blocks: the complete key, without a digest. All searches are by
brute force.
"""

from collections.abc import Callable, Iterable
from typing import Any

from minicache.core import Namespace, Request
from minicache.core.prefix_cache import CacheSnapshot, NodeSnapshot

Prefix = tuple[Namespace, tuple[int, ...]]


def prefix(request: Request, num_tokens: int) -> Prefix:
    return request.namespace, tuple(request.tokens[:num_tokens])


def readable_tokens(request: Request, kind: str) -> int:
    """The most tokens that a lookup may find: one must be computed, and some requests need more to be computed."""
    if request.skip_cache_read or (kind == "hash" and request.prompt_logprobs is not None):
        return 0
    limit = request.num_tokens - 1
    return limit if request.prompt_logprobs is None else min(limit, request.prompt_logprobs)


class NaiveHashChain:
    """Blocks with their prefixes, and a list of the free blocks in the order in which they will be handed out."""

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self.free = list(range(1, num_blocks))
        self.prefix_of: dict[int, Prefix] = {}  # findable blocks, first published first
        self.tables: dict[str, list[int]] = {}
        self.published: dict[str, int] = {}

    def lookup(self, request: Request) -> list[int]:
        found: list[int] = []
        for end in range(self.block_size, readable_tokens(request, "hash") + 1, self.block_size):
            copies = [block for block, key in self.prefix_of.items() if key == prefix(request, end)]
            if not copies:
                break
            found.append(copies[0])
        return found

    def allocate(self, request: Request, hits: list[int] | None, num_tokens: int) -> bool:
        table = list(self.tables.get(request.id, ())) if hits is None else list(hits)
        computed = request.num_computed_tokens if hits is None else len(hits) * self.block_size
        fresh = max(0, -(-(computed + num_tokens) // self.block_size) - len(table))
        if fresh + sum(block in self.free for block in hits or ()) > len(self.free):
            return False
        rest = [block for block in self.free if block not in (hits or ())]
        taken, self.free = rest[:fresh], rest[fresh:]
        for block in taken:
            self.prefix_of.pop(block, None)
        self.tables[request.id] = table + taken
        if hits is not None:
            self.published[request.id] = len(hits)
        return True

    def publish(self, request: Request, num_tokens: int) -> None:
        start = self.published.get(request.id, 0)
        end = max(start, min(num_tokens, request.num_tokens) // self.block_size)
        for index in range(start, end):
            self.prefix_of[self.tables[request.id][index]] = prefix(request, (index + 1) * self.block_size)
        self.published[request.id] = end

    def release(self, request: Request) -> None:
        table, published = self.tables.pop(request.id, []), self.published.pop(request.id, 0)
        for block in table[request.num_computed_tokens // self.block_size : published]:
            self.prefix_of.pop(block, None)
        held = {block for other in self.tables.values() for block in other}
        freed = [block for block in reversed(table) if block not in held]
        self.free = [block for block in freed if block not in self.prefix_of] + self.free
        self.free += [block for block in freed if block in self.prefix_of]

    def evict(self, num_blocks: int) -> None:
        for block in [block for block in self.free if block in self.prefix_of][:num_blocks]:
            del self.prefix_of[block]

    def reset(self) -> None:
        if not any(self.tables.values()):
            self.prefix_of.clear()


class NaiveRadix:
    """A set of findable prefixes; with each prefix it contains every shorter one in whole blocks.

    Which prefixes are evicted depends on where nodes were split: see `naive_eviction`. This class only requires that no
    request used an evicted prefix.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self.capacity = num_blocks - 1
        self.cached: set[Prefix] = set()
        self.num_held: dict[str, int] = {}
        self.used: dict[str, set[Prefix]] = {}  # the published or adopted prefixes of each request that holds blocks

    @property
    def num_free(self) -> int:
        """All blocks except those of prefixes in use and those that requests hold privately."""
        private = sum(self.num_held[id] - len(self.used[id]) for id in self.num_held)
        return self.capacity - private - len(set().union(*self.used.values()))

    def _prefixes(self, request: Request, num_tokens: int) -> set[Prefix]:
        return {prefix(request, end) for end in range(self.block_size, num_tokens + 1, self.block_size)}

    def lookup(self, request: Request) -> int:
        found = self._prefixes(request, readable_tokens(request, "radix")) & self.cached
        return max((len(tokens) for _, tokens in found), default=0)

    def allocate(self, request: Request, hit: int | None, num_tokens: int) -> bool:
        before = dict(self.num_held), dict(self.used)
        if hit is not None:
            self.used[request.id] = self._prefixes(request, hit)
        start = request.num_computed_tokens if hit is None else hit
        blocks = -(-(start + num_tokens) // self.block_size)
        self.num_held[request.id] = max(self.num_held.get(request.id, 0), blocks)
        self.used.setdefault(request.id, set())
        if self.num_free >= 0:
            return True
        self.num_held, self.used = before
        return False

    def publish(self, request: Request, num_tokens: int) -> None:
        if request.id in self.num_held:
            self.used[request.id] |= self._prefixes(request, num_tokens)
            self.cached |= self.used[request.id]

    def release(self, request: Request) -> None:
        self.num_held.pop(request.id, None)
        self.used.pop(request.id, None)

    def forget(self, gone: set[Prefix]) -> None:
        """The cache evicted these prefixes."""
        assert not gone & set().union(*self.used.values()), "a prefix in use was evicted"
        self.cached -= gone
        for namespace, tokens in self.cached:
            parent = tokens[: -self.block_size]
            assert not parent or (namespace, parent) in self.cached, "an inner part of a cached prefix was evicted"


def path_of(nodes: dict[int, NodeSnapshot], id: int) -> list[int]:
    """The node and its ancestors, bottom up, without the root."""
    path = []
    while id in nodes:
        path.append(id)
        id = nodes[id].parent or 0
    return path


def prefixes_in(state: CacheSnapshot) -> dict[int, Prefix]:
    """For each block of the tree, the prefix that ends with it."""
    found: dict[int, Prefix] = {}
    for id, node in state.nodes.items():
        path = [state.nodes[step] for step in reversed(path_of(state.nodes, id))]
        tokens = tuple(token for step in path for token in step.tokens)
        end = len(tokens) - len(node.tokens)
        for block in node.blocks:
            end += state.block_size
            found[block] = node.namespace, tokens[:end]
    return found


# The eviction order of each strategy, from a node snapshot. Ids are given in the order of creation.
NAIVE_STRATEGIES: dict[str, Callable[[int, NodeSnapshot], tuple[Any, ...]]] = {
    "lru": lambda id, node: (node.tick,),
    "lfu": lambda id, node: (node.hits, node.tick),
    "fifo": lambda id, node: (id,),
    "mru": lambda id, node: (-node.tick, -id),
    "filo": lambda id, node: (-id,),
    "slru": lambda id, node: (node.hits >= 2, node.tick),
    "priority": lambda id, node: (node.priority, node.tick),
}


def naive_eviction(nodes: dict[int, NodeSnapshot], locked: Iterable[int], count: int, strategy: str) -> list[int]:
    """The nodes whose eviction frees `count` blocks: repeatedly the first of the unlocked leaves in the strategy's
    order, whole."""
    left, locked, gone = dict(nodes), set(locked), []
    while count > 0:
        parents = {node.parent for node in left.values()}
        leaves = [id for id in left if id not in parents and id not in locked]
        if not leaves:
            break
        least = min(leaves, key=lambda id: (NAIVE_STRATEGIES[strategy](id, left[id]), left[id].tick, id))
        count -= len(left.pop(least).blocks)
        gone.append(least)
    return gone
