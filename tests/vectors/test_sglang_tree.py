"""S: SGLang's radix tree as a data structure.

Sizes are tokens; slots are one a token, and with pages a block is named by the slot of its first token (`drivers.py`).
The tree is checked after every call, against every lock that the test holds.
"""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from minicache.core import Namespace, RadixCache, Request
from minicache.core.errors import StaleMatch
from minicache.core.eviction import slru
from tests.vectors.checked import checked
from tests.vectors.drivers import Radix, Tree, Uncached, span
from tests.vectors.registry import story, vector

K1, K2 = Namespace(extra=("k1",)), Namespace(extra=("k2",))


@vector("S1", "insert and match; a match that ends inside a node splits it")
def test_insert_and_match() -> None:
    tree = Tree()
    assert tree.insert([1, 2, 3], [10, 20, 30]) == 0
    assert tree.sizes == (3, 0, 3)
    assert tree.find([1, 2, 3]) == (3, [10, 20, 30])
    assert tree.find([1, 2]) == (2, [10, 20])
    assert tree.shape == "[1,2]{[3]}"
    assert tree.sizes == (3, 0, 3)


@vector("S2", "the tree's shape and hit counts after five insertions")
def test_shape() -> None:
    tree = Tree()
    runs = [[1, 2, 3], [1, 2, 3], [1, 2, 4, 5], [1, 2, 4, 5, 6, 7], [8, 9, 10, 11, 12]]
    assert [tree.insert(run) for run in runs] == [0, 3, 2, 4, 0]
    assert tree.shape == "[1,2]{[3],[4,5]{[6,7]}},[8,9,10,11,12]"
    assert tree.sizes == (12, 0, 12)
    assert tree.of_nodes("hit_count") == {(1, 2): 4, (3,): 2, (4, 5): 2, (6, 7): 1, (8, 9, 10, 11, 12): 1}
    assert tree.find([1, 2, 3, 13, 14])[0] == 3


@vector("S3", "only whole pages are stored and matched")
def test_page_flooring() -> None:
    tree = Tree(page=4)
    tree.insert(span(0, 6), span(100, 106))
    assert tree.sizes == (4, 0, 4)
    assert [tree.find(run)[0] for run in (span(0, 6), [0, 1, 2], [0, 1, 2, 9])] == [4, 0, 0]
    assert tree.insert(span(0, 8), span(200, 208)) == 4
    assert tree.shape == "[0,1,2,3]{[4,5,6,7]}"
    assert tree.find(span(0, 8))[1] == [100, 204]


@vector("S3", "only whole pages are stored and matched")
def test_page_flooring_of_the_cache() -> None:
    radix = Radix(block_size=4)
    first = radix.cache_prompt(span(0, 6))
    assert first.fresh == [1, 2]
    assert radix.sizes == (4, 0)
    assert [radix.hit(run) for run in (span(0, 6), [0, 1, 2], [0, 1, 2, 9, 9])] == [4, 0, 0]
    second = radix.cache_prompt(span(0, 8))
    assert (second.hit, len(second.fresh)) == (4, 1)
    assert radix.shape == "[0,1,2,3]{[4,5,6,7]}"


@story(
    {
        "S4": "a difference inside a page: the page does not match, and nodes are split between pages",
        "S4.2": "pages that differ at their end are siblings, and their equal tokens are stored twice",
    }
)
def test_difference_inside_a_page() -> Iterator[str]:
    tree = Tree(page=4)
    tree.insert(span(0, 8))
    assert tree.find([*span(0, 6), 99, 99])[0] == 4
    assert tree.shape == "[0,1,2,3]{[4,5,6,7]}"
    yield "S4"

    assert tree.insert([0, 1, 2, 3, 4, 5, 99, 98]) == 4
    assert tree.shape == "[0,1,2,3]{[4,5,6,7],[4,5,99,98]}"
    assert tree.sizes == (12, 0, 12)
    yield "S4.2"


