"""The pool of physical blocks: the free queue is the LRU.

A block is either *held* (its reference count is the number of block tables that name it) or in the free queue. A free
block may still be *findable*: it keeps its hash, and a hit takes it out of the queue again, until the pool hands it out
for other tokens and it loses the hash. So "free" and "cached" do not exclude each other, and the order of the free
queue is the order of eviction.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from minicache.core.errors import CorruptState, InvalidArgument, require_int

NULL_BLOCK = 0  # padding for block tables and rows; never handed out, never published


@dataclass(slots=True)
class Block:
    """One physical block. `ref_count` block tables hold it; `hash` is its key while it is findable, else `None`."""

    id: int
    ref_count: int = 0
    hash: bytes | None = None


class Allocation(NamedTuple):
    """What `BlockPool.allocate` did: the `blocks` it handed out, and `evicted`, (block, hash) for each of these that
    was findable until then."""

    blocks: list[int]
    evicted: list[tuple[int, bytes]]


class FreeQueue:
    """Ids of free blocks; the head is handed out next. Every operation on one block takes constant time.

    An `OrderedDict` is a hash map over a doubly linked list. A hit on a free block removes it from the middle of the
    queue, and that costs no more than removal at an end. (vLLM links the blocks themselves: `FreeKVCacheBlockQueue`.)
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
        """Remove and return the head. Raises `ValueError` if the queue is empty."""
        if not self._queue:
            raise ValueError("the free queue is empty")
        return self._queue.popitem(last=False)[0]

    def remove(self, block: int) -> None:
        """Remove `block` from any place in the queue. Raises `ValueError` if it is not there."""
        try:
            del self._queue[block]
        except KeyError:
            raise ValueError(f"block {block} is not in the free queue") from None

    def append(self, blocks: Iterable[int]) -> None:
        """Add `blocks` after the tail, in the order given."""
        self._queue.update(dict.fromkeys(blocks))

    def prepend(self, blocks: Sequence[int]) -> None:
        """Add `blocks` before the head, in the order given: the first of them becomes the head."""
        for block in reversed(blocks):
            self._queue[block] = None
            self._queue.move_to_end(block, last=False)


