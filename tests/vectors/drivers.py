"""The specification's way of writing, in Python.

    chain = Chain(num_blocks=11)          bs16 nb11
    r0 = chain.add(COMMON + [3] * 7)      lookup, allocate the missing blocks, publish, compute
    chain.free(r0)
    chain.queue                           the free queue, head first

Token lists: `span(0, 87)` is the specification's `0..87`. Blocks are ids; block 0 is the null block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minicache.core import HashChainCache, Match, NoCache, RadixCache, Request, Scheduler, SchedulerConfig, StepPlan
from minicache.core.paged_cache import PagedCache
from minicache.core.radix_tree import Node, RadixTree
from minicache.core.request import DEFAULT_NAMESPACE, Namespace, token_array
from tests.vectors.checked import checked, checked_tree

COMMON = [0] * 16 + [1] * 16 + [2] * 16  # three whole blocks of 16


def span(start: int, end: int) -> list[int]:
    return list(range(start, end))


@dataclass
class Admitted:
    """A request that holds blocks: `hit` tokens were found, in the `adopted` blocks; `fresh` ones were added."""

    request: Request
    hit: int
    adopted: list[int]
    fresh: list[int]

    @property
    def blocks(self) -> list[int]:
        return self.request.block_table


class Driver:
    """Makes a cache's calls by hand, one request after another, as a scheduler would."""

    def __init__(self, cache: PagedCache) -> None:
        self.cache: Any = checked(cache)
        self._num_requests = 0

    def request(self, tokens: Sequence[int], max_tokens: int = 16, **settings: Any) -> Request:
        self._num_requests += 1
        return Request(f"r{self._num_requests - 1}", tokens, max_tokens, **settings)

    def lookup(self, tokens: Sequence[int], **settings: Any) -> Match:
        return self.cache.lookup(self.request(tokens, **settings))

    def hit(self, tokens: Sequence[int], **settings: Any) -> int:
        """Tokens that a new request would find."""
        return self.lookup(tokens, **settings).num_tokens

    def admit(self, request: Request, num_tokens: int | None = None) -> Admitted | None:
        """Lookup and allocation of the first `num_tokens` missing tokens (all of them); `None` if they do not fit."""
        match = self.cache.lookup(request)
        missing = request.num_tokens - match.num_tokens if num_tokens is None else num_tokens
        if not self.cache.allocate(request, match, missing):
            return None
        return Admitted(request, match.num_tokens, match.blocks, request.block_table[len(match.blocks) :])

    def chunk(self, request: Request, num_tokens: int) -> bool:
        """The next chunk of a request that holds blocks already: allocate, publish, compute."""
        if not self.cache.allocate(request, None, num_tokens):
            return False
        self.compute(request, num_tokens)
        return True

    def decode(self, request: Request, token: int = 9) -> bool:
        """Append a sampled token and compute its KV, if there is room."""
        request.append(token)
        return self.chunk(request, 1)

    def compute(self, request: Request, num_tokens: int) -> None:
        raise NotImplementedError

    def add(self, tokens: Sequence[int] | Request, num_tokens: int | None = None, **settings: Any) -> Admitted:
        """Admit a new request and compute all of it, or its first chunk of `num_tokens`."""
        request = tokens if isinstance(tokens, Request) else self.request(tokens, **settings)
        admitted = self.admit(request, num_tokens)
        assert admitted is not None, f"{request} does not fit"
        self.compute(request, request.num_tokens - admitted.hit if num_tokens is None else num_tokens)
        return admitted

    def free(self, admitted: Admitted) -> None:
        self.cache.release(admitted.request)

    @property
    def queue(self) -> list[int]:
        return list(self.cache.pool.free_queue)

    def refs(self, *blocks: int) -> list[int]:
        return [self.cache.pool.blocks[block].ref_count for block in blocks]


class Chain(Driver):
    """Drives a `HashChainCache` in vLLM's order: published when it is scheduled, computed after."""

    def __init__(self, num_blocks: int = 11, block_size: int = 16, **settings: Any) -> None:
        super().__init__(HashChainCache(num_blocks, block_size, **settings))

    def compute(self, request: Request, num_tokens: int) -> None:
        self.cache.publish(request, request.num_computed_tokens + num_tokens)
        request.num_computed_tokens += num_tokens

    @property
    def cached(self) -> set[int]:
        """The findable blocks."""
        return set(self.cache.pool.hashes)


class Uncached(Driver):
    """Drives a `NoCache`."""

    def __init__(self, num_blocks: int, block_size: int = 16) -> None:
        super().__init__(NoCache(num_blocks, block_size))

    def compute(self, request: Request, num_tokens: int) -> None:
        request.num_computed_tokens += num_tokens
        self.cache.publish(request, request.num_computed_tokens)