@vector("S5", "one node split again and again still gives back every slot")
@pytest.mark.parametrize("page", [1, 2])
def test_repeated_splits(page: int) -> None:
    tree = Tree(page)
    run, slots = span(1, 9), span(10, 90)[::10]
    tree.insert(run, slots)
    assert tree.insert([1, 2, 9, 10], [10, 20, 90, 100]) == 2
    assert tree.sizes == (10, 0, 10)
    for matched, tail in ((4, [999, 1000]), (6, [777, 888]), (8, [])):
        assert tree.find(run[:matched] + tail) == (matched, tree.pages(slots[:matched]))
    assert tree.find([1, 2, 9, 10]) == (4, tree.pages([10, 20, 90, 100]))
    assert tree.find([1, 2, 3])[0] == 3 // page * page
    assert tree.sizes == (10, 0, 10)


@vector("S6", "namespaces share nothing; an unknown key or salt finds nothing")
def test_namespaces() -> None:
    tree = Tree()
    namespaces = [K1, K2, Namespace()]
    for index, namespace in enumerate(namespaces):
        assert tree.insert([1, 2, 3], span(10 * index, 10 * index + 3), namespace) == 0
    for index, namespace in enumerate(namespaces):
        assert tree.find([1, 2, 3], namespace) == (3, span(10 * index, 10 * index + 3))
    assert tree.sizes == (9, 0, 9)
    assert tree.find([1, 2, 3], Namespace(extra=("unknown",))) == (0, [])
    assert tree.find([1, 2, 3], Namespace(salt="s")) == (0, [])


@vector("S7", "keys of two namespaces cannot be compared; a match in one cannot be used in the other")
def test_namespaces_are_never_compared() -> None:
    """SGLang's key refuses to be compared with a key of another namespace. Here no comparison could be made: children
    are found by namespace and tokens. What can be tried is to use a match for a request of another namespace."""
    tree = Tree()
    tree.insert([1, 2, 3], namespace=K1)
    visited = tree.of_nodes("last_access")
    assert tree.find([1, 2, 3], K2) == (0, [])
    assert tree.of_nodes("last_access") == visited

    radix = Radix()
    radix.cache_prompt([1, 2, 3], namespace=K1)
    match = radix.lookup([1, 2, 3, 4], namespace=K1)
    with pytest.raises(StaleMatch) as error:
        radix.cache.allocate(Request("other", [1, 2, 3, 4], namespace=K2), match, 1)
    assert isinstance(error.value, ValueError)
    radix.cache.check()


@story(
    {
        "S8": "a lock protects the path to its node and no node below it",
        "S8.2": "locked nodes cannot be evicted; of unlocked nodes, leaves are evicted before their parents",
    }
)
def test_lock() -> Iterator[str]:
    tree = Tree()
    tree.insert([1, 2, 3], [10, 20, 30])
    tree.insert([1, 2, 3, 4, 5], [10, 20, 30, 40, 50])
    node = tree.node([1, 2, 3, 4])
    tree.tree.lock(node)
    assert tree.shape == "[1,2,3]{[4]{[5]}}"
    assert tree.sizes == (1, 4, 5)
    assert tree.of_nodes("lock_count") == {(1, 2, 3): 1, (4,): 1, (5,): 0}
    yield "S8"

    (evicted,) = tree.tree.evict(100)
    assert evicted.blocks == [50]
    tree.tree.unlock(node)
    assert tree.sizes == (4, 0, 4)
    assert [leaf.blocks for leaf in tree.tree.evict(100)] == [[40], [10, 20, 30]]
    assert tree.sizes == (0, 0, 0)
    yield "S8.2"


@vector("S9", "two locks on one path: it stays protected until both are gone")
def test_two_locks() -> None:
    tree = Tree()
    tree.insert([1, 2, 3, 4])
    upper = tree.node([1, 2])
    tree.tree.lock(upper)
    lower = tree.node([1, 2, 3, 4])
    tree.tree.lock(lower)
    assert tree.sizes == (0, 4, 4)
    tree.tree.unlock(upper)
    assert tree.sizes == (0, 4, 4)
    assert tree.evict(9) == []
    tree.tree.unlock(lower)
    assert tree.sizes == (4, 0, 4)


