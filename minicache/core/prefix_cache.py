"""What every prefix cache does, whatever it is made of.

The life of a request in calls, and what each does to the blocks:

    lookup --> allocate(match) --> publish --> allocate(None) --> publish --> ... --> release
    find       adopt, then take    let others   the next chunk                       give all back
                                   find it      or decode

`check()` may be called at any time.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from minicache.core.request import Namespace, Request

MatchEnd = Literal["whole", "last_token", "too_short", "skipped", "no_entry"]


@dataclass(frozen=True, slots=True)
class Match:
    """What a lookup found: `num_tokens` tokens in `blocks`. Valid until the next allocate, publish, release, evict or
    reset of that cache; using it later raises `StaleMatch`.

    `end` says why it goes no further:
    `no_entry`    the next block is not in the cache;
    `whole`       every whole block of the request was found, only a partial tail is left;
    `last_token`  every block that may be reused was found; the last one may not, for one token must be computed to
                  have logits;
    `too_short`   the request has no block that could be reused;
    `skipped`     the request (or the cache) does not read, or not beyond the first prompt log-probability it wants.

    `node` is the radix node where the match ends, to be locked; opaque. `loads` is empty until there is a host tier.
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
    """One radix node. `tokens` and `blocks` are its own part of the path; `parent` is `None` for the root."""

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
    """What is in a cache and who holds what, as values.

    `free` is the free queue, head first. `tables` maps each request that holds blocks to its block table. Hash chain:
    `hashes` maps findable blocks to their hash, `copies` each hash to its blocks, first published first. Radix:
    `nodes` by id (the root, 0, left out) and `locks`, request -> node.
    """

    block_size: int
    num_blocks: int
    free: tuple[int, ...]
    tables: dict[str, tuple[int, ...]] = field(default_factory=dict)
    hashes: dict[int, bytes] = field(default_factory=dict)
    copies: dict[bytes, tuple[int, ...]] = field(default_factory=dict)
    nodes: dict[int, NodeSnapshot] = field(default_factory=dict)
    locks: dict[str, int] = field(default_factory=dict)

    def owners(self, block: int) -> list[str]:
        """The requests whose block tables name `block`."""
        return [request for request, table in self.tables.items() if block in table]


class PrefixCache(Protocol):
    """The interface of `NoCache`, `HashChainCache` and `RadixCache`. Sizes are in blocks unless a name says tokens."""

    block_size: int
    finds: bool  # whether a lookup can ever find anything
    publishes_scheduled: bool  # whether tokens may be published before they are computed

    @property
    def capacity(self) -> int:
        """Blocks that requests can hold at all: the pool without the null block."""
        ...

    @property
    def num_free(self) -> int:
        """Blocks that `allocate` could hand out now, cached ones that nobody holds included."""
        ...

    def lookup(self, request: Request) -> Match:
        """The longest prefix of the request that can be reused: whole blocks, and at most `num_tokens - 1` tokens.

        It may refresh recency and split radix nodes; it never changes what can be found.
        """
        ...

    def demand(self, request: Request, match: Match | None, num_tokens: int) -> int:
        """Blocks that `allocate` with these arguments takes out of `num_free`: fresh ones, and matched ones that
        nobody holds. Pure."""
        ...

    def allocate(self, request: Request, match: Match | None, num_tokens: int) -> bool:
        """Make room for `num_tokens` more tokens; `False`, with nothing changed, if they do not fit.

        With a match (admission) the matched blocks are adopted *first*, so that making room cannot evict them, and
        `num_computed_tokens` becomes `match.num_tokens`. Without one it takes what `num_tokens` beyond
        `num_computed_tokens` need, possibly nothing. The only call that evicts by itself. Raises `StaleMatch`.
        """
        ...

    def publish(self, request: Request, num_tokens: int) -> None:
        """Make the whole blocks of the first `num_tokens` tokens findable. Monotone and idempotent.

        The radix cache may rewrite the request's block table: block tables are not append-only.
        """
        ...

    def release(self, request: Request) -> None:
        """Make every block beyond `num_computed_tokens` unfindable, then give all blocks back, last first.

        Idempotent, and legal for a request that never held a block.
        """
        ...

    def evict(self, num_blocks: int) -> int:
        """Forget up to `num_blocks` (radix: or a few more) cached blocks that nobody holds, in eviction order; returns
        how many were forgotten."""
        ...

    def reset(self) -> bool:
        """Forget everything; `False`, with nothing changed, while a request holds blocks."""
        ...

    def snapshot(self) -> CacheSnapshot:
        """The state as values. Changes nothing."""
        ...

    def check(self) -> None:
        """Recompute every count, reference and size from scratch; raises `CorruptState` at the first disagreement."""
        ...
