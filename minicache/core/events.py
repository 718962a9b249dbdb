"""The event types: one event for each change of cache or scheduler state.

Caches and the scheduler emit events, and the simulator emits `PoolReplaced`; views, transcripts, metrics and logs
consume them. An event holds everything that a consumer needs to apply the change: `views.py` rebuilds the whole state
from this stream alone.

`request` is a request's id, `blocks` are block ids, `node` is a radix node's id (0 is the root), `hashes` are digests,
and `tick` is the radix tree's counter of calls (recency is never a clock). Lengths are in tokens.
"""

from dataclasses import dataclass, field
from typing import Literal

from minicache.core.prefix_cache import MatchEnd
from minicache.core.request import Namespace

PreemptionCause = Literal["no_free_block", "step_failed", "preempt_all"]


@dataclass(frozen=True, slots=True)
class Event:
    """The base of all events. `seq` counts events from 0, `step` is the scheduler's step (0 before the first), `time`
    is in seconds of the stream's clock.

    `EventStream.emit` stamps these three, once. Nothing changes an event afterwards.
    """

    seq: int = field(default=-1, init=False)
    step: int = field(default=0, init=False)
    time: float = field(default=0.0, init=False)


# The scheduler's step


@dataclass(frozen=True, slots=True)
class StepStarted(Event):
    """`Scheduler.schedule()` begins."""


@dataclass(frozen=True, slots=True)
class StepFinished(Event):
    """`Scheduler.update()` is done. The model computed `num_tokens` tokens in this step."""

    num_tokens: int


# The life of a request


@dataclass(frozen=True, slots=True)
class RequestArrived(Event):
    """A new request waits. The fields are those of `Request`; `tokens` are its prompt."""

    request: str
    tokens: tuple[int, ...]
    max_tokens: int
    namespace: Namespace
    priority: int
    arrival: float
    prompt_logprobs: int | None = None
    skip_cache_read: bool = False
    stop_tokens: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestRejected(Event):
    """The request was refused when it arrived: it can need `needed` blocks, and the pool has only `capacity`."""

    request: str
    num_prompt_tokens: int
    max_tokens: int
    needed: int
    capacity: int


@dataclass(frozen=True, slots=True)
class QueueReordered(Event):
    """The queue policy changed the order of the waiting queue. `requests` is the new order, head first."""

    requests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AdmissionFailed(Event):
    """The request at the head of the queue does not fit: it needs `needed` blocks, reserve included, and only `free`
    are free."""

    request: str
    needed: int
    free: int


@dataclass(frozen=True, slots=True)
class RequestAdmitted(Event):
    """The request runs from now on. It hit `num_cached_tokens` tokens, and this step computes its next `num_tokens`.
    `resumed`: it ran before and was preempted."""

    request: str
    num_cached_tokens: int
    num_tokens: int
    resumed: bool


@dataclass(frozen=True, slots=True)
class TokensComputed(Event):
    """The model computed the KV of positions `[start, start + num_tokens)`; it is in the request's blocks now."""

    request: str
    start: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class TokensSampled(Event):
    """The request's output grew by `tokens`. Their KV is not computed yet."""

    request: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RequestPreempted(Event):
    """The request gives up its blocks and waits again: at the front of the queue if `front`, else at the back.

    `cause` is `no_free_block` (the request `needed_by` needed a block), `step_failed` (the model run raised `error`,
    given as its `repr`), or `preempt_all` (all running requests were preempted to reset or replace the cache).
    """

    request: str
    front: bool
    cause: PreemptionCause
    needed_by: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RequestFinished(Event):
    """The request's output is complete. `reason` is its `finish_reason`."""

    request: str
    reason: str


@dataclass(frozen=True, slots=True)
class RequestAborted(Event):
    """The caller dropped the request. If the step in flight computes for it, its blocks are released when that step
    ends."""

    request: str


# Blocks


