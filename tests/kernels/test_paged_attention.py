"""Prompts, chunks and decodes in one launch, against the definition."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minicache.engine.kernels.paged_attention import paged_attention
from tests.kernels.cases import Case, lengths_around, make

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("block_size", [1, 2, 3, 16])
def test_chunks_behind_a_cached_prefix(block_size: int, dtype: torch.dtype) -> None:
    for length in lengths_around(block_size):
        case = make([(length, length), (0, length)], block_size, dtype)
        case.require_close(paged_attention(*case.inputs))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_prompt_a_chunk_and_a_decode_in_one_launch(dtype: torch.dtype) -> None:
    case = make([(0, 5), (7, 3), (10, 1)], 4, dtype, kv_heads=2, group=3)
    case.require_close(paged_attention(*case.inputs))


def test_a_context_of_several_tiles_of_keys() -> None:
    """64 keys a tile: the running maximum rises and falls between them."""
    case = make([(150, 3)], 16, torch.float64)
    case.k_cache.mul_(4)
    case.require_close(paged_attention(*case.inputs))


def test_several_tiles_of_rows() -> None:
    """5 queries of a group of 3 a tile, the last tile not full; every tile is of another length."""
    case = make([(2, 12), (0, 1)], 4, torch.float64, group=3)
    case.require_close(paged_attention(*case.inputs, tile_rows=16))


@pytest.mark.parametrize(("head_dim", "group"), [(32, 1), (80, 2), (128, 7), (256, 2), (10, 16)])
def test_head_sizes_and_groups(head_dim: int, group: int) -> None:
    case = make([(3, 2), (4, 1)], 4, torch.float64, head_dim=head_dim, group=group)
    case.require_close(paged_attention(*case.inputs))


@pytest.mark.parametrize("block_size", [32, 128])
def test_large_blocks(block_size: int) -> None:
    case = make([(block_size - 1, 2)], block_size, torch.float32)
    case.require_close(paged_attention(*case.inputs))


def test_a_block_that_two_sequences_share() -> None:
    case = make([(8, 2), (4, 3)], 4, torch.float64, shared_blocks=1)
    tables = case.layout.tables
    assert tables[0, 0] == tables[1, 0]
    assert tables[0, 1] != tables[1, 1]
    case.require_close(paged_attention(*case.inputs))


def test_unused_table_entries_are_not_followed() -> None:
    case = make([(5, 2), (0, 1)], 4, torch.float64)
    free = next(block for block in range(len(case.k_cache)) if case.k_cache[block].isnan().all())
    case.require_close(paged_attention(*case.with_unused_table_entries(free).inputs))


def test_nothing_but_the_result_is_written() -> None:
    case = make([(5, 2), (0, 1)], 4, torch.float32)
    before = [tensor.clone() for tensor in (case.q, case.k_cache, case.v_cache)]
    paged_attention(*case.inputs)
    for tensor, old in zip((case.q, case.k_cache, case.v_cache), before, strict=True):
        torch.testing.assert_close(tensor, old, rtol=0, atol=0, equal_nan=True)


def test_queries_may_be_a_slice_of_a_wider_product() -> None:
    case = make([(5, 2), (0, 1)], 4, torch.float64)
    wide = torch.full((3, 5, 32), torch.nan, dtype=torch.float64)
    wide[:, 1:3] = case.q
    torch.testing.assert_close(
        paged_attention(wide[:, 1:3], *case.inputs[1:]), paged_attention(*case.inputs), rtol=0, atol=0
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    block_size = draw(st.sampled_from([1, 2, 3, 4, 5, 8, 16]))
    chunk = st.tuples(st.integers(0, 2 * block_size + 1), st.integers(1, min(8, 2 * block_size)))
    return make(
        draw(st.lists(chunk, min_size=1, max_size=2)),
        block_size,
        draw(st.sampled_from(DTYPES)),
        kv_heads=draw(st.integers(1, 2)),
        group=draw(st.integers(1, 3)),
        head_dim=draw(st.sampled_from([8, 32, 40])),
        seed=draw(st.integers(0, 99)),
    )


@settings(max_examples=15)
@given(cases(), st.sampled_from([None, 16, 32]))
def test_any_batch(case: Case, tile_rows: int | None) -> None:
    case.require_close(paged_attention(*case.inputs, tile_rows=tile_rows))