@vector("S10", "a split keeps the lock on both halves, and the old handle still unlocks it")
def test_split_keeps_the_lock() -> None:
    tree = Tree()
    tree.insert([1, 2, 3, 4])
    leaf = tree.node([1, 2, 3, 4])
    tree.tree.lock(leaf)
    assert tree.find([1, 2, 9])[0] == 2
    assert tree.of_nodes("lock_count") == {(1, 2): 1, (3, 4): 1}
    assert tree.sizes == (0, 4, 4)
    tree.tree.unlock(leaf)
    assert tree.sizes == (4, 0, 4)


@vector("S11", "lru: the least recently used leaf is evicted first; a match refreshes the whole path")
def test_lru_order() -> None:
    tree = Tree()
    for run in ([1, 2, 3], [1, 2, 4, 5], [9, 9]):
        tree.insert(run)
    tree.find([1, 2, 3])
    assert [tree.evict(1) for _ in range(4)] == [[[4, 5]], [[9, 9]], [[3]], [[1, 2]]]


@vector("S12", "a whole node is evicted, even if fewer blocks are needed")
def test_whole_nodes_are_evicted() -> None:
    tree = Tree()
    tree.insert(span(0, 100))
    assert tree.evict(1) == [span(0, 100)]
    assert tree.sizes == (0, 0, 0)


@vector("S13", "a parent that becomes a leaf can be evicted by the same call")
def test_eviction_cascades() -> None:
    tree = Tree()
    for run in ([1, 2, 3], [1, 2, 3, 4, 5], [7, 8]):
        tree.insert(run)
    assert tree.evict(4) == [[4, 5], [1, 2, 3]]
    assert tree.shape == "[7,8]"


@vector("S14", "a match that ends inside a node refreshes both parts of it")
def test_partial_match_refreshes_the_rest() -> None:
    tree = Tree()
    tree.insert([1, 2, 3, 4])
    tree.insert([5, 6])
    tree.find([1, 2])
    assert tree.evict(1) == [[5, 6]]
    assert tree.shape == "[1,2]{[3,4]}"


@vector("S15", "the order of eviction under each strategy")
@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        ("lru", [2, 1, 3]),
        ("lfu", [3, 2, 1]),
        ("fifo", [1, 2, 3]),
        ("mru", [3, 1, 2]),
        ("filo", [3, 2, 1]),
        ("slru", [3, 2, 1]),
        ("priority", [2, 3, 1]),
    ],
)
def test_strategies(strategy: str, order: list[int]) -> None:
    tree = Tree(strategy=strategy)
    for name, priority in ((1, 5), (2, 0), (3, 1)):
        tree.insert([name, name], priority=priority)
    for name in (1, 2, 1):
        tree.insert([name, name])
    tree.find([3, 3])
    assert tree.evict(100) == [[name, name] for name in order]


@vector("S16", "slru: two segments, by hits; least recently used within each")
def test_slru_keys() -> None:
    def key(hits: int, used: float, threshold: int = 2) -> tuple[float, ...]:
        return slru(threshold)(SimpleNamespace(hit_count=hits, last_access=used))  # type: ignore[arg-type]

    assert (key(1, 3), key(2, 3)) == ((0, 3), (1, 3))
    assert (key(4, 3, threshold=5)[0], key(5, 3, threshold=5)[0]) == (0, 1)
    nodes = [(5, 1.0), (0, 10), (0, 2), (3, 8)]
    assert sorted(key(*node) for node in nodes) == [(0, 2), (0, 10), (1, 1), (1, 8)]


@vector("S17", "an insertion counts as a hit in every node on its path; a match does not")
def test_hit_counts() -> None:
    tree = Tree()
    for run in ([1, 2, 3, 4], [1, 2, 3, 4], [1, 2]):
        tree.insert(run)
    expected = {(1, 2): 3, (3, 4): 2}
    assert tree.of_nodes("hit_count") == expected
    for run in ([1, 2], [1, 2, 3, 4], [1, 2, 9]):
        tree.find(run)
    assert tree.of_nodes("hit_count") == expected


