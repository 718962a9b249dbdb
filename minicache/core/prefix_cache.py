"""The interface of every prefix cache.

The calls in the life of a request, and what each does to its blocks:

    lookup --> allocate(match) --> publish --> allocate(None) --> publish --> ... --> release
    find       adopt, then take    let others   take blocks for                      give all
               fresh blocks        find them    the next chunk                       blocks back
                                                or token

`check()` and `snapshot()` may be called at any time.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from minicache.core.request import Namespace, Request

MatchEnd = Literal["whole", "last_token", "too_short", "skipped", "no_entry"]


@dataclass(frozen=True, slots=True)
class Match:
    """The result of a lookup: the KV of the first `num_tokens` tokens is in `blocks`.

    Valid until the next `allocate`, `publish`, `release`, `evict` or `reset` of the same cache; `allocate` raises
    `StaleMatch` for an older one.

    `end` is the reason why no more matched:
    `no_entry`    the next block is not in the cache;
    `whole`       every whole block matched, and the tokens left over do not fill a block;
    `last_token`  every block matched but the last, which may not be reused: the model must compute at least one token
                  to have logits;
    `too_short`   the request has too few tokens for one reusable block;
    `skipped`     the request or the cache reads nothing, or the request reads nothing from the first position whose
                  logits it needs.

    `node` is the radix node where the match ends; only the cache that returned it may use it. `loads` is always empty:
    there is no host tier yet. `request_id` and `version` are how `allocate` recognises a stale match.
    """

    num_tokens: int
    blocks: list[int]
    end: MatchEnd
    node: object = None
    loads: tuple[()] = ()
    request_id: str = ""
    version: int = -1


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """One radix node. `tokens` and `blocks` are its own part of the path, `parent` is the id of the node above (0: the
    root), `locks` counts the locks at or below the node, `tick` is its last access."""

    parent: int | None
    namespace: Namespace
    tokens: tuple[int, ...]
    blocks: tuple[int, ...]
    locks: int
    tick: int
    hits: int
    priority: int


@dataclass(frozen=True, slots=True)
class CacheSnapshot:
    """The contents of a cache and the blocks that each request holds: a copy, which later calls do not change.

    `block_size` is in tokens; `num_blocks` counts the null block too. `free` is the free queue, head first. `removed`
    lists the blocks that were taken out of the pool, in this order. `tables` maps each request that holds blocks to its
    block table. Only a hash chain fills `hashes` (findable block -> its hash) and `copies` (hash -> its blocks, first
    published first). Only a radix cache fills `nodes` (by id, without the root 0) and `locks` (request -> the node that
    it locks).
    """

    block_size: int
    num_blocks: int
    free: tuple[int, ...]
    removed: tuple[int, ...] = ()
    tables: dict[str, tuple[int, ...]] = field(default_factory=dict)
    hashes: dict[int, bytes] = field(default_factory=dict)
    copies: dict[bytes, tuple[int, ...]] = field(default_factory=dict)
    nodes: dict[int, NodeSnapshot] = field(default_factory=dict)
    locks: dict[str, int] = field(default_factory=dict)

    def owners(self, block: int) -> list[str]:
        """The requests whose block tables name `block`."""
        return [request for request, table in self.tables.items() if block in table]


class PrefixCache(Protocol):
    """The interface of `NoCache`, `HashChainCache` and `RadixCache`. Not thread-safe.

    Sizes are in blocks unless a name says tokens. `allocate`, `publish`, `release`, `make_room`, `evict` and `reset`
    make every earlier `Match` stale. The first three take the caller's own `Request` object: an equal id of another
    request that holds blocks raises `InvalidArgument`, and a block table of another cache `UnknownRequest`.
    """

    block_size: int  # tokens in a block
    finds: bool  # whether a lookup can ever find anything
    publishes_scheduled: bool  # whether tokens may be published before they are computed

    @property
    def lookup_refreshes(self) -> bool:
        """Whether a lookup keeps what it finds from being evicted for a while: in a radix cache with `lru`."""
        ...

    @property
    def capacity(self) -> int:
        """The most blocks that requests can hold: all but the null block."""
        ...

    @property
    def num_free(self) -> int:
        """Blocks that `allocate` can hand out now, cached blocks that no request holds included."""
        ...

    def lookup(self, request: Request) -> Match:
        """Find the longest prefix of the request that can be reused: whole blocks, at most `request.num_tokens - 1`
        tokens, and only from the request's namespace.

        It may refresh recency and split radix nodes. It never changes what can be found, and takes no reference: the
        blocks can be evicted until `allocate` adopts them.
        """
        ...

    def demand(self, request: Request, match: Match | None, num_tokens: int) -> int:
        """The number of blocks by which `allocate` with the same arguments reduces `num_free`: fresh blocks, and
        matched blocks that no request holds. Pure."""
        ...

    def allocate(self, request: Request, match: Match | None, num_tokens: int) -> bool:
        """Give the request blocks for `num_tokens` more tokens. Returns `False`, with nothing changed, if too few
        blocks are free.

        With a match (admission) it adopts the matched blocks *first*, so that making room cannot evict them, then takes
        fresh blocks, and sets `num_computed_tokens` to `match.num_tokens`. With `None` (a later chunk, decode) it takes
        the blocks that `num_tokens` tokens after `num_computed_tokens` need beyond the block table, possibly none.
        Apart from `make_room`, `evict` and `reset`, this is the only call that evicts.

        Raises `StaleMatch` for a match of an earlier state, another cache or another request, and `InvalidArgument` for
        a match given for a request that holds blocks already.
        """
        ...

    def publish(self, request: Request, num_tokens: int) -> None:
        """Make the whole blocks of the first `num_tokens` tokens findable.

        Monotone: it never makes a block unfindable, and a smaller `num_tokens` than before changes nothing that can be
        found. Idempotent, except that a repeated call refreshes recency and hit counts in a radix cache. A radix cache
        may rewrite `request.block_table`, so do not keep copies of it. Raises `InvalidArgument` if the request holds no
        blocks for that many tokens, or, in a radix cache, has not computed them.
        """
        ...

    def release(self, request: Request) -> None:
        """Make every block after the first `num_computed_tokens` tokens unfindable, then give all blocks back, last
        first, and clear `request.block_table`.

        Idempotent, and legal for a request that never held a block. Blocks that other requests hold stay held.
        """
        ...

    def make_room(self, num_blocks: int, request: Request | None = None) -> bool:
        """Evict until `num_blocks` blocks hold nothing that is cached, or nothing more can be evicted. Returns whether
        `allocate` can hand out that many now. `request`, for the event, is the first one that needs the room.

        Only a radix cache does this ahead of `allocate`. A hash chain evicts block by block, as it hands them out.
        """
        ...

    def evict(self, num_blocks: int) -> int:
        """Forget `num_blocks` cached blocks that no request holds, in eviction order. Returns how many blocks it
        forgot: fewer if fewer are cached, and more in a radix cache, which evicts whole nodes."""
        ...

    def reset(self) -> bool:
        """Forget everything cached. Returns `False`, with nothing changed, while a request holds blocks."""
        ...

    def snapshot(self) -> CacheSnapshot:
        """A copy of the whole state. Pure."""
        ...

    def check(self) -> None:
        """Count everything again from scratch and compare. Raises `CorruptState` at the first disagreement. Pure."""
        ...
