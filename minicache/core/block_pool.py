"""The pool of physical blocks: the free queue is the LRU.

A block is *held* (its reference count says by how many block tables), or it is in the free queue. A free block may
still be *findable*: it keeps its hash, and a lookup may revive it, until it is handed out again and loses the hash. So
"free" and "cached" do not exclude each other, and the order of the free queue is the order of eviction.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from minicache.core.errors import CorruptState, InvalidArgument, require_int

NULL_BLOCK = 0  # padding for block tables and rows; never handed out, never published


@dataclass(slots=True)
class Block:
    """One physical block: `ref_count` block tables hold it; `hash` is its key while it is findable."""

    id: int
    ref_count: int = 0
    hash: bytes | None = None


class Allocation(NamedTuple):
    """What `BlockPool.allocate` did: the blocks handed out, and those of them that had been findable until now."""

    blocks: list[int]
    evicted: list[tuple[int, bytes]]


class FreeQueue:
    """Ids of free blocks; the head is handed out next. Every operation on one block is O(1).

    An `OrderedDict` is a hash map over a doubly linked list: removal from the middle, which a hit on a free block
    needs, costs no more than at the ends. (vLLM links the blocks themselves: `FreeKVCacheBlockQueue`.)
    """

    def __init__(self, blocks: Iterable[int] = ()) -> None:
        self._queue: OrderedDict[int, None] = OrderedDict.fromkeys(blocks)

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[int]:
        return iter(self._queue)

    def __contains__(self, block: int) -> bool:
        return block in self._queue

    def popleft(self) -> int:
        """Remove and return the head; `ValueError` when the queue is empty."""
        if not self._queue:
            raise ValueError("the free queue is empty")
        return self._queue.popitem(last=False)[0]

    def remove(self, block: int) -> None:
        """Remove `block` from wherever it is; `ValueError` when it is not in the queue."""
        try:
            del self._queue[block]
        except KeyError:
            raise ValueError(f"block {block} is not in the free queue") from None

    def append(self, blocks: Iterable[int]) -> None:
        """Add `blocks` behind the tail, in the order given."""
        self._queue.update(dict.fromkeys(blocks))

    def prepend(self, blocks: Sequence[int]) -> None:
        """Add `blocks` before the head, in the order given: the first of them becomes the head."""
        for block in reversed(blocks):
            self._queue[block] = None
            self._queue.move_to_end(block, last=False)


class BlockPool:
    """`num_blocks` blocks, the null block included: `num_blocks - 1` can be used.

    The methods return what they did; the caches tell it to the world. Source of the rules: vLLM 0.33,
    `vllm/v1/core/block_pool.py`.
    """

    def __init__(self, num_blocks: int) -> None:
        require_int("num_blocks", num_blocks, 2)
        self.blocks = [Block(id) for id in range(num_blocks)]
        self.free_queue = FreeQueue(range(1, num_blocks))
        self._copies: dict[bytes, dict[int, None]] = {}  # hash -> the blocks that have it, first published first

    @property
    def num_blocks(self) -> int:
        return len(self.blocks)

    @property
    def num_free(self) -> int:
        """Blocks that `allocate` could hand out, findable ones included."""
        return len(self.free_queue)

    @property
    def usage(self) -> float:
        """Part of the usable blocks that is held, 0 to 1; a block that is findable but free counts as free."""
        return 1 - self.num_free / (self.num_blocks - 1)

    def allocate(self, count: int) -> Allocation:
        """Hand out `count` blocks from the head of the free queue, each with one reference.

        Eviction is lazy and happens here: a findable block that is handed out loses its hash. Changes nothing and
        raises `InvalidArgument` if fewer than `count` blocks are free.
        """
        if count > self.num_free:
            raise InvalidArgument(f"count: {count} blocks were asked for and {self.num_free} are free")
        taken, evicted = [], []
        for _ in range(count):
            block = self.blocks[self.free_queue.popleft()]
            if block.hash is not None:
                evicted.append((block.id, block.hash))
                self._forget(block)
            block.ref_count = 1
            taken.append(block.id)
        return Allocation(taken, evicted)

    def touch(self, blocks: Iterable[int]) -> None:
        """Take one more reference to each block; a free one leaves the free queue, so nobody can evict it."""
        for id in blocks:
            block = self.blocks[id]
            if block.ref_count == 0:
                self.free_queue.remove(id)
            block.ref_count += 1

    def free(self, blocks: Iterable[int]) -> list[int]:
        """Give back one reference to each block and return those that nobody holds any more, in this order.

        A free block without a hash is of use to nobody as it is: such blocks go to the head, before every findable
        one. Findable blocks go to the tail. A caller frees a table last block first, so that the end of a sequence is
        evicted before its beginning, which others are likelier to share.
        """
        freed: list[int] = []
        useless: list[int] = []
        findable: list[int] = []
        for id in blocks:
            block = self.blocks[id]
            if block.ref_count <= 0:
                raise InvalidArgument(f"blocks: block {id} is freed although nobody holds it")
            block.ref_count -= 1
            if block.ref_count == 0:
                freed.append(id)
                (useless if block.hash is None else findable).append(id)
        self.free_queue.prepend(useless)
        self.free_queue.append(findable)
        return freed

    def find(self, hash: bytes) -> int | None:
        """The block first published under `hash`, or `None`. Changes nothing."""
        copies = self._copies.get(hash)
        return next(iter(copies)) if copies else None

    def publish(self, id: int, hash: bytes) -> None:
        """Make a held block findable under `hash`. Other blocks with the same hash stay: duplicates are kept."""
        block = self.blocks[id]
        if block.hash is not None or block.ref_count == 0:
            raise InvalidArgument(f"id: block {id} is not a held block without a hash")
        block.hash = hash
        self._copies.setdefault(hash, {})[id] = None

    def unpublish(self, id: int) -> bytes | None:
        """Make a block unfindable and return the hash it had; its references and its place in the queue stay."""
        block = self.blocks[id]
        hash = block.hash
        if hash is not None:
            self._forget(block)
        return hash

    def _forget(self, block: Block) -> None:
        assert block.hash is not None
        copies = self._copies[block.hash]
        del copies[block.id]
        if not copies:
            del self._copies[block.hash]
        block.hash = None

    def reset(self) -> bool:
        """Forget every hash, if no block is held; otherwise change nothing and return `False`."""
        if self.num_free < self.num_blocks - 1:
            return False
        for block in self.blocks:
            block.hash = None
        self._copies.clear()
        return True

    @property
    def hashes(self) -> dict[int, bytes]:
        """Findable block -> its hash."""
        return {block.id: block.hash for block in self.blocks if block.hash is not None}

    def copies(self) -> dict[bytes, tuple[int, ...]]:
        """Hash -> its blocks, first published first."""
        return {hash: tuple(blocks) for hash, blocks in self._copies.items()}

    @property
    def num_hashes(self) -> int:
        """Distinct hashes that can be found."""
        return len(self._copies)

    def check(self, ref_counts: dict[int, int]) -> None:
        """Compare every count with `ref_counts` (held block -> block tables that name it); raise `CorruptState`."""
        for block in self.blocks[1:]:
            expected = ref_counts.get(block.id, 0)
            if block.ref_count != expected:
                raise CorruptState(f"block {block.id} counts {block.ref_count} references, block tables {expected}")
            if (block.id in self.free_queue) != (expected == 0):
                raise CorruptState(f"block {block.id} with {expected} references is in the wrong place")
        null = self.blocks[NULL_BLOCK]
        if null.ref_count or null.hash is not None or NULL_BLOCK in self.free_queue or NULL_BLOCK in ref_counts:
            raise CorruptState("the null block is held, free or findable")
        if len(self.free_queue) != len(set(self.free_queue)):
            raise CorruptState("a block is twice in the free queue")
        copies = {id: hash for hash, ids in self._copies.items() for id in ids}
        if copies != self.hashes or not all(self._copies.values()):
            raise CorruptState("the map of hashes disagrees with the blocks")
