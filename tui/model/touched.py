"""What an event makes, changes or takes away in what can be found: hashes, and nodes of the radix tree.

Whoever keeps rows or an order of these looks only at what was touched, whichever way the run is walked.
"""

from collections.abc import Iterable, Iterator

from minicache.core import events as ev
from minicache.core.views import EngineView

Key = bytes | int  # a hash, or the number of a node


def touched_by(view: EngineView, event: ev.Event) -> tuple[Key, ...] | None:
    """The hashes and nodes, a node with all that it hangs on; None stands for everything. `view` is right before the
    event: what is made hangs on what is there already."""
    match event:
        case ev.BlocksPublished():
            new = () if event.node is None else (event.node,)
            return (*event.hashes, *new, *_path(view, event.parent_node))
        case ev.BlocksEvicted():
            return event.hashes
        case ev.BlocksUnpublished():
            return tuple(view.hashes[block] for block in event.blocks)
        case ev.PrefixMatched() | ev.PathInserted():
            return tuple(_path(view, event.node))
        case ev.NodeSplit():
            return (event.upper, *_path(view, event.node))
        case ev.NodesEvicted():
            return tuple(_paths(view, event.nodes))
        case ev.LockMoved():
            return tuple(_paths(view, (event.node, view.locks.get(event.request))))
        case ev.CacheReset() | ev.PoolReplaced():
            return None
    return ()


def _path(view: EngineView, node: int | None) -> Iterator[int]:
    """The node and what it hangs on, up to the root, which is none."""
    while node:
        yield node
        node = view.nodes[node].parent


def _paths(view: EngineView, nodes: Iterable[int | None]) -> set[int]:
    return {id for node in nodes for id in _path(view, node)}