class Radix(Driver):
    """Drives a `RadixCache` in SGLang's order: computed first, published at a checkpoint.

    The specification lists slots, one a token; here they are block ids, one a page.
    """

    def __init__(self, num_blocks: int = 32, block_size: int = 1, strategy: str = "lru") -> None:
        super().__init__(RadixCache(num_blocks, block_size, strategy))

    def compute(self, request: Request, num_tokens: int) -> None:
        """Nothing is published: see `checkpoint`."""
        request.num_computed_tokens += num_tokens

    def checkpoint(self, request: Request, up_to: int | None = None) -> set[int]:
        """Publish what is computed; the blocks that this freed."""
        before = set(self.queue)
        self.cache.publish(request, request.num_computed_tokens if up_to is None else up_to)
        return set(self.queue) - before

    def cache_prompt(self, tokens: Sequence[int], **settings: Any) -> Admitted:
        """A request that computes its prompt and ends: only the tree holds it."""
        admitted = self.add(tokens, **settings)
        self.checkpoint(admitted.request)
        self.free(admitted)
        return admitted

    def lock(self, request: Request) -> Node | None:
        """The node that the request keeps from eviction."""
        id = self.cache.snapshot().locks.get(request.id)
        return next((node for node in self.cache.tree.nodes() if node.id == id), None)

    @property
    def shape(self) -> str:
        return shape(self.cache.tree)

    @property
    def sizes(self) -> tuple[int, int]:
        """Evictable and protected tokens."""
        return sizes(self.cache.tree)[:2]


class Tree:
    """A bare radix tree. A slot is a token's place; a page is named by the slot of its first token."""

    def __init__(self, page: int = 1, strategy: str = "lru") -> None:
        self.page = page
        self.tree = checked_tree(RadixTree(page, strategy))
        self._next_slot = 1000

    def pages(self, slots: Sequence[int]) -> list[int]:
        return list(slots[:: self.page])

    def insert(
        self,
        tokens: Sequence[int],
        slots: Sequence[int] | None = None,
        namespace: Namespace = DEFAULT_NAMESPACE,
        **settings: int,
    ) -> int:
        """Insert the whole pages of `tokens`; the tokens of them that were in the tree before."""
        if slots is None:
            slots = span(self._next_slot, self._next_slot + len(tokens))
            self._next_slot += len(tokens)
        whole = len(tokens) - len(tokens) % self.page
        done = self.tree.insert(namespace, token_array(tokens[:whole]), self.pages(slots[:whole]), **settings)
        return done.num_shared * self.page

    def find(
        self, tokens: Sequence[int], namespace: Namespace = DEFAULT_NAMESPACE, limit: int | None = None
    ) -> tuple[int, list[int]]:
        """Tokens matched, and their pages. Splits and refreshes: a match is not pure."""
        found = self.tree.match(namespace, token_array(tokens), limit)
        return len(found.blocks) * self.page, found.blocks

    def node(self, tokens: Sequence[int], namespace: Namespace = DEFAULT_NAMESPACE) -> Node:
        """The node where the match of `tokens` ends."""
        return self.tree.match(namespace, token_array(tokens)).node

    def evict(self, num_tokens: int) -> list[list[int]]:
        """The tokens of the evicted nodes, in order."""
        return [list(node.tokens) for node in self.tree.evict(-(-num_tokens // self.page))]

    @property
    def shape(self) -> str:
        return shape(self.tree)

    @property
    def sizes(self) -> tuple[int, int, int]:
        return sizes(self.tree)

    def of_nodes(self, attribute: str) -> dict[tuple[int, ...], int]:
        """One attribute of every node, by the node's own tokens."""
        return {tuple(node.tokens): getattr(node, attribute) for node in self.tree.nodes()}


def sizes(tree: RadixTree) -> tuple[int, int, int]:
    """Evictable, protected and all tokens: E, P and T."""
    size = tree.block_size
    return tree.num_evictable * size, tree.num_protected * size, tree.num_blocks * size


def shape(tree: RadixTree) -> str:
    """The tree as the specification writes it: `[tokens]{children}`, siblings in the order of their tokens."""

    def write(node: Node) -> str:
        children = ",".join(write(child) for child in sorted(node.children.values(), key=lambda c: list(c.tokens)))
        if node is tree.root:
            return children
        tokens = "[" + ",".join(map(str, node.tokens)) + "]"
        return tokens + ("{" + children + "}" if children else "")

    return write(tree.root)


def vllm_scheduler(num_blocks: int, block_size: int, **settings: Any) -> Scheduler:
    return Scheduler(checked(HashChainCache(num_blocks, block_size)), SchedulerConfig.vllm(**settings))


def add(scheduler: Scheduler, id: str, tokens: Sequence[int], max_tokens: int = 1, **settings: Any) -> Request:
    request = Request(id, tokens, max_tokens, **settings)
    scheduler.add(request)
    return request


def run_step(scheduler: Scheduler, token: int = 7) -> dict[str, int]:
    """One step in which every request that samples gets `token`; request -> the tokens it was scheduled for."""
    plan = scheduler.schedule()
    finish_step(scheduler, plan, token)
    return counts(plan)


def finish_step(scheduler: Scheduler, plan: StepPlan, token: int = 7) -> None:
    scheduler.update(plan, {item.request.id: token for item in plan.scheduled if item.samples})


def counts(plan: StepPlan) -> dict[str, int]:
    return {item.request.id: item.num_tokens for item in plan.scheduled}
