"""State rebuilt from events alone, and how consumers follow it.

    event --> view.apply(event) --> follower.on(event, view)
              the state after it    what else a consumer keeps about the run

A view folds the event stream and never asks a cache or the scheduler. A property test holds the law that the view
equals the snapshot after every public call; everything that draws, explains or measures depends on it. To go back, fold
again from an earlier state.

Only views fold block tables, requests and queues. A consumer that needs these is a `Follower`: it receives each event
with the view, which has applied the event already.
"""
# ruff: noqa: N802 - a handler is named after its event type

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from minicache.core import events as ev
from minicache.core.block_pool import FreeQueue
from minicache.core.prefix_cache import CacheSnapshot, NodeSnapshot
from minicache.core.request import Namespace
from minicache.core.scheduler import SchedulerSnapshot

ROOT = 0

Handlers = dict[type[ev.Event], Callable[..., None]]


def handlers_of(consumer: type) -> Handlers:
    """The methods `on_EventType` of a class, by event type. The class ignores all other events."""
    found = ((kind, getattr(consumer, f"on_{kind.__name__}", None)) for kind in ev.Event.__subclasses__())
    return {kind: handler for kind, handler in found if handler is not None}


class View:
    """Folds events: a subclass has a method `on_EventType(event)` for each event type that changes its state."""

    _handlers: ClassVar[Handlers] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._handlers = handlers_of(cls)

    def apply(self, event: ev.Event) -> None:
        """Fold one event. Call it with every event, in order."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(self, event)

    def apply_all(self, events: Iterable[ev.Event]) -> None:
        """Fold `events`, in order."""
        for event in events:
            self.apply(event)

    __call__ = apply  # a view is a sink


@dataclass(slots=True)
class NodeView:
    """One radix node, with the fields of `NodeSnapshot`."""

    parent: int
    namespace: Namespace
    tokens: tuple[int, ...]
    blocks: tuple[int, ...]
    tick: int
    priority: int
    locks: int = 0
    hits: int = 0


@dataclass
class CacheView(View):
    """The state of a cache, hash chain or radix, with the fields of `CacheSnapshot`. `num_holders` maps each held block
    to the number of block tables that name it."""

    num_blocks: int
    block_size: int
    free: FreeQueue = field(init=False)
    removed: list[int] = field(default_factory=list)
    tables: dict[str, list[int]] = field(default_factory=dict)
    num_holders: Counter[int] = field(default_factory=Counter)
    hashes: dict[int, bytes] = field(default_factory=dict)
    copies: dict[bytes, dict[int, None]] = field(default_factory=dict)
    nodes: dict[int, NodeView] = field(default_factory=dict)
    locks: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = FreeQueue(range(1, self.num_blocks))

    @property
    def capacity(self) -> int:
        """Blocks that requests can hold: neither the null block nor the removed blocks count."""
        return self.num_blocks - 1 - len(self.removed)

    def snapshot(self) -> CacheSnapshot:
        """A copy of the state, as `PrefixCache.snapshot()` returns it."""
        return CacheSnapshot(
            block_size=self.block_size,
            num_blocks=self.num_blocks,
            free=tuple(self.free),
            removed=tuple(self.removed),
            tables={request: tuple(table) for request, table in self.tables.items()},
            hashes=dict(self.hashes),
            copies={hash: tuple(blocks) for hash, blocks in self.copies.items()},
            nodes={
                id: NodeSnapshot(n.parent, n.namespace, n.tokens, n.blocks, n.locks, n.tick, n.hits, n.priority)
                for id, n in self.nodes.items()
            },
            locks=dict(self.locks),
        )

    # Block tables and the free queue

    def hold(self, blocks: Iterable[int]) -> None:
        """Count one more block table that names each of these blocks."""
        self.num_holders.update(blocks)

    def let_go(self, blocks: Iterable[int]) -> None:
        """Count one block table less that names each of these blocks."""
        for block in blocks:
            if self.num_holders[block] > 1:
                self.num_holders[block] -= 1
            else:
                del self.num_holders[block]

    def on_BlocksAdopted(self, event: ev.BlocksAdopted) -> None:
        self.tables.setdefault(event.request, []).extend(event.blocks)
        self.hold(event.blocks)
        for block in event.blocks:
            if block in self.free:
                self.free.remove(block)

    def on_BlocksAllocated(self, event: ev.BlocksAllocated) -> None:
        self.tables.setdefault(event.request, []).extend(event.blocks)
        self.hold(event.blocks)
        for block in event.blocks:
            self.free.remove(block)

    def on_BlocksReleased(self, event: ev.BlocksReleased) -> None:
        held = self.tables.pop(event.request, [])
        if tuple(held) != event.blocks:
            raise ValueError("it releases other blocks than the request holds")
        self.let_go(held)
        self._free(event.freed)

    def _free(self, blocks: tuple[int, ...]) -> None:
        """Put blocks into the free queue as `BlockPool.free` does: findable ones at the tail, others at the head."""
        self.free.prepend([block for block in blocks if block not in self.hashes])
        self.free.append(block for block in blocks if block in self.hashes)

    # Findable blocks of a hash chain

    def on_BlocksPublished(self, event: ev.BlocksPublished) -> None:
        for block, hash in zip(event.blocks, event.hashes, strict=bool(event.hashes)):
            self.hashes[block] = hash
            self.copies.setdefault(hash, {})[block] = None
        if event.node is not None and event.parent_node is not None:
            self.nodes[event.node] = NodeView(
                event.parent_node, event.namespace, event.tokens, event.blocks, tick=0, priority=0
            )

    def _forget(self, blocks: tuple[int, ...]) -> None:
        for block in blocks:
            hash = self.hashes.pop(block)
            del self.copies[hash][block]
            if not self.copies[hash]:
                del self.copies[hash]

    def on_BlocksUnpublished(self, event: ev.BlocksUnpublished) -> None:
        self._forget(event.blocks)

    def on_BlocksEvicted(self, event: ev.BlocksEvicted) -> None:
        self._forget(event.blocks)

    def on_CacheReset(self, event: ev.CacheReset) -> None:
        self.hashes.clear()
        self.copies.clear()
        self.nodes.clear()
        self.free = FreeQueue(event.free)

    def on_PoolReplaced(self, event: ev.PoolReplaced) -> None:
        self.num_blocks, self.block_size = event.num_blocks, event.block_size
        self.free = FreeQueue(range(1, self.num_blocks))
        for part in (self.removed, self.tables, self.num_holders, self.hashes, self.copies, self.nodes, self.locks):
            part.clear()

    def on_PoolShrunk(self, event: ev.PoolShrunk) -> None:
        for block in event.blocks:
            self.free.remove(block)
        self.removed.extend(event.blocks)

    # The radix tree

    def _path(self, node: int) -> list[NodeView]:
        """The node and its ancestors, bottom up, without the root. Raises `ValueError` if a log made a circle."""
        path: list[NodeView] = []
        while node != ROOT:
            if len(path) == len(self.nodes):
                raise ValueError("a node is its own ancestor")
            path.append(self.nodes[node])
            node = self.nodes[node].parent
        return path

    def on_PrefixMatched(self, event: ev.PrefixMatched) -> None:
        for node in self._path(event.node):
            node.tick = event.tick

    def on_NodeSplit(self, event: ev.NodeSplit) -> None:
        lower = self.nodes[event.node]
        at = event.at // self.block_size
        self.nodes[event.upper] = replace(
            lower, tokens=lower.tokens[: event.at], blocks=lower.blocks[:at], tick=event.tick
        )
        lower.parent, lower.tick = event.upper, event.tick
        lower.tokens, lower.blocks = lower.tokens[event.at :], lower.blocks[at:]

    def on_PathInserted(self, event: ev.PathInserted) -> None:
        path = self._path(event.node)
        end = sum(len(node.tokens) for node in path)
        for node in path:
            node.tick = event.tick
            node.priority = max(node.priority, event.priority)
            node.hits += end > event.start
            end -= len(node.tokens)

    def on_LockMoved(self, event: ev.LockMoved) -> None:
        for node in self._path(event.node or ROOT):
            node.locks += 1
        for node in self._path(self.locks.pop(event.request, ROOT)):
            node.locks -= 1
        if event.node is not None:
            self.locks[event.request] = event.node

    def on_DuplicatesFreed(self, event: ev.DuplicatesFreed) -> None:
        self._free(event.blocks)

    def on_BlockTableRewritten(self, event: ev.BlockTableRewritten) -> None:
        table, end = self.tables[event.request], event.start + len(event.blocks)
        self.hold(event.blocks)
        self.let_go(table[event.start : end])
        table[event.start : end] = event.blocks

    def on_NodesEvicted(self, event: ev.NodesEvicted) -> None:
        for node in event.nodes:
            del self.nodes[node]
        self._free(event.blocks)


@dataclass(slots=True)
class RequestView:
    """One request, with fields as in `Request`; `tokens` are its prompt and output so far."""

    tokens: list[int]
    num_prompt_tokens: int
    max_tokens: int
    namespace: Namespace
    status: str = "waiting"
    num_computed_tokens: int = 0
    num_preemptions: int = 0
    num_cached_tokens: int | None = None


@dataclass
class EngineView(CacheView):
    """The state of a cache and of its scheduler. `requests` are those that have not ended, `ended` those that finished
    or were aborted."""

    step: int = 0
    requests: dict[str, RequestView] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    running: list[str] = field(default_factory=list)
    ended: dict[str, RequestView] = field(default_factory=dict)

    def scheduler_snapshot(self) -> SchedulerSnapshot:
        """A copy of the scheduler's state, as `Scheduler.snapshot()` returns it."""
        return SchedulerSnapshot(
            step=self.step,
            waiting=tuple(self.waiting),
            running=tuple(self.running),
            status={id: request.status for id, request in self.requests.items()},
            lengths={
                id: (len(request.tokens), request.num_computed_tokens, request.num_preemptions)
                for id, request in self.requests.items()
            },
        )

    def on_StepStarted(self, event: ev.StepStarted) -> None:
        self.step = event.step

    def on_RequestArrived(self, event: ev.RequestArrived) -> None:
        self.requests[event.request] = RequestView(
            list(event.tokens), len(event.tokens), event.max_tokens, event.namespace
        )
        self.waiting.append(event.request)

    def on_QueueReordered(self, event: ev.QueueReordered) -> None:
        self.waiting = list(event.requests)

    def on_PrefixMatched(self, event: ev.PrefixMatched) -> None:
        request = self.requests.get(event.request)
        if request is not None and event.num_tokens > len(request.tokens):
            raise ValueError("more tokens match than the request has")
        super().on_PrefixMatched(event)

    def on_BlocksPublished(self, event: ev.BlocksPublished) -> None:
        request = self.requests.get(event.request) or self.ended.get(event.request)
        if len(event.tokens) != len(event.blocks) * self.block_size or event.start % self.block_size:
            raise ValueError("the tokens are not those of whole blocks")
        if len(event.hashes) != (len(event.blocks) if event.node is None else 0):
            raise ValueError("it has neither a hash for each block nor a node")
        if request is not None and event.start + len(event.tokens) > len(request.tokens):
            raise ValueError("more tokens are published than the request has")
        super().on_BlocksPublished(event)

    def on_RequestAdmitted(self, event: ev.RequestAdmitted) -> None:
        request = self.requests[event.request]
        request.status = "running"
        request.num_computed_tokens = event.num_cached_tokens
        if not event.resumed:
            request.num_cached_tokens = event.num_cached_tokens
        self.waiting.remove(event.request)
        self.running.append(event.request)

    def on_TokensComputed(self, event: ev.TokensComputed) -> None:
        self.requests[event.request].num_computed_tokens = event.start + event.num_tokens

    def on_TokensSampled(self, event: ev.TokensSampled) -> None:
        self.requests[event.request].tokens.extend(event.tokens)

    def on_RequestPreempted(self, event: ev.RequestPreempted) -> None:
        request = self.requests[event.request]
        request.status, request.num_computed_tokens = "preempted", 0
        request.num_preemptions += 1
        self.running.remove(event.request)
        self.waiting.insert(0 if event.front else len(self.waiting), event.request)

    def on_RequestFinished(self, event: ev.RequestFinished) -> None:
        self._end(event.request, "finished")

    def on_RequestAborted(self, event: ev.RequestAborted) -> None:
        self._end(event.request, "aborted")

    def _end(self, id: str, status: str) -> None:
        request = self.requests.pop(id)
        (self.running if request.status == "running" else self.waiting).remove(id)
        request.status = status
        self.ended[id] = request


class Follower:
    """A consumer of events that reads a view, which another object folds. A subclass has a method
    `on_EventType(event, view)` for each event type that it needs."""

    _handlers: ClassVar[Handlers] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._handlers = handlers_of(cls)

    def on(self, event: ev.Event, view: EngineView) -> None:
        """Receive one event, which `view` has applied already. Never changes the view."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(self, event, view)
