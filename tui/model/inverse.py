"""Taking an event back: what a view must do to be as it was before it took the event.

A checkpoint gives any state again, in the time that some thousand events take; one step back must be quicker. So the
inverse of an event is asked for before the event is applied, and remembers the little that the event destroys.

Dictionaries come out equal; the order of their keys may differ.
"""
# ruff: noqa: N802 - a handler carries the name of its event type

from array import array
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

from minicache.core import events as ev
from minicache.core.block_pool import FreeQueue
from minicache.core.views import ROOT, EngineView, NodeView

Inverse = Callable[[], None]


def inverse_of(view: EngineView, event: ev.Event) -> Inverse | None:
    """What undoes `event` on `view`, which stands right before it; None if the event changes nothing."""
    handler: Callable[[EngineView, Any], Inverse] | None = _HANDLERS.get(type(event))
    return handler(view, event) if handler else None


def _all(*steps: Inverse) -> Inverse:
    def undo() -> None:
        for step in steps:
            step()

    return undo


# The free queue and the block tables


def _taken(view: EngineView, blocks: tuple[int, ...]) -> Inverse:
    """The blocks leave the free queue: from its head, as those that are allocated do, or from the middle."""
    taken = [block for block in blocks if block in view.free]
    if list(islice(view.free, len(taken))) == taken:
        return lambda: view.free.prepend(taken)
    order = array("I", view.free)

    def undo() -> None:
        view.free = FreeQueue(order)

    return undo


def _given(view: EngineView, blocks: Iterable[int]) -> Inverse:
    """The blocks come into the free queue."""

    def undo() -> None:
        for block in blocks:
            view.free.remove(block)

    return undo


def on_BlocksAdopted(view: EngineView, event: ev.BlocksAdopted | ev.BlocksAllocated) -> Inverse:
    length = len(view.tables[event.request]) if event.request in view.tables else None

    def undo() -> None:
        if length is None:
            view.tables.pop(event.request, None)
        else:
            del view.tables[event.request][length:]
        view.let_go(event.blocks)

    return _all(undo, _taken(view, event.blocks))


def on_BlocksReleased(view: EngineView, event: ev.BlocksReleased) -> Inverse:
    table = view.tables.get(event.request)

    def undo() -> None:
        if table is not None:
            view.tables[event.request] = table
            view.hold(table)

    return _all(undo, _given(view, event.freed))


def on_BlockTableRewritten(view: EngineView, event: ev.BlockTableRewritten) -> Inverse:
    end = event.start + len(event.blocks)
    before = view.tables[event.request][event.start : end]

    def undo() -> None:
        view.tables[event.request][event.start : end] = before
        view.hold(before)
        view.let_go(event.blocks)

    return undo


def on_PoolShrunk(view: EngineView, event: ev.PoolShrunk) -> Inverse:
    def undo() -> None:
        del view.removed[len(view.removed) - len(event.blocks) :]

    return _all(undo, _taken(view, event.blocks))


def on_DuplicatesFreed(view: EngineView, event: ev.DuplicatesFreed) -> Inverse:
    return _given(view, event.blocks)


# What can be found


def on_BlocksPublished(view: EngineView, event: ev.BlocksPublished) -> Inverse:
    before = [(block, view.hashes.get(block)) for block in event.blocks] if event.hashes else []

    def undo() -> None:
        for (block, old), hash in zip(before, event.hashes, strict=True):
            view.copies[hash].pop(block, None)
            if not view.copies[hash]:
                del view.copies[hash]
            if old is None:
                del view.hashes[block]
            else:
                view.hashes[block] = old
        if event.node is not None:
            view.nodes.pop(event.node, None)

    return undo


def on_BlocksEvicted(view: EngineView, event: ev.BlocksEvicted | ev.BlocksUnpublished) -> Inverse:
    hashes = [(block, view.hashes[block]) for block in event.blocks]
    copies = {hash: dict(view.copies[hash]) for _, hash in hashes}

    def undo() -> None:
        view.hashes.update(hashes)
        view.copies.update(copies)

    return undo


def on_CacheReset(view: EngineView, event: ev.CacheReset) -> Inverse:
    hashes, nodes, free = dict(view.hashes), dict(view.nodes), view.free
    copies = {hash: dict(blocks) for hash, blocks in view.copies.items()}

    def undo() -> None:
        view.hashes, view.copies, view.nodes, view.free = hashes, copies, nodes, free

    return undo


# The radix tree


def _path(view: EngineView, node: int | None) -> list[NodeView]:
    path = []
    while node:
        path.append(view.nodes[node])
        node = view.nodes[node].parent
    return path


def on_PrefixMatched(view: EngineView, event: ev.PrefixMatched) -> Inverse:
    ticks = [(node, node.tick) for node in _path(view, event.node)]

    def undo() -> None:
        for node, tick in ticks:
            node.tick = tick

    return undo


