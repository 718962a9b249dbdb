"""SGLang's RadixAttention: a prefix cache over the radix tree.

The tree owns the published blocks of a request; the request owns the others privately.

    block_table:  |<--- in the tree, locked --->|<--- private --->|
                  0                       num_published         end

Publishing inserts the computed tokens into the tree. If another request has published the same tokens in the meantime,
this request's copies are duplicates: the cache frees them *and rewrites the block table* to the tree's blocks. Without
the rewrite the request would read freed blocks, a fault that mini-sglang has had (PR #142). Source of the rules: SGLang
0.5.23, `sglang/srt/mem_cache/radix_cache.py` and `common.py`.
"""

from minicache.core.block_pool import BlockPool
from minicache.core.errors import CorruptState, InvalidArgument, require_int
from minicache.core.event_stream import EventStream
from minicache.core.events import (
    BlocksPublished,
    BlockTableRewritten,
    DuplicatesFreed,
    LockMoved,
    NodesEvicted,
    NodeSplit,
    PathInserted,
    PrefixMatched,
)
from minicache.core.paged_cache import Holder, PagedCache
from minicache.core.prefix_cache import CacheSnapshot, Match, NodeSnapshot
from minicache.core.radix_tree import Insertion, Node, RadixTree, Split
from minicache.core.request import Request


