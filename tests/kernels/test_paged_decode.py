"""Contexts in splits, and what the splits found made one, against the definition."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minicache.core.errors import InvalidArgument
from minicache.engine.kernels import reference
from minicache.engine.kernels.launch import Geometry
from minicache.engine.kernels.merge_splits import merge_splits
from minicache.engine.kernels.paged_decode import keys_of, paged_decode, splits_of
from tests.kernels.cases import TOLERANCE, lengths_around, make

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
LONG = 100  # keys: two tiles and a bit more at head size 64 in float64


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("block_size", [1, 3, 16])
def test_lengths_around_a_block(block_size: int, dtype: torch.dtype) -> None:
    for length in lengths_around(block_size):
        case = make([(length - 1, 1), (2 * block_size, 1)], block_size, dtype)
        case.require_close(paged_decode(*case.inputs, num_splits=2))


@pytest.mark.parametrize("num_splits", [1, 2, 4, 8])
def test_more_splits_than_tiles_of_keys(num_splits: int) -> None:
    """The last splits of the long context are empty, all but one of the short."""
    case = make([(LONG, 1), (2, 1)], 16, torch.float64, head_dim=64)
    case.require_close(paged_decode(*case.inputs, num_splits=num_splits))


@pytest.mark.parametrize(("head_dim", "group"), [(32, 1), (80, 3), (256, 2), (10, 20)])
def test_head_sizes_and_groups(head_dim: int, group: int) -> None:
    case = make([(20, 1)], 4, torch.float64, head_dim=head_dim, group=group, kv_heads=2)
    case.require_close(paged_decode(*case.inputs, num_splits=2))


def test_a_block_that_two_sequences_share_and_unused_table_entries() -> None:
    case = make([(5, 1), (9, 1)], 4, torch.float64, shared_blocks=1)
    free = next(block for block in range(len(case.k_cache)) if case.k_cache[block].isnan().all())
    case.require_close(paged_decode(*case.with_unused_table_entries(free).inputs, num_splits=2))


@settings(max_examples=10)
@given(
    st.integers(1, 5),
    st.lists(st.integers(0, 40), min_size=1, max_size=2),
    st.sampled_from(DTYPES),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 4),
)
def test_any_batch(block_size: int, starts: list[int], dtype: torch.dtype, num_splits: int, group: int) -> None:
    case = make([(start, 1) for start in starts], block_size, dtype, group=group)
    case.require_close(paged_decode(*case.inputs, num_splits=num_splits))


def test_the_twin_is_attention_however_it_is_split() -> None:
    query, keys, values = torch.randn(8), torch.randn(11, 8), torch.randn(11, 8)
    whole = reference.attend_one(query, keys, values)
    for length in (1, 3, 5, 11, 20):
        torch.testing.assert_close(reference.paged_decode(query, keys, values, length), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_merging_is_its_twin_and_reads_no_unused_split(dtype: torch.dtype) -> None:
    geometry = Geometry(dtype, kv_heads=1, group=2, head_dim=40, block_size=4)
    spans = torch.tensor([[1, 1, 16 * 3], [0, 1, 0]], dtype=torch.int32)  # contexts of 4 tiles and of 1
    used = (4, 1)
    summed_in = torch.float64 if dtype is torch.float64 else torch.float32
    partials = torch.full((2, 2, 8, 40), torch.nan, dtype=summed_in)
    lse = torch.full((2, 2, 8), torch.nan, dtype=summed_in)
    for sequence, count in enumerate(used):
        partials[sequence, :, :count] = torch.randn(2, count, 40)
        lse[sequence, :, :count] = 50 * torch.randn(2, count)  # 2**lse would overflow float32
    out = torch.full((2, 2, 40), torch.nan, dtype=dtype)
    merge_splits(out, partials, lse, spans, geometry, keys=16)
    for sequence, count in enumerate(used):
        for head in range(2):
            expected = reference.merge_splits(partials[sequence, head, :count], lse[sequence, head, :count])
            found = out[1 - sequence, head].double()
            torch.testing.assert_close(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_few_long_sequences_are_split_and_many_are_not() -> None:
    geometry = Geometry(torch.bfloat16, kv_heads=8, group=4, head_dim=128, block_size=16)
    long = make([(4000, 1)], 128).layout
    many = make([(300, 1)] * 40, 128).layout
    short = make([(100, 1)], 128).layout
    assert splits_of(geometry, long, 132) == 16  # of 250 keys each
    assert splits_of(geometry, many, 132) == 1
    assert splits_of(geometry, short, 132) == 1
    assert keys_of(geometry) == 64


def test_chunks_and_odd_split_counts_are_refused() -> None:
    case = make([(3, 2)], 4)
    with pytest.raises(InvalidArgument, match="one row of each sequence: use paged_attention"):
        paged_decode(*case.inputs)
    case = make([(3, 1)], 4)
    with pytest.raises(InvalidArgument, match="num_splits must be a power of two from 1 to 32, not 3"):
        paged_decode(*case.inputs, num_splits=3)