def on_NodeSplit(view: EngineView, event: ev.NodeSplit) -> Inverse:
    lower = view.nodes[event.node]
    before = replace(lower)

    def undo() -> None:
        del view.nodes[event.upper]
        lower.parent, lower.tokens, lower.blocks, lower.tick = before.parent, before.tokens, before.blocks, before.tick

    return undo


def on_PathInserted(view: EngineView, event: ev.PathInserted) -> Inverse:
    before = [(node, node.tick, node.priority, node.hits) for node in _path(view, event.node)]

    def undo() -> None:
        for node, tick, priority, hits in before:
            node.tick, node.priority, node.hits = tick, priority, hits

    return undo


def on_LockMoved(view: EngineView, event: ev.LockMoved) -> Inverse:
    old = view.locks.get(event.request)

    def undo() -> None:
        for node in _path(view, event.node):
            node.locks -= 1
        for node in _path(view, old or ROOT):
            node.locks += 1
        if old is None:
            view.locks.pop(event.request, None)
        else:
            view.locks[event.request] = old

    return undo


def on_NodesEvicted(view: EngineView, event: ev.NodesEvicted) -> Inverse:
    nodes = {id: view.nodes[id] for id in event.nodes}
    return _all(lambda: view.nodes.update(nodes), _given(view, event.blocks))


# Requests


def on_StepStarted(view: EngineView, event: ev.StepStarted) -> Inverse:
    step = view.step

    def undo() -> None:
        view.step = step

    return undo


def on_RequestArrived(view: EngineView, event: ev.RequestArrived) -> Inverse:
    def undo() -> None:
        view.requests.pop(event.request)
        view.waiting.remove(event.request)

    return undo


def _queues(view: EngineView) -> Inverse:
    waiting, running = list(view.waiting), list(view.running)

    def undo() -> None:
        view.waiting, view.running = waiting, running

    return undo


def on_QueueReordered(view: EngineView, event: ev.QueueReordered) -> Inverse:
    return _queues(view)


def on_RequestAdmitted(view: EngineView, event: ev.RequestAdmitted | ev.RequestPreempted) -> Inverse:
    request = view.requests[event.request]
    status, computed = request.status, request.num_computed_tokens
    cached, preemptions = request.num_cached_tokens, request.num_preemptions

    def undo() -> None:
        request.status, request.num_computed_tokens = status, computed
        request.num_cached_tokens, request.num_preemptions = cached, preemptions

    return _all(undo, _queues(view))


def on_TokensComputed(view: EngineView, event: ev.TokensComputed) -> Inverse:
    request = view.requests[event.request]
    computed = request.num_computed_tokens

    def undo() -> None:
        request.num_computed_tokens = computed

    return undo


def on_TokensSampled(view: EngineView, event: ev.TokensSampled) -> Inverse:
    tokens = view.requests[event.request].tokens

    def undo() -> None:
        del tokens[len(tokens) - len(event.tokens) :]

    return undo


def on_RequestFinished(view: EngineView, event: ev.RequestFinished | ev.RequestAborted) -> Inverse:
    request = view.requests[event.request]
    status = request.status

    def undo() -> None:
        del view.ended[event.request]
        request.status = status
        view.requests[event.request] = request

    return _all(undo, _queues(view))


_HANDLERS: dict[type[ev.Event], Callable[[EngineView, Any], Inverse]] = {
    ev.BlocksAdopted: on_BlocksAdopted,
    ev.BlocksAllocated: on_BlocksAdopted,
    ev.BlocksReleased: on_BlocksReleased,
    ev.BlockTableRewritten: on_BlockTableRewritten,
    ev.PoolShrunk: on_PoolShrunk,
    ev.DuplicatesFreed: on_DuplicatesFreed,
    ev.BlocksPublished: on_BlocksPublished,
    ev.BlocksEvicted: on_BlocksEvicted,
    ev.BlocksUnpublished: on_BlocksEvicted,
    ev.CacheReset: on_CacheReset,
    ev.PrefixMatched: on_PrefixMatched,
    ev.NodeSplit: on_NodeSplit,
    ev.PathInserted: on_PathInserted,
    ev.LockMoved: on_LockMoved,
    ev.NodesEvicted: on_NodesEvicted,
    ev.StepStarted: on_StepStarted,
    ev.RequestArrived: on_RequestArrived,
    ev.QueueReordered: on_QueueReordered,
    ev.RequestAdmitted: on_RequestAdmitted,
    ev.RequestPreempted: on_RequestAdmitted,
    ev.TokensComputed: on_TokensComputed,
    ev.TokensSampled: on_TokensSampled,
    ev.RequestFinished: on_RequestFinished,
    ev.RequestAborted: on_RequestFinished,
}
