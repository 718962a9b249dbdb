"""Checkpoints of an `EngineView`: small to keep, and quick to make into a view again.

What only grows is not copied: a request's tokens and the list of ended requests are kept once, in the recording view,
and a checkpoint remembers how long they were. What is left is packed into arrays.
"""

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from minicache.core.request import Namespace
from minicache.core.views import EngineView, NodeView, RequestView

PIECE = 300  # blocks or nodes that are put back at a time

Packed = tuple[list[int], int, int, int, Namespace, str, int, int, int | None]


class RecordingView(EngineView):
    """The view at the end of a recording. Its requests' token lists and `ended_log` only ever grow."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ended_log: list[tuple[str, RequestView]] = []

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
    removed: "array[int]"
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
            removed=array("I", view.removed),
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
        """A new view in that state."""
        view = EngineView(1, self.block_size)
        for _ in self.filling(view):
            pass
        return view

    @property
    def num_pieces(self) -> int:
        """In about how many pieces `filling` does its work."""
        return 1 + (len(self.free) + len(self.hashed) + len(self.nodes)) // PIECE

    def filling(self, view: EngineView) -> Iterator[None]:
        """Bring a new view without blocks into that state, in pieces of about the same time, so that the caller can do
        something else in between."""
        view.num_blocks, view.removed = self.num_blocks, list(self.removed)
        view.step = self.step
        view.requests = {id: _unpack(packed) for id, packed in self.requests.items()}
        view.waiting, view.running = list(self.waiting), list(self.running)
        view.ended = dict(self.ended_log[: self.num_ended])
        view.tables = {id: list(table) for id, table in self.tables.items()}
        view.num_holders = Counter(chain.from_iterable(self.tables.values()))
        view.locks = dict(self.locks)
        yield
        for start in range(0, len(self.free), PIECE):
            view.free.append(self.free[start : start + PIECE])
            yield
        for start in range(0, len(self.hashed), PIECE):
            found = zip(self.hashed[start : start + PIECE], self.hashes[start : start + PIECE], strict=True)
            for block, hash in found:
                view.hashes[block] = hash
                view.copies.setdefault(hash, {})[block] = None
            yield
        nodes = iter(self.nodes.items())
        while some := list(islice(nodes, PIECE)):
            view.nodes.update((id, NodeView(*fields)) for id, fields in some)
            yield


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
