"""`encode` writes what cbor2 writes in its canonical mode: cbor2 is the oracle, for whatever a cache key can hold."""

import sys
from array import array
from concurrent.futures import ThreadPoolExecutor
from random import Random

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.core import Adapter, Namespace, cbor
from minicache.core.block_hash import hash_chain, sha256_cbor
from minicache.core.cbor import encode
from minicache.core.errors import InvalidArgument

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
LEAVES = st.none() | st.integers(-(2**64), 2**64 - 1) | st.binary(max_size=300) | TEXT
VALUES = st.recursive(LEAVES, lambda values: st.lists(values, max_size=30).map(tuple), max_leaves=40)
LEAF_SIZES = (0, 5, 8, 16, 32, 64)  # bits
EDGES = [n + d for n in (0, 24, 1 << 8, 1 << 16, 1 << 32, 1 << 64) for d in (-1, 0) if 0 <= n + d < 1 << 64]


@given(VALUES)
def test_encode_is_canonical_cbor(value):
    assert encode(value) == cbor2.dumps(value, canonical=True)


def random_value(draw: Random, depth: int = 2) -> object:
    number = draw.getrandbits(draw.choice(LEAF_SIZES))
    kind = draw.randrange(6 if depth else 5)
    if kind == 5:
        return tuple(random_value(draw, depth - 1) for _ in range(draw.randrange(6)))
    return (None, number, -1 - number, "ä" * (number % 300), b"a" * (number % 300))[kind]


def test_encode_is_canonical_cbor_20_000_times():
    draw = Random(1)
    for _ in range(20_000):
        value = random_value(draw)
        assert encode(value) == cbor2.dumps(value, canonical=True)


@pytest.mark.parametrize("number", EDGES)
def test_heads_are_shortest_at_every_edge(number):
    assert encode(number) == cbor2.dumps(number, canonical=True)
    assert encode(-1 - number) == cbor2.dumps(-1 - number, canonical=True)


@pytest.mark.parametrize("size", [n for n in EDGES if n <= 1 << 16])
def test_lengths_are_shortest_at_every_edge(size):
    for value in ("a" * size, b"a" * size, (1,) * size):
        assert encode(value) == cbor2.dumps(value, canonical=True)


BLOCKS = st.tuples(
    st.binary(min_size=16, max_size=32),
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=300),
    st.none() | st.lists(st.tuples(TEXT, TEXT | st.integers(0, 2**32)), min_size=1, max_size=3).map(tuple),
)


@given(BLOCKS)
def test_a_block_is_hashed_over_the_cbor_of_parent_tokens_and_keys(block):
    parent, tokens, keys = block
    expected = sha256_cbor.digest(cbor2.dumps((parent, tuple(tokens), keys), canonical=True))
    assert sha256_cbor(parent, tokens, keys) == expected


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 5), st.data())
def test_a_chain_may_be_continued_where_it_ended(tokens, block_size, data):
    whole = hash_chain(tokens, block_size, b"root", Namespace())
    assert len(whole) == len(tokens) // block_size
    known = data.draw(st.integers(0, len(whole)))
    assert hash_chain(tokens, block_size, b"root", Namespace(), known=whole[:known]) == whole


IDS = (
    st.integers(0, 300)
    | st.integers(0, 70_000)
    | st.integers(0, 2**64 - 1)
    | st.sampled_from([edge for edge in EDGES if edge >= 0])
)
NAMESPACES = st.builds(
    Namespace,
    st.none() | st.builds(Adapter, TEXT, TEXT, st.none() | TEXT),
    st.none() | TEXT,
    st.lists(TEXT, max_size=2).map(tuple),
)


def block_by_block(parent, tokens, keys):
    """A function that is no `CborHash`, so that `hash_chain` calls it for each block."""
    return sha256_cbor(parent, tokens, keys)


NARROW = st.integers(200, 65_535)


@given(st.lists(IDS, max_size=60) | st.lists(NARROW, max_size=60), st.integers(1, 20), NAMESPACES, st.data())
def test_the_chain_of_a_cbor_hash_is_that_of_its_blocks(tokens, block_size, namespace, data):
    root = sha256_cbor.root("a seed")
    expected = hash_chain(tokens, block_size, root, namespace, block_by_block)
    known = expected[: data.draw(st.integers(0, len(expected)))]
    for given_tokens in (tokens, array("Q", tokens)):
        assert hash_chain(given_tokens, block_size, root, namespace, sha256_cbor, known) == expected


def test_threads_that_hash_at_once_get_the_hashes_of_their_tokens(monkeypatch):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            for _ in range(5):
                monkeypatch.setattr(cbor, "_ENCODED", [])
                list(threads.map(lambda token: sha256_cbor(b"root", [token]), (3000, 5000, 2000, 4000)))
                assert [encode(token) for token in range(5001)] == cbor._ENCODED
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize(
    "value", [1.5, {"a": 1}, {1}, object(), 1 << 64, -(1 << 64) - 1], ids=lambda v: type(v).__name__
)
def test_what_no_key_can_hold_is_refused(value):
    with pytest.raises(InvalidArgument, match="value"):
        encode((b"parent", value))