@vector("S18", "a request that inserts twice counts once in each node")
def test_one_hit_per_request() -> None:
    tree = Tree()
    tree.insert([1, 2, 3, 4])
    tree.insert([1, 2, 3, 4, 5, 6], num_inserted=4)
    assert tree.of_nodes("hit_count") == {(1, 2, 3, 4): 1, (5, 6): 1}


@vector("S19", "an insertion raises the priority of its path, not of its branches")
def test_priority_of_the_path() -> None:
    tree = Tree()
    tree.insert([1, 2, 3, 4], priority=1)
    tree.insert([1, 2, 9, 9], priority=7)
    assert tree.of_nodes("priority") == {(1, 2): 7, (3, 4): 1, (9, 9): 7}


@vector("S20", "a limit cuts the key, then whole pages are matched")
@pytest.mark.parametrize(
    ("page", "tokens", "limit", "matched"),
    [(1, [1, 2, 3, 4], 3, 3), (4, [0, 1, 2, 3, 4, 5, 6, 7], 7, 4)],
    ids=["page1", "page4"],
)
def test_limit(page: int, tokens: list[int], limit: int, matched: int) -> None:
    tree = Tree(page)
    tree.insert(tokens)
    assert tree.find(tokens, limit=limit)[0] == matched


@vector("S21", "an empty prompt matches nothing, at the root")
def test_empty_match() -> None:
    tree = Tree()
    tree.insert([1, 2, 3])
    assert tree.find([]) == (0, [])
    assert tree.node([]) is tree.tree.root


@vector("S22", "a disabled cache stores nothing and finds nothing")
def test_disabled() -> None:
    uncached = Uncached(num_blocks=8, block_size=1)
    first = uncached.add([1, 2, 3])
    assert uncached.hit([1, 2, 3]) == 0
    uncached.free(first)
    assert uncached.hit([1, 2, 3]) == 0
    assert uncached.cache.num_free == 7
    assert uncached.cache.snapshot().nodes == {}


@vector("S23", "reset leaves an empty tree")
def test_reset() -> None:
    tree = Tree()
    tree.insert([1, 2, 3])
    tree.tree.lock(tree.node([1, 2]))
    tree.tree.clear()
    assert tree.sizes == (0, 0, 0)
    assert tree.find([1, 2, 3]) == (0, [])


@vector("S23", "reset leaves an empty tree")
def test_reset_of_the_cache() -> None:
    cache = checked(RadixCache(8))
    request = Request("r", [1, 2, 3])
    assert cache.allocate(request, cache.lookup(request), 3)
    request.num_computed_tokens = 3
    cache.publish(request, 3)
    assert not cache.reset()  # only when idle
    assert cache.tree.num_blocks == 3
    cache.release(request)
    assert cache.reset()
    assert (cache.tree.num_evictable, cache.tree.num_protected) == (0, 0)
    assert cache.pool.num_free == 7


@vector("S24", "evicting nothing, and more than there is")
def test_evict_nothing_and_everything() -> None:
    tree = Tree()
    tree.insert([1, 2, 3])
    assert tree.evict(0) == []
    assert tree.evict(99) == [[1, 2, 3]]
    assert tree.sizes == (0, 0, 0)


@vector("S25", "siblings are evicted in order of use, and eviction stops as soon as enough blocks are free")
def test_siblings() -> None:
    tree = Tree()
    for run in ([1, 2, 3, 4], [1, 2, 5, 6], [1, 2, 7, 8]):
        tree.insert(run)
    assert tree.evict(5) == [[3, 4], [5, 6], [7, 8]]
    assert tree.sizes == (2, 0, 2)
    assert tree.shape == "[1,2]"


@vector("S28", "the slots of all nodes together")
def test_all_slots() -> None:
    tree = Tree()
    tree.insert([1, 2], [10, 20])
    tree.insert([3, 4], [30, 40])
    assert {block for node in tree.tree.nodes() for block in node.blocks} == {10, 20, 30, 40}
