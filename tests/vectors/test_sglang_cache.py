"""C, L: a request's life over SGLang's tree: adopt, compute, checkpoint, release.

The specification's rows of slots are block tables here, one block a page, numbered as the pool hands them out. "Row
rewritten" reads "block table rewritten"; a checkpoint is `publish`.
"""

from collections.abc import Callable, Iterator

import pytest

from minicache.core.errors import InvalidArgument
from tests.vectors.drivers import Admitted, Radix, Tree, span
from tests.vectors.registry import story, vector


def of_nodes(radix: Radix, attribute: str) -> dict[tuple[int, ...], int]:
    return {tuple(node.tokens): getattr(node, attribute) for node in radix.cache.tree.nodes()}


@vector("C1", "equal prompts computed at once: the later one's blocks are freed and its table is rewritten")
def test_concurrent_duplicates() -> None:
    radix = Radix()
    a, b = radix.add([1, 2, 3, 4]), radix.add([1, 2, 3, 4])
    assert (a.hit, b.hit) == (0, 0)
    assert a.blocks == [1, 2, 3, 4]
    assert b.blocks == [5, 6, 7, 8]

    assert radix.checkpoint(a.request) == set()
    assert radix.checkpoint(b.request) == {5, 6, 7, 8}
    assert radix.shape == "[1,2,3,4]"
    assert a.blocks == b.blocks == [1, 2, 3, 4]
    assert of_nodes(radix, "lock_count") == {(1, 2, 3, 4): 2}
    assert radix.sizes == (0, 4)


@story(
    {
        "C2": "the tail that fills no page stays private",
        "C2.2": "the same prompt adopts the whole pages only",
        "C2.3": "at the end the output is published after the prompt, and only the partial page is freed",
    }
)
def test_unaligned_tail() -> Iterator[str]:
    radix = Radix(block_size=4)
    a = radix.add(span(0, 6))
    assert a.blocks == [1, 2]
    assert radix.checkpoint(a.request) == set()
    assert radix.shape == "[0,1,2,3]"
    protected = radix.lock(a.request)
    assert protected is not None
    assert protected.blocks == [1]
    assert a.blocks == [1, 2]
    yield "C2"

    c = radix.add(span(0, 6))
    assert (c.hit, c.adopted, c.blocks) == (4, [1], [1, 3])
    yield "C2.2"

    for token in (60, 61, 62):
        assert radix.decode(a.request, token)
    a.request.append(63)  # sampled last: it has no KV
    assert a.blocks == [1, 2, 4]
    assert a.request.num_computed_tokens == 9
    assert radix.checkpoint(a.request) == set()
    assert radix.shape == "[0,1,2,3]{[4,5,60,61]}"
    assert of_nodes(radix, "priority") == {(0, 1, 2, 3): 1, (4, 5, 60, 61): 0}

    before = set(radix.queue)
    radix.free(a)
    assert set(radix.queue) - before == {4}
    assert radix.sizes == (4, 4)  # C still locks the first page
    assert c.blocks == [1, 3]
    yield "C2.3"


@vector("C3", "a prompt that is cached whole: all tokens but one are adopted, and that one is a duplicate")
def test_identical_prompt() -> None:
    radix = Radix()
    first = radix.cache_prompt([1, 2, 3, 4])
    assert first.fresh == [1, 2, 3, 4]
    d = radix.add([1, 2, 3, 4])
    assert (d.hit, d.blocks) == (3, [1, 2, 3, 5])
    assert radix.checkpoint(d.request) == {5}
    assert d.blocks == [1, 2, 3, 4]
    assert radix.shape == "[1,2,3]{[4]}"


def prompt_and_output(radix: Radix, tokens: int) -> Admitted:
    """A prompt of four that has been decoded to `tokens`, all computed but the last sampled one; nothing published."""
    request = radix.add([1, 2, 3, 4])
    for token in span(5, tokens + 1):
        assert radix.decode(request.request, token)
    request.request.append(tokens + 1)
    assert request.request.num_computed_tokens == tokens
    return request


@vector("C4", "prompt and output become two nodes, and the output is evicted first")
@pytest.mark.parametrize("strategy", ["lru", "priority"])
def test_output_goes_before_prompt(strategy: str) -> None:
    radix = Radix(strategy=strategy)
    a = radix.add([1, 2, 3, 4])
    radix.checkpoint(a.request)  # after prefill
    for token in (5, 6):
        assert radix.decode(a.request, token)
    a.request.append(7)
    radix.checkpoint(a.request, up_to=6)
    assert of_nodes(radix, "priority") == {(1, 2, 3, 4): 1, (5, 6): 0}
    radix.free(a)
    assert radix.cache.evict(1) == 2
    assert radix.shape == "[1,2,3,4]"
    assert radix.sizes == (4, 0)


@vector("C5", "one checkpoint at the end makes the same two nodes")
def test_single_checkpoint() -> None:
    radix = Radix()
    a = prompt_and_output(radix, 6)
    assert radix.checkpoint(a.request) == set()
    assert radix.shape == "[1,2,3,4]{[5,6]}"
    assert of_nodes(radix, "priority") == {(1, 2, 3, 4): 1, (5, 6): 0}
    assert of_nodes(radix, "hit_count") == {(1, 2, 3, 4): 1, (5, 6): 1}


def finish(radix: Radix) -> None:
    a = radix.add([1, 2, 3, 4])
    assert radix.sizes == (0, 2)  # admitted: the two tokens it found are locked
    radix.checkpoint(a.request)
    assert radix.sizes == (0, 4)
    radix.decode(a.request, 5)
    radix.checkpoint(a.request)
    assert radix.sizes == (0, 5)
    radix.free(a)


def abort_before_prefill(radix: Radix) -> None:
    a = radix.admit(radix.request([1, 2, 3, 4]))
    assert a is not None
    assert radix.sizes == (0, 2)
    radix.free(a)


def abort_while_decoding(radix: Radix) -> None:
    a = radix.add([1, 2, 3, 4])
    radix.checkpoint(a.request)
    radix.decode(a.request, 5)
    radix.free(a)


def release_twice(radix: Radix) -> None:
    a = radix.add([1, 2, 3, 4])
    radix.free(a)
    radix.free(a)


@vector("L1", "every way to end a request gives back exactly the locks that it took")
@pytest.mark.parametrize("end", [finish, abort_before_prefill, abort_while_decoding, release_twice])
def test_locks_balance(end: Callable[[Radix], None]) -> None:
    radix = Radix()
    radix.cache_prompt([1, 2])
    end(radix)
    evictable, protected = radix.sizes
    assert protected == 0
    assert radix.cache.snapshot().locks == {}
    assert radix.cache.pool.num_free + evictable == radix.cache.capacity


@vector("L1", "every way to end a request gives back exactly the locks that it took")
def test_double_unlock_is_refused() -> None:
    """SGLang's count would go negative."""
    tree = Tree()
    tree.insert([1, 2])
    node = tree.node([1, 2])
    tree.tree.lock(node)
    tree.tree.unlock(node)
    with pytest.raises(InvalidArgument, match="unlocked more often"):
        tree.tree.unlock(node)
    tree.tree.check([])
