"""Requests share KV if and only if their namespaces are equal, however the texts of these are split or nested.

Adapter name and path, digest, salt and extra differ even if their texts are the same, or give the same text when
joined.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.core import Adapter, Namespace
from minicache.core.block_hash import extra_keys, hash_chain, sha256_cbor
from tests.core.laws import namespaces_never_share, tricky_namespaces
from tests.core.world import SUBJECTS

WORDS = st.text("ab:'", max_size=3)
ADAPTERS = st.none() | st.builds(Adapter, WORDS, WORDS, st.none() | WORDS)
NAMESPACES = st.builds(Namespace, ADAPTERS, st.none() | WORDS, st.lists(WORDS, max_size=2).map(tuple))

either_cache = pytest.mark.parametrize("kind", ["hash", "radix"])


@either_cache
def test_namespaces_that_spell_the_same_never_share(kind):
    namespaces_never_share(SUBJECTS[kind])


@either_cache
def test_no_two_namespaces_share(kind):
    @given(st.lists(NAMESPACES, min_size=2, max_size=20))
    def hold(namespaces):
        namespaces_never_share(SUBJECTS[kind], namespaces)

    hold()


def test_different_namespaces_have_different_keys_and_hashes():
    spaces = set(tricky_namespaces())
    assert len({extra_keys(space, is_first=True) for space in spaces}) == len(spaces)
    assert len({hash_chain([1, 2], 1, b"", space)[-1] for space in spaces}) == len(spaces)


def test_an_empty_salt_is_no_salt():
    assert Namespace(salt="") == Namespace()
    assert extra_keys(Namespace(salt=""), is_first=True) is None


@given(NAMESPACES)
def test_later_blocks_know_the_salt_through_their_parent_alone(namespace):
    unsalted = Namespace(namespace.adapter, None, namespace.extra)
    assert extra_keys(namespace, is_first=False) == extra_keys(unsalted, is_first=False)
    salted, plain = (hash_chain([1, 2, 3], 1, sha256_cbor.root(), space) for space in (namespace, unsalted))
    assert (salted[-1] == plain[-1]) == (namespace == unsalted)
