"""vLLM's automatic prefix caching: a map from block hashes to blocks.

The map itself knows no prefixes. Each whole block has a hash that also covers everything before it (`block_hash.py`),
so a lookup finds the longest cached prefix by looking up one hash after the other until one is missing. Freed blocks
stay findable until the pool hands them out again. Source of the rules: vLLM 0.33, `vllm/v1/core/kv_cache_manager.py`.
"""

from weakref import WeakKeyDictionary

from minicache.core.block_hash import BlockHash, CborHash, hash_chain, sha256_cbor
from minicache.core.block_pool import BlockPool
from minicache.core.errors import CorruptState, InvalidArgument, require_int
from minicache.core.event_stream import EventStream
from minicache.core.events import BlocksEvicted, BlocksPublished, BlocksUnpublished, PrefixMatched
from minicache.core.paged_cache import Holder, PagedCache
from minicache.core.prefix_cache import CacheSnapshot, Match
from minicache.core.request import Request


class HashChainCache(PagedCache):
    """A prefix cache over chained block hashes. `PrefixCache` says what each call does.

    `block_hash(parent, tokens, extra_keys)` returns the hash of a block. `root_seed` is the text from which the parent
    hash of first blocks is made (vLLM reads it from PYTHONHASHSEED): processes agree on hashes if they use the same.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int = 16,
        *,
        block_hash: BlockHash = sha256_cbor,
        root_seed: str | None = None,
        pool: BlockPool | None = None,
        events: EventStream | None = None,
    ) -> None:
        super().__init__(num_blocks, block_size, pool=pool, events=events)
        self.block_hash = block_hash
        self.root_hash = (block_hash if isinstance(block_hash, CborHash) else sha256_cbor).root(root_seed)
        # A request's tokens only grow, so its hashes stay valid through preemption. They go when the request does.
        self._hashes: WeakKeyDictionary[Request, list[bytes]] = WeakKeyDictionary()

    def hashes(self, request: Request) -> list[bytes]:
        """The hashes of the request's whole blocks, output included. Each is computed once and kept until the request
        is garbage-collected. The list is the cache's own: do not change it."""
        known = self._hashes.get(request, [])
        if (len(known) + 1) * self.block_size <= request.num_tokens:
            known = hash_chain(
                request.tokens, self.block_size, self.root_hash, request.namespace, self.block_hash, known
            )
            self._hashes[request] = known
        return known

    def lookup(self, request: Request) -> Match:
        """Pure: no reference, queue position or statistic changes.

        A request that needs prompt log-probabilities reads nothing at all, as in vLLM, because reused positions have no
        logits. It still publishes.
        """
        blocks: list[int] = []
        reads = not request.skip_cache_read and request.prompt_logprobs is None
        limit = (request.num_tokens - 1) // self.block_size if reads else 0
        find = self.pool.find
        for hash in self.hashes(request)[:limit]:
            block = find(hash)
            if block is None:
                break
            blocks.append(block)
        num_tokens = len(blocks) * self.block_size
        match = Match(
            num_tokens,
            blocks,
            self._end_of(request, num_tokens, limit * self.block_size) if reads else "skipped",
            request_id=request.id,
            version=self._version,
        )
        if self.events:
            self.events.emit(PrefixMatched(request.id, 0, 0, num_tokens, match.end))
        return match

    def publish(self, request: Request, num_tokens: int) -> None:
        """Tokens after `request.num_tokens` (drafts) are never published.

        It may be called before the KV is computed (`publish_at="schedule"`): two equal prompts in one step then share
        blocks. This is correct because each layer writes the KV of the whole batch before its attention reads any.
        Duplicates are kept: the block table of a running request is never rewritten.
        """
        holder = self._holder(request)
        end = min(num_tokens, request.num_tokens) // self.block_size
        if end > len(request.block_table):
            raise InvalidArgument(f"num_tokens: request {request.id!r} holds too few blocks for {num_tokens} tokens")
        if holder is None or end <= holder.num_published:
            return
        self._end_matches()
        start, holder.num_published = holder.num_published, end
        hashes = self.hashes(request)[start:end]
        blocks = request.block_table[start:end]
        for block, hash in zip(blocks, hashes, strict=True):
            self.pool.publish(block, hash)
        if self.events:
            parent = self._hashes[request][start - 1] if start else None
            first, last = start * self.block_size, end * self.block_size
            tokens = tuple(request.tokens[first:last])
            self.events.emit(
                BlocksPublished(request.id, first, tuple(blocks), tokens, request.namespace, tuple(hashes), parent)
            )

    def evict(self, num_blocks: int) -> int:
        """Forget the hashes of up to `num_blocks` free blocks, from the head of the free queue. The blocks keep their
        places in the queue, as in vLLM's `evict_blocks`."""
        require_int("num_blocks", num_blocks, 0)
        evicted: list[tuple[int, bytes]] = []
        for block in self.pool.free_queue:
            if len(evicted) >= num_blocks:
                break
            hash = self.pool.unpublish(block)
            if hash is not None:
                evicted.append((block, hash))
        self._end_matches()
        self._emit_evicted(evicted)
        return len(evicted)

    def _emit_evicted(self, evicted: list[tuple[int, bytes]], request: Request | None = None) -> None:
        if self.events and evicted:
            blocks, hashes = zip(*evicted, strict=True)
            self.events.emit(BlocksEvicted(blocks, hashes, request.id if request else None))

    def _num_unheld(self, match: Match) -> int:
        blocks = self.pool.blocks
        return sum(blocks[block].ref_count == 0 for block in match.blocks)

    def _hold(self, holder: Holder, match: Match) -> None:
        self.pool.touch(match.blocks)

    def _take(self, request: Request | None, count: int) -> list[int]:
        blocks, evicted = self.pool.allocate(count)
        self._emit_evicted(evicted, request)
        return blocks

    def _let_go(self, holder: Holder) -> None:
        """Why not as vLLM 0.33? It leaves blocks findable that were published at scheduling and then never computed."""
        request = holder.request
        first = request.num_computed_tokens // self.block_size
        uncomputed = request.block_table[first : holder.num_published]
        for block in uncomputed:
            self.pool.unpublish(block)
        if self.events and uncomputed:
            self.events.emit(BlocksUnpublished(request.id, tuple(uncomputed)))
        self._emit_release(request, self.pool.free(reversed(request.block_table)))

    def _forget_all(self) -> None:
        self.pool.reset()

    def snapshot(self) -> CacheSnapshot:
        state = super().snapshot()
        state.hashes.update(self.pool.hashes)
        state.copies.update(self.pool.copies())
        return state

    def check(self) -> None:
        super().check()
        self.pool.check(self._table_counts())
        hashes = self.pool.hashes
        for id, holder in self._holders.items():
            request = holder.request
            chain = hash_chain(request.tokens, self.block_size, self.root_hash, request.namespace, self.block_hash)
            for index, block in enumerate(request.block_table):
                expected = chain[index] if index < holder.num_published else None
                # The block may also have no hash: it was adopted before it was computed, and the request that
                # published it has unpublished it since.
                if hashes.get(block) != expected and not (expected and block not in hashes):
                    raise CorruptState(f"block {block}, number {index} of request {id!r}, has the wrong hash")
