"""Checkpoints of an `EngineView`: small to keep, quick to make a view of again.

What only grows is not copied: a request's tokens and the list of ended requests are kept once, in the recording view,
and a checkpoint remembers how long they were. What is left is packed into arrays.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minicache.core.block_pool import FreeQueue
from minicache.core.events import Event
from minicache.core.request import Namespace
from minicache.core.views import CacheView, EngineView, NodeView, RequestView

Packed = tuple[list[int], int, int, int, Namespace, str, int, int, int | None]


class RecordingView(EngineView):
    """The view at the end of a recording. Its requests' token lists and `ended_log` only ever grow."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ended_log: list[tuple[str, RequestView]] = []
        self._handlers: dict[type[Event], Callable[[Any], None] | None] = {}

    def apply(self, event: Event) -> None:
        """As `View.apply`, with the handler of each type looked up once."""
        kind = type(event)
        if kind not in self._handlers:
            self._handlers[kind] = getattr(self, f"on_{kind.__name__}", None)
        handler = self._handlers[kind]
        if handler is not None:
            handler(event)

    __call__ = apply

    def _end(self, id: str, status: str) -> None:
        super()._end(id, status)
        self.ended_log.append((id, self.ended[id]))


@dataclass(slots=True)
class Checkpoint:
    """The state of a recording view at one moment. Valid as long as the view is only fed events."""

    num_blocks: int
    block_size: int
    step: int
    free: "array[int]"
    tables: dict[str, "array[int]"]
    hashed: "array[int]"  # findable blocks, hash by hash, and among equals in the order of publication
    hashes: list[bytes]  # theirs
    nodes: dict[int, tuple[int, Namespace, tuple[int, ...], tuple[int, ...], int, int, int, int]]
    locks: dict[str, int]
    requests: dict[str, Packed]
    waiting: list[str]
    running: list[str]
    ended_log: list[tuple[str, RequestView]]
    num_ended: int

    @classmethod
    def of(cls, view: RecordingView) -> "Checkpoint":
        """Pack the view's state. Changes nothing."""
        return cls(
            num_blocks=view.num_blocks,
            block_size=view.block_size,
            step=view.step,
            free=array("I", view.free),
            tables={id: array("I", table) for id, table in view.tables.items()},
            hashed=array("I", [block for blocks in view.copies.values() for block in blocks]),
            hashes=[hash for hash, blocks in view.copies.items() for _ in blocks],
            nodes={
                id: (n.parent, n.namespace, n.tokens, n.blocks, n.tick, n.priority, n.locks, n.hits)
                for id, n in view.nodes.items()
            },
            locks=dict(view.locks),
            requests={id: _pack(request) for id, request in view.requests.items()},
            waiting=list(view.waiting),
            running=list(view.running),
            ended_log=view.ended_log,
            num_ended=len(view.ended_log),
        )

    def restore(self) -> EngineView:
        """A view of its own, in that state."""
        view = EngineView(self.num_blocks, self.block_size)
        self.fill(view)
        return view

    def fill(self, view: EngineView) -> None:
        """Put a new view into that state."""
        self.fill_cache(view)
        view.step = self.step
        view.requests = {id: _unpack(packed) for id, packed in self.requests.items()}
        view.waiting, view.running = list(self.waiting), list(self.running)
        view.ended = dict(self.ended_log[: self.num_ended])

    def fill_cache(self, view: CacheView) -> None:
        """Put the part of a new view that is about the cache into that state."""
        view.free = FreeQueue(self.free)
        view.tables = {id: list(table) for id, table in self.tables.items()}
        view.hashes = dict(zip(self.hashed, self.hashes, strict=True))
        for block, hash in zip(self.hashed, self.hashes, strict=True):
            view.copies.setdefault(hash, {})[block] = None
        view.nodes = {id: NodeView(*fields) for id, fields in self.nodes.items()}
        view.locks = dict(self.locks)


def _pack(request: RequestView) -> Packed:
    return (
        request.tokens,
        len(request.tokens),
        request.num_prompt_tokens,
        request.max_tokens,
        request.namespace,
        request.status,
        request.num_computed_tokens,
        request.num_preemptions,
        request.num_cached_tokens,
    )


def _unpack(packed: Packed) -> RequestView:
    return RequestView(packed[0][: packed[1]], *packed[2:])