class BlockPool:
    """`num_blocks` blocks (at least 2), with the null block among them: requests can hold `num_blocks - 1`.

    The methods return what they did; the caches emit the events. Source of the rules: vLLM 0.33,
    `vllm/v1/core/block_pool.py`.
    """

    def __init__(self, num_blocks: int) -> None:
        require_int("num_blocks", num_blocks, 2)
        self.blocks = [Block(id) for id in range(num_blocks)]
        self.free_queue = FreeQueue(range(1, num_blocks))
        self.removed: list[int] = []  # blocks that are never handed out again
        self._copies: dict[bytes, dict[int, None]] = {}  # hash -> the blocks with that hash, first published first

    @property
    def num_blocks(self) -> int:
        return len(self.blocks)

    @property
    def capacity(self) -> int:
        """Blocks that requests can hold: neither the null block nor the removed blocks count."""
        return self.num_blocks - 1 - len(self.removed)

    @property
    def num_free(self) -> int:
        """Blocks that `allocate` can hand out, findable ones included."""
        return len(self.free_queue)

    @property
    def usage(self) -> float:
        """The fraction of the usable blocks that is held, 0 to 1. A findable block that no request holds is free."""
        return 1 - self.num_free / self.capacity

    def allocate(self, count: int) -> Allocation:
        """Take `count` blocks from the head of the free queue and give each one reference.

        This is where eviction happens: a findable block that is handed out loses its hash. Raises `InvalidArgument`,
        with nothing changed, if fewer than `count` blocks are free.
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
        """Add one reference to each block. A free block leaves the free queue, so it cannot be evicted."""
        for id in blocks:
            block = self.blocks[id]
            if block.ref_count == 0:
                self.free_queue.remove(id)
            block.ref_count += 1

    def free(self, blocks: Iterable[int]) -> list[int]:
        """Drop one reference to each block. Returns the blocks that became free, in the order given.

        Free blocks without a hash go to the head of the queue: no lookup can find them, so they are reused before any
        findable block. Findable blocks go to the tail. Callers free a block table last block first: the end of a
        sequence is then evicted before its beginning, which other requests are likelier to share. Raises
        `InvalidArgument` for a block that no request holds.
        """
        freed: list[int] = []
        useless: list[int] = []
        findable: list[int] = []
        for id in blocks:
            block = self.blocks[id]
            if block.ref_count <= 0:
                raise InvalidArgument(f"blocks: block {id} is freed although no request holds it")
            block.ref_count -= 1
            if block.ref_count == 0:
                freed.append(id)
                (useless if block.hash is None else findable).append(id)
        self.free_queue.prepend(useless)
        self.free_queue.append(findable)
        return freed

    def find(self, hash: bytes) -> int | None:
        """The block first published under `hash`, or `None`. Pure."""
        copies = self._copies.get(hash)
        return next(iter(copies)) if copies else None

    def publish(self, id: int, hash: bytes) -> None:
        """Make a held block findable under `hash`. Other blocks with this hash stay findable: duplicates are kept.

        Raises `InvalidArgument` if the block is free or has a hash already.
        """
        block = self.blocks[id]
        if block.hash is not None or block.ref_count == 0:
            raise InvalidArgument(f"id: block {id} is not a held block without a hash")
        block.hash = hash
        self._copies.setdefault(hash, {})[id] = None

    def unpublish(self, id: int) -> bytes | None:
        """Make a block unfindable. Returns the hash it had, or `None`. Its references and its place in the free queue
        stay the same."""
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

    def remove(self, blocks: Sequence[int]) -> None:
        """Take blocks out of the pool: they are never handed out again. Each has one reference, from `allocate`, which
        is dropped."""
        for id in blocks:
            self.blocks[id].ref_count = 0
        self.removed.extend(blocks)

    def reset(self) -> bool:
        """Forget every hash. Returns `False`, with nothing changed, while a block is held."""
        if self.num_free < self.capacity:
            return False
        for block in self.blocks:
            block.hash = None
        self._copies.clear()
        return True

    @property
    def hashes(self) -> dict[int, bytes]:
        """Each findable block and its hash."""
        return {block.id: block.hash for block in self.blocks if block.hash is not None}

    def copies(self) -> dict[bytes, tuple[int, ...]]:
        """Each hash and its blocks, first published first."""
        return {hash: tuple(blocks) for hash, blocks in self._copies.items()}

    @property
    def num_hashes(self) -> int:
        """The number of distinct hashes that `find` finds."""
        return len(self._copies)

    def check(self, ref_counts: dict[int, int]) -> None:
        """Compare every count with `ref_counts`, which maps each held block to the number of block tables that name it.
        Raises `CorruptState` at the first disagreement. Changes nothing."""
        removed = frozenset(self.removed)
        for block in self.blocks[1:]:
            expected = ref_counts.get(block.id, 0)
            if block.ref_count != expected:
                raise CorruptState(
                    f"block {block.id} counts {block.ref_count} references, but {expected} block tables name it"
                )
            if block.id in removed and (expected or block.id in self.free_queue or block.hash is not None):
                raise CorruptState(f"the removed block {block.id} is held, free or findable")
            if (block.id in self.free_queue) != (expected == 0 and block.id not in removed):
                place = "missing from" if expected == 0 else "in"
                raise CorruptState(f"block {block.id} has {expected} references and is {place} the free queue")
        null = self.blocks[NULL_BLOCK]
        if null.ref_count or null.hash is not None or NULL_BLOCK in self.free_queue or NULL_BLOCK in ref_counts:
            raise CorruptState("the null block is held, free or findable")
        if len(self.free_queue) != len(set(self.free_queue)):
            raise CorruptState("the free queue names a block twice")
        copies = {id: hash for hash, ids in self._copies.items() for id in ids}
        if copies != self.hashes or not all(self._copies.values()):
            raise CorruptState("the map from hashes to blocks disagrees with the hashes of the blocks")