@dataclass(frozen=True, slots=True)
class PrefixMatched(Event):
    """A lookup found `num_tokens` tokens and ended for the reason `end` (see `Match`). Radix: the match ends at `node`,
    and the nodes on its path were refreshed at `tick`. Hash chain: both are 0."""

    request: str
    node: int
    tick: int
    num_tokens: int
    end: MatchEnd


@dataclass(frozen=True, slots=True)
class BlocksAdopted(Event):
    """Matched blocks became the beginning of the request's block table."""

    request: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlocksAllocated(Event):
    """Fresh blocks were taken from the head of the free queue and added to the end of the request's block table."""

    request: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlocksPublished(Event):
    """Whole blocks became findable: they hold `tokens`, which are the request's from position `start` on.

    Hash chain: `hashes` holds one digest per block, and `parent` is the digest of the block before the first of them
    (`None`: it is the first of the prompt). Radix: `node` is the new leaf and `parent_node` its parent.
    """

    request: str
    start: int
    blocks: tuple[int, ...]
    tokens: tuple[int, ...]
    namespace: Namespace
    hashes: tuple[bytes, ...] = ()
    parent: bytes | None = None
    node: int | None = None
    parent_node: int | None = None


@dataclass(frozen=True, slots=True)
class BlocksReleased(Event):
    """The request gave its whole block table, `blocks`, back. `freed` lists the blocks that became free, in this order.

    Hash chain: the blocks that no other request holds, last first. Radix: the private blocks, last first; the tree
    keeps the others.
    """

    request: str
    blocks: tuple[int, ...]
    freed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlocksUnpublished(Event):
    """Blocks of the request that were published and then not computed are no longer findable."""

    request: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlocksEvicted(Event):
    """Free blocks lost their hashes and are no longer findable. `request` needed the blocks (`None`: `evict()` or
    `shrink()` was called)."""

    blocks: tuple[int, ...]
    hashes: tuple[bytes, ...]
    request: str | None


@dataclass(frozen=True, slots=True)
class CacheReset(Event):
    """No block is findable any more. `free` is the free queue afterwards."""

    free: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PoolReplaced(Event):
    """A new, empty cache replaced the old one. Its pool has `num_blocks` blocks, the null block included, of
    `block_size` tokens. No request is running and no step is in flight at this moment."""

    num_blocks: int
    block_size: int


@dataclass(frozen=True, slots=True)
class PoolShrunk(Event):
    """`blocks`, which were free, are no longer part of the pool: until it is replaced, no request gets them."""

    blocks: tuple[int, ...]


# The radix tree


@dataclass(frozen=True, slots=True)
class NodeSplit(Event):
    """`node` was cut after its first `at` tokens. The new node `upper` holds these and is now the parent of `node`."""

    node: int
    upper: int
    at: int
    tick: int


@dataclass(frozen=True, slots=True)
class PathInserted(Event):
    """The request's tokens are in the tree, on the path to `node`. Every node on the path was refreshed at `tick` and
    raised to at least `priority`. Each that ends after the first `start` tokens, which the same request had inserted
    before, counts one more hit."""

    request: str
    node: int
    start: int
    tick: int
    priority: int


@dataclass(frozen=True, slots=True)
class LockMoved(Event):
    """The request's lock is now on `node` and its ancestors, and nowhere else (`None`: it holds no lock)."""

    request: str
    node: int | None


@dataclass(frozen=True, slots=True)
class DuplicatesFreed(Event):
    """Blocks that the request computed were freed, because another request had published the same tokens before it."""

    request: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlockTableRewritten(Event):
    """`block_table[start : start + len(blocks)]` of the request is now `blocks`, the tree's own."""

    request: str
    start: int
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodesEvicted(Event):
    """Leaves were removed from the tree, in this order, and their blocks freed. `request` needed the blocks (`None`:
    `evict()` or `shrink()` was called)."""

    nodes: tuple[int, ...]
    blocks: tuple[int, ...]
    request: str | None
