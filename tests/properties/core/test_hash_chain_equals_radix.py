"""A hash chain and a radix tree with equal block sizes find the same tokens (invariant 10).

This holds with enough memory, for prompts, one request after the other: then both find the longest shared prefix in
whole blocks, without the last token.
"""

from hypothesis import given
from hypothesis import strategies as st

from tests.core.laws import hash_chain_and_radix_find_the_same
from tests.core.world import HASH, RADIX

PROMPTS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=40), min_size=2, max_size=12)


def test_both_find_the_same_in_prompts_that_share_much():
    hash_chain_and_radix_find_the_same(HASH)
    hash_chain_and_radix_find_the_same(RADIX)


@given(PROMPTS)
def test_both_find_the_same_in_any_prompts(prompts):
    hash_chain_and_radix_find_the_same(HASH, prompts)
