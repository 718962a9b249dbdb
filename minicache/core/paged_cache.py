"""Block tables over a pool: the part that every cache shares, and `NoCache`, which never finds anything.

Every cache allocates in the same three steps, which are written here once: count, adopt the matched blocks, take fresh
ones. A subclass adds how blocks are found (`lookup`) and become findable (`publish`), and fills in the hooks at the end
of the class.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from minicache.core.block_pool import NULL_BLOCK, BlockPool
from minicache.core.errors import CorruptState, InvalidArgument, StaleMatch, UnknownRequest, require_int
from minicache.core.event_stream import EventStream
from minicache.core.events import (
    BlocksAdopted,
    BlocksAllocated,
    BlocksReleased,
    CacheReset,
    PoolShrunk,
)
from minicache.core.prefix_cache import CacheSnapshot, Match, MatchEnd
from minicache.core.request import Request

_versions = count()  # one sequence for all caches, so that no cache accepts a match of another one


@dataclass(slots=True, eq=False)
class Holder:
    """A request that holds blocks. 0 <= num_inserted <= num_published <= len(block_table).

    The first `num_published` blocks of its table were adopted or published. Radix: the first `num_inserted` of these
    are on a path that the request inserted itself, and `lock` is the node that it keeps from eviction.
    """

    request: Request
    num_published: int = 0
    num_inserted: int = 0
    lock: object = None


class PagedCache(ABC):
    """`num_blocks` blocks of `block_size` tokens, block 0 (the null block) among them. `PrefixCache` says what each
    call does.

    `pool` replaces the block pool by one of the same size; `events` receives an event for each change. Raises
    `InvalidArgument` for a size out of range or a pool of another size.
    """

    finds = True
    publishes_scheduled = True
    lookup_refreshes = False

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        *,
        pool: BlockPool | None = None,
        events: EventStream | None = None,
    ) -> None:
        self.block_size = require_int("block_size", block_size, 1)
        self.pool = pool if pool is not None else BlockPool(num_blocks)
        if self.pool.num_blocks != num_blocks:
            raise InvalidArgument(f"num_blocks is {num_blocks}, but the pool has {self.pool.num_blocks} blocks")
        self.events = events if events is not None else EventStream()
        self._holders: dict[str, Holder] = {}
        self._end_matches()

    @property
    def capacity(self) -> int:
        return self.pool.capacity

    @property
    def num_free(self) -> int:
        return self.pool.num_free

    # Room

    def blocks_for(self, num_tokens: int) -> int:
        """The number of blocks that `num_tokens` tokens need; the last one may be partly empty."""
        return -(-num_tokens // self.block_size)

    def demand(self, request: Request, match: Match | None, num_tokens: int) -> int:
        return self._num_fresh(request, match, num_tokens) + (self._num_unheld(match) if match else 0)

    def _num_fresh(self, request: Request, match: Match | None, num_tokens: int) -> int:
        if match is None:
            return max(0, self.blocks_for(request.num_computed_tokens + num_tokens) - len(request.block_table))
        return self.blocks_for(match.num_tokens + num_tokens) - len(match.blocks)

    def make_room(self, num_blocks: int, request: Request | None = None) -> bool:
        return require_int("num_blocks", num_blocks, 0) <= self.num_free

    def allocate(self, request: Request, match: Match | None, num_tokens: int) -> bool:
        require_int("num_tokens", num_tokens, 0)
        holder = self._holder(request)
        if match is not None:
            self._require_fresh(match, request, holder)
        if self.demand(request, match, num_tokens) > self.num_free:
            return False
        self._end_matches()
        fresh = self._num_fresh(request, match, num_tokens)
        if holder is None:
            holder = Holder(request)
        if match is not None:
            self._adopt(holder, match)
            request.num_computed_tokens = match.num_tokens
        if fresh:
            blocks = self._take(request, fresh)
            request.block_table.extend(blocks)
            if self.events:
                self.events.emit(BlocksAllocated(request.id, tuple(blocks)))
        if request.block_table:
            self._holders[request.id] = holder
        return True

    def _require_fresh(self, match: Match, request: Request, holder: Holder | None) -> None:
        if match.version != self._version or match.request_id != request.id:
            raise StaleMatch(
                f"the match of request {match.request_id!r} is stale, or comes from another cache or request: call "
                f"lookup() for request {request.id!r} again before allocate()"
            )
        if holder is not None:
            raise InvalidArgument(f"request {request.id!r} holds blocks already: call allocate() with match=None")

    def _end_matches(self) -> None:
        """Make every earlier match stale."""
        self._version = next(_versions)

    def _adopt(self, holder: Holder, match: Match) -> None:
        if match.blocks:
            self._hold(holder, match)
            holder.request.block_table.extend(match.blocks)
            holder.num_published = len(match.blocks)
            if self.events:
                self.events.emit(BlocksAdopted(holder.request.id, tuple(match.blocks)))

    def _holder(self, request: Request) -> Holder | None:
        """The holder of this request, or `None` if it holds no blocks. Raises if another request of the same id holds
        blocks here, or if its block table belongs to another cache."""
        holder = self._holders.get(request.id)
        if holder is not None and holder.request is not request:
            raise InvalidArgument(f"another request with the id {request.id!r} holds blocks: give each its own id")
        if holder is None and request.block_table:
            raise UnknownRequest(f"the block table of request {request.id!r} belongs to another cache")
        return holder

    # Giving back

    def release(self, request: Request) -> None:
        holder = self._holder(request)
        if holder is None:
            return
        self._end_matches()
        self._let_go(holder)
        del self._holders[request.id]
        request.block_table.clear()

    def _emit_release(self, request: Request, freed: Sequence[int]) -> None:
        if self.events:
            self.events.emit(BlocksReleased(request.id, tuple(request.block_table), tuple(freed)))

    def reset(self) -> bool:
        if self._holders:
            return False
        self._end_matches()
        self._forget_all()
        if self.events:
            self.events.emit(CacheReset(tuple(self.pool.free_queue)))
        return True

    def shrink(self, count: int) -> bool:
        """Take `count` blocks out of the pool for ever, evicting cached ones if necessary. Returns `False`, with
        nothing changed, if fewer are free. Raises `InvalidArgument` unless at least one block stays."""
        if require_int("count", count, 1) >= self.capacity:
            raise InvalidArgument(f"count: {count} of {self.capacity} blocks are to go, and at least one must stay")
        if count > self.num_free:
            return False
        self._end_matches()
        blocks = self._take(None, count)
        self.pool.remove(blocks)
        if self.events:
            self.events.emit(PoolShrunk(tuple(blocks)))
        return True

    # Looking

    def _end_of(self, request: Request, num_tokens: int, limit: int) -> MatchEnd:
        """Why a match of `num_tokens` tokens ends, if at most `limit` tokens (whole blocks) were looked up."""
        if num_tokens < limit:
            return "no_entry"
        if limit < (request.num_tokens - 1) // self.block_size * self.block_size:
            return "skipped"
        if limit == 0:
            return "too_short"
        return "last_token" if request.num_tokens % self.block_size == 0 else "whole"

    def snapshot(self) -> CacheSnapshot:
        return CacheSnapshot(
            block_size=self.block_size,
            num_blocks=self.pool.num_blocks,
            free=tuple(self.pool.free_queue),
            removed=tuple(self.pool.removed),
            tables={id: tuple(h.request.block_table) for id, h in self._holders.items() if h.request.block_table},
        )

    def check(self) -> None:
        for id, holder in self._holders.items():
            table = holder.request.block_table
            if len(table) != len(set(table)) or NULL_BLOCK in table:
                raise CorruptState(f"the block table of request {id!r} names a block twice or the null block: {table}")
            if not 0 <= holder.num_published <= len(table):
                raise CorruptState(f"request {id!r} has published {holder.num_published} of {len(table)} blocks")

    def _table_counts(self) -> Counter[int]:
        """For each held block, the number of block tables that name it."""
        return Counter(block for holder in self._holders.values() for block in holder.request.block_table)

    # The hooks of a subclass

    @abstractmethod
    def _num_unheld(self, match: Match) -> int:
        """The number of matched blocks that no request holds: adopting these reduces `num_free`."""

    @abstractmethod
    def _hold(self, holder: Holder, match: Match) -> None:
        """Keep the matched blocks from eviction until the holder gives them back."""

    @abstractmethod
    def _take(self, request: Request | None, count: int) -> list[int]:
        """Take `count` fresh blocks for `request` (`None`: to remove them), evicting cached ones if necessary. They
        fit: the caller has checked."""

    @abstractmethod
    def _let_go(self, holder: Holder) -> None:
        """Unpublish the blocks that were not computed, free those of the table, and emit `BlocksReleased`."""

    @abstractmethod
    def _forget_all(self) -> None:
        """Make every block unfindable. The caller has checked that no request holds one."""


class NoCache(PagedCache):
    """Paged KV memory without a prefix cache: every lookup misses. The control arm of every experiment."""

    finds = False

    def __init__(
        self,
        num_blocks: int,
        block_size: int = 16,
        *,
        pool: BlockPool | None = None,
        events: EventStream | None = None,
    ) -> None:
        super().__init__(num_blocks, block_size, pool=pool, events=events)

    def lookup(self, request: Request) -> Match:
        return Match(0, [], "skipped", request_id=request.id, version=self._version)

    def publish(self, request: Request, num_tokens: int) -> None:
        """Does nothing: no block ever becomes findable."""

    def evict(self, num_blocks: int) -> int:
        return 0

    def check(self) -> None:
        super().check()
        self.pool.check(self._table_counts())

    def _num_unheld(self, match: Match) -> int:
        return 0

    def _hold(self, holder: Holder, match: Match) -> None:
        raise AssertionError("a cache that never matches has nothing to hold")

    def _take(self, request: Request | None, count: int) -> list[int]:
        return self.pool.allocate(count).blocks

    def _let_go(self, holder: Holder) -> None:
        request = holder.request
        self._emit_release(request, self.pool.free(reversed(request.block_table)))

    def _forget_all(self) -> None:
        self.pool.reset()