class RadixCache(PagedCache):
    """A prefix cache over a radix tree. `PrefixCache` says what each call does.

    `strategy` names the eviction order (`eviction.py`). `tree` replaces the tree by one of the same block size. With
    the default block size of 1, all but one token of a repeated prompt can be reused. Raises `InvalidArgument` for a
    value out of range or an unknown strategy.
    """

    publishes_scheduled = False

    def __init__(
        self,
        num_blocks: int,
        block_size: int = 1,
        strategy: str = "lru",
        *,
        pool: BlockPool | None = None,
        tree: RadixTree | None = None,
        events: EventStream | None = None,
    ) -> None:
        super().__init__(num_blocks, block_size, pool=pool, events=events)
        self.tree = tree if tree is not None else RadixTree(block_size, strategy)
        if self.tree.block_size != block_size:
            raise InvalidArgument(f"block_size is {block_size}, but the tree has blocks of {self.tree.block_size}")

    def set_strategy(self, strategy: str) -> None:
        """Evict in another order from now on; raises `InvalidArgument` for a name that `eviction.py` does not have."""
        self.tree.set_strategy(strategy)

    @property
    def lookup_refreshes(self) -> bool:  # type: ignore[override]
        return self.tree.strategy == "lru"

    @property
    def num_free(self) -> int:
        return self.pool.num_free + self.tree.num_evictable

    def lookup(self, request: Request) -> Match:
        """Not pure: it refreshes the matched path and may split its last node, even if the request is never admitted.

        A request that needs prompt log-probabilities from position k reuses at most its first k tokens.
        """
        limit = request.num_tokens - 1
        if request.prompt_logprobs is not None:
            limit = min(limit, request.prompt_logprobs)
        if request.skip_cache_read:
            limit = 0
        limit -= limit % self.block_size
        found = self.tree.match(request.namespace, request.tokens, limit)
        num_tokens = len(found.blocks) * self.block_size
        end = "skipped" if request.skip_cache_read else self._end_of(request, num_tokens, limit)
        if self.events:
            self._emit_split(found.split, found.tick)
            self.events.emit(PrefixMatched(request.id, found.node.id, found.tick, num_tokens, end))
        return Match(num_tokens, found.blocks, end, found.node, request_id=request.id, version=self._version)

    def publish(self, request: Request, num_tokens: int) -> None:
        """Only computed tokens can be published. Publishing the same tokens again refreshes their nodes, and counts a
        hit in each node that the request has not inserted before.

        Once output is published too, the prompt is inserted a second time with priority + 1, and so ends at a node of
        its own: under the `priority` strategy the output is evicted before the prompt.
        """
        holder = self._holder(request)
        if num_tokens > request.num_computed_tokens:
            raise InvalidArgument(
                f"num_tokens: a radix cache publishes computed tokens only; request {request.id!r} has "
                f"{request.num_computed_tokens}, not {num_tokens}"
            )
        end = num_tokens // self.block_size
        if holder is None or not end or end < holder.num_published:
            return
        self._end_matches()
        below = holder.lock if isinstance(holder.lock, Node) else None  # where the request's published blocks end
        inserted = self._insert(request, end, holder.num_inserted, request.priority, below)
        self._rewrite(request, inserted, holder.num_published)
        holder.num_published = holder.num_inserted = end
        prompt_end = request.num_prompt_tokens // self.block_size
        if 0 < prompt_end < end:
            self._insert(request, prompt_end, end, request.priority + 1)
        self._lock(holder, inserted.node)

    def _insert(
        self, request: Request, end: int, num_inserted: int, priority: int, below: Node | None = None
    ) -> Insertion:
        """Insert the first `end` blocks of the request, which has inserted the first `num_inserted` before."""
        tokens = request.tokens[: end * self.block_size]
        start = num_inserted * self.block_size
        done = self.tree.insert(request.namespace, tokens, request.block_table, priority, start, below=below)
        if self.events:
            self._emit_split(done.split, done.tick)
            leaf = done.leaf
            if leaf is not None and leaf.parent is not None:
                self.events.emit(
                    BlocksPublished(
                        request.id,
                        done.num_shared * self.block_size,
                        tuple(leaf.blocks),
                        tuple(leaf.tokens),
                        request.namespace,
                        node=leaf.id,
                        parent_node=leaf.parent.id,
                    )
                )
            self.events.emit(PathInserted(request.id, done.node.id, start, done.tick, priority))
        return done

    def _rewrite(self, request: Request, inserted: Insertion, start: int) -> None:
        """Free the request's own blocks `[start, num_shared)`, whose tokens the tree had already, and put the tree's
        blocks into the table in their place."""
        end = inserted.num_shared
        if start >= end:
            return
        duplicates = request.block_table[start:end]
        request.block_table[start:end] = self.tree.path_blocks(inserted.node)[start:end]
        self.pool.free(duplicates)
        if self.events:
            self.events.emit(DuplicatesFreed(request.id, tuple(duplicates)))
            self.events.emit(BlockTableRewritten(request.id, start, tuple(request.block_table[start:end])))

    def _lock(self, holder: Holder, node: Node | None) -> None:
        """Move the holder's lock to `node` (`None`: give it up). The new path is locked before the old one is unlocked,
        so their common part is never evictable in between."""
        if node is not None:
            self.tree.lock(node)
        if isinstance(holder.lock, Node):
            self.tree.unlock(holder.lock)
        holder.lock = node
        if self.events:
            self.events.emit(LockMoved(holder.request.id, None if node is None else node.id))

    def make_room(self, num_blocks: int, request: Request | None = None) -> bool:
        self._evict(require_int("num_blocks", num_blocks, 0) - self.pool.num_free, request)
        return num_blocks <= self.pool.num_free

    def evict(self, num_blocks: int) -> int:
        return self._evict(require_int("num_blocks", num_blocks, 0))

    def _evict(self, count: int, request: Request | None = None) -> int:
        nodes = self.tree.evict(count)
        if not nodes:
            return 0
        self._end_matches()
        blocks = [block for node in nodes for block in node.blocks]
        self.pool.free(blocks)
        if self.events:
            ids = tuple(node.id for node in nodes)
            self.events.emit(NodesEvicted(ids, tuple(blocks), request.id if request else None))
        return len(blocks)

    def _emit_split(self, split: Split | None, tick: int) -> None:
        if split is not None:
            self.events.emit(NodeSplit(split.node.id, split.upper.id, split.at, tick))

    def _num_unheld(self, match: Match) -> int:
        return self.tree.num_unlocked(match.node) if isinstance(match.node, Node) else 0

    def _hold(self, holder: Holder, match: Match) -> None:
        assert isinstance(match.node, Node)
        self._lock(holder, match.node)

    def _take(self, request: Request | None, count: int) -> list[int]:
        self._evict(count - self.pool.num_free, request)
        return self.pool.allocate(count).blocks

    def _let_go(self, holder: Holder) -> None:
        """The blocks in the tree are unlocked and stay cached; the private ones are freed."""
        request = holder.request
        private = request.block_table[holder.num_published :]
        self._emit_release(request, self.pool.free(reversed(private)))
        if holder.lock is not None:
            self._lock(holder, None)

    def _forget_all(self) -> None:
        self.pool.free(block for node in self.tree.nodes() for block in node.blocks)
        self.tree.clear()

    def snapshot(self) -> CacheSnapshot:
        state = super().snapshot()
        for node in self.tree.nodes():
            assert node.parent is not None
            state.nodes[node.id] = NodeSnapshot(
                parent=node.parent.id,
                namespace=node.namespace,
                tokens=tuple(node.tokens),
                blocks=tuple(node.blocks),
                locks=node.lock_count,
                tick=node.last_access,
                hits=node.hit_count,
                priority=node.priority,
            )
        for id, holder in self._holders.items():
            if isinstance(holder.lock, Node):
                state.locks[id] = holder.lock.id
        return state

    def check(self) -> None:
        super().check()
        locks = [holder.lock for holder in self._holders.values() if isinstance(holder.lock, Node)]
        self.tree.check(locks)
        owned = [block for node in self.tree.nodes() for block in node.blocks]
        for id, holder in self._holders.items():
            table, published = holder.request.block_table, holder.num_published
            node = holder.lock if isinstance(holder.lock, Node) else self.tree.root
            if self.tree.path_blocks(node) != table[:published]:
                raise CorruptState(f"the published blocks of request {id!r} are not those of the tree")
            owned += table[published:]
        if len(owned) != len(set(owned)):
            raise CorruptState("two owners name the same block: nodes of the tree, or requests with private blocks")
        self.pool.check(dict.fromkeys(owned, 1))
