"""V31, V32, V50: the parts of vLLM's block pool, taken by themselves."""

import pytest

from minicache.core.block_pool import BlockPool, FreeQueue
from tests.vectors.registry import vector


@vector("V31", "free queue: prepending keeps the order given; empty and middle removal")
def test_free_queue() -> None:
    queue = FreeQueue([0])
    queue.prepend([4, 5])
    queue.prepend([1, 2])
    assert list(queue) == [1, 2, 4, 5, 0]

    queue.remove(4)
    assert list(queue) == [1, 2, 5, 0]
    assert 4 not in queue
    with pytest.raises(ValueError, match="block 4 is not in the free queue"):
        queue.remove(4)
    queue.append([4])  # nothing of its old place is left
    assert [queue.popleft() for _ in range(5)] == [1, 2, 5, 0, 4]
    with pytest.raises(ValueError, match="empty"):
        queue.popleft()


def pool_with_copies() -> BlockPool:
    """Blocks 1 and 2, held once each, are published under one hash, in this order."""
    pool = BlockPool(4)
    for block in pool.allocate(2).blocks:
        pool.publish(block, b"same")
        pool.check({1: 1, 2: 1})
    return pool


@vector("V32", "the map of hashes keeps copies, first published first; a key is removed with its last copy")
def test_map_of_hashes() -> None:
    pool, held = pool_with_copies(), {1: 1, 2: 1}
    assert pool.copies() == {b"same": (1, 2)}
    assert pool.find(b"same") == 1
    assert pool.unpublish(1) == b"same"
    pool.check(held)
    assert pool.find(b"same") == 2
    assert pool.unpublish(3) is None  # never published
    assert pool.find(b"other") is None
    pool.check(held)
    assert pool.unpublish(2) == b"same"
    pool.check(held)
    assert pool.find(b"same") is None
    assert pool.copies() == {}
    assert pool.num_hashes == 0


@vector("V50", "of two copies one may be evicted, and lookups find the other")
def test_copies_are_evicted_one_by_one() -> None:
    pool = pool_with_copies()
    assert pool.free([1, 2]) == [1, 2]
    assert list(pool.free_queue) == [3, 1, 2]
    pool.check({})

    assert pool.allocate(2) == ([3, 1], [(1, b"same")])
    pool.check({3: 1, 1: 1})
    assert pool.find(b"same") == 2

    assert pool.allocate(1) == ([2], [(2, b"same")])
    pool.check({3: 1, 1: 1, 2: 1})
    assert pool.find(b"same") is None
