"""The event types: each change of cache or scheduler state, told once.

Caches and scheduler emit; views, transcripts, metrics and logs consume. An event says what changed in terms a consumer
can apply without knowing the rest: `views.py` rebuilds the whole state from this stream alone.

Units: `blocks` are block ids, `node` is a radix node's id (0 is the root), `request` is a request's id, `tick` is the
radix tree's counter of calls (recency is never a clock).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from minicache.core.prefix_cache import MatchEnd
from minicache.core.request import Namespace

Sink = Callable[["Event"], None]


@dataclass(frozen=True, slots=True)
class Event:
    """`seq` counts events from 0, `step` is the scheduler's step, `time` is in seconds of the stream's clock.

    The three are stamped by `EventStream.emit`, once, and never change afterwards.
    """

    seq: int = field(default=-1, init=False)
    step: int = field(default=0, init=False)
    time: float = field(default=0.0, init=False)


# The scheduler's step.


@dataclass(frozen=True, slots=True)
class StepStarted(Event):
    """`schedule()` begins."""


@dataclass(frozen=True, slots=True)
class StepFinished(Event):
    """`update()` is done; `num_tokens` were computed in this step."""

    num_tokens: int


# A request's life.


@dataclass(frozen=True, slots=True)
class RequestArrived(Event):
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
    """The request was refused on arrival."""

    request: str
    reason: str


@dataclass(frozen=True, slots=True)
class QueueReordered(Event):
    """The queue policy changed the order of waiting; `requests` is the new order, first to be admitted first."""

    requests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AdmissionFailed(Event):
    """The first waiting request does not fit: it needs `needed` blocks (reserve included) and `free` could be had."""

    request: str
    needed: int
    free: int


@dataclass(frozen=True, slots=True)
class RequestAdmitted(Event):
    """`num_cached_tokens` were found, `num_tokens` will be computed in this step; `resumed` after a preemption."""

    request: str
    num_cached_tokens: int
    num_tokens: int
    resumed: bool


@dataclass(frozen=True, slots=True)
class TokensComputed(Event):
    """The KV of positions `[start, start + num_tokens)` is in the cache."""

    request: str
    start: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class TokensSampled(Event):
    request: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RequestPreempted(Event):
    """The request gave up its KV and waits again, at the `front` of the queue or at its back. `why` is a sentence."""

    request: str
    front: bool
    why: str


@dataclass(frozen=True, slots=True)
class RequestFinished(Event):
    request: str
    reason: str


@dataclass(frozen=True, slots=True)
class RequestAborted(Event):
    request: str


# Blocks.


@dataclass(frozen=True, slots=True)
class PrefixMatched(Event):
    """A lookup found `num_tokens` tokens, down to `node`, and ended for the reason `end` (see `Match`)."""

    request: str
    node: int
    tick: int
    num_tokens: int
    end: MatchEnd


@dataclass(frozen=True, slots=True)
class BlocksAdopted(Event):
    """Matched blocks became the head of the request's block table."""

    request: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlocksAllocated(Event):
    """Fresh blocks were taken from the head of the free queue and added to the request's block table."""

    request: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlocksPublished(Event):
    """Whole blocks became findable.

    Hash chain: `hashes` holds one digest a block and `parent` is the digest of the block before. Radix: `node` is the
    new leaf, `parent_node` the node it hangs on.
    """

    request: str
    blocks: tuple[int, ...]
    tokens: tuple[int, ...]
    namespace: Namespace
    hashes: tuple[bytes, ...] = ()
    parent: bytes | None = None
    node: int | None = None
    parent_node: int | None = None


@dataclass(frozen=True, slots=True)
class BlocksReleased(Event):
    """The request gave its whole block table back. `freed` went to the free queue, in this order.

    Hash chain: the blocks that nobody else holds, last first. Radix: the private ones; the tree keeps the rest.
    """

    request: str
    blocks: tuple[int, ...]
    freed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlocksUnpublished(Event):
    """Blocks that were never computed are findable no more."""

    request: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlocksEvicted(Event):
    """Free blocks lost their hash: they can be found no more. `request` took their place, if a request did."""

    blocks: tuple[int, ...]
    hashes: tuple[bytes, ...]
    request: str | None

    @property
    def why(self) -> str:
        """In words that name the request: for operators."""
        return _evicted_for(self.request)


@dataclass(frozen=True, slots=True)
class CacheReset(Event):
    """Everything cached was forgotten. `free` is the free queue afterwards."""

    free: tuple[int, ...]


# The radix tree.


@dataclass(frozen=True, slots=True)
class NodeSplit(Event):
    """`node` was cut after its first `at` tokens: the new node `upper` holds them and became its parent."""

    node: int
    upper: int
    at: int
    tick: int


@dataclass(frozen=True, slots=True)
class PathInserted(Event):
    """The request's tokens now lead to `node`. Every node on the path was refreshed at `tick`, raised to `priority`,
    and counted as hit if it ends beyond the `start` tokens that the same request had inserted before."""

    request: str
    node: int
    start: int
    tick: int
    priority: int


@dataclass(frozen=True, slots=True)
class LockMoved(Event):
    """The request's lock is on `node` and all its ancestors now (`None`: it holds no lock)."""

    request: str
    node: int | None


@dataclass(frozen=True, slots=True)
class DuplicatesFreed(Event):
    """Blocks the request computed although another request had published the same tokens meanwhile."""

    request: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlockTableRewritten(Event):
    """`block_table[start : start + len(blocks)]` now names the tree's blocks."""

    request: str
    start: int
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodesEvicted(Event):
    """Leaves were removed from the tree, in this order, and their blocks freed, for `request`, if for a request."""

    nodes: tuple[int, ...]
    blocks: tuple[int, ...]
    request: str | None

    @property
    def why(self) -> str:
        """In words that name the request: for operators."""
        return _evicted_for(self.request)


def _evicted_for(request: str | None) -> str:
    return "evict() was called" if request is None else f"{request} needed the room"


class EventStream:
    """Stamps events and hands them to its sinks. It is false while nobody listens, and then no event is even built:

    `if self.events: self.events.emit(BlocksAdopted(...))`
    """

    def __init__(self, *sinks: Sink, clock: Callable[[], float] = time.monotonic) -> None:
        self.sinks = list(sinks)
        self.clock = clock
        self.step = 0
        self.seq = 0

    def __bool__(self) -> bool:
        return bool(self.sinks)

    def emit(self, event: Event) -> None:
        """Stamp `event` and hand it to every sink, in order. An error in a sink reaches the caller."""
        object.__setattr__(event, "seq", self.seq)
        object.__setattr__(event, "step", self.step)
        object.__setattr__(event, "time", self.clock())
        self.seq += 1
        for sink in self.sinks:
            sink(event)
