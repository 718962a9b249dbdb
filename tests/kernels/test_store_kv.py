"""Rows into slots: those, and no others."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minicache.engine.kernels import reference
from minicache.engine.kernels.store_kv import store_kv

SAME_BITS = {"rtol": 0, "atol": 0, "equal_nan": True}


@settings(max_examples=15)
@given(
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from([1, 10, 32]),
    st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]),
    st.lists(st.integers(0, 14), unique=True, max_size=6),
)
def test_it_is_its_twin(block_size: int, heads: int, head_dim: int, dtype: torch.dtype, slots: list[int]) -> None:
    shape = (15, block_size, heads, head_dim)
    caches = [torch.full(shape, torch.nan, dtype=dtype) for _ in range(2)]
    twins = [cache.clone() for cache in caches]
    k, v = (torch.randn(len(slots), heads, head_dim).to(dtype) for _ in range(2))
    at = torch.tensor(slots, dtype=torch.int64)
    store_kv(k, v, *caches, at)
    reference.store_kv(k, v, *twins, at)
    torch.testing.assert_close(caches, twins, **SAME_BITS)


@pytest.mark.parametrize("integer", [torch.int32, torch.int64])
def test_rows_may_be_slices_of_one_product(integer: torch.dtype) -> None:
    product = torch.randn(3, 8, 16)  # 4 queries, 2 keys, 2 values
    k, v = product[:, 4:6], product[:, 6:8]
    caches = [torch.full((4, 2, 2, 16), torch.nan) for _ in range(2)]
    store_kv(k, v, *caches, torch.tensor([7, 0, 3], dtype=integer))
    for cache, rows in zip(caches, (k, v), strict=True):
        torch.testing.assert_close(cache.flatten(0, 1)[[7, 0, 3]], rows, **SAME_BITS)
        assert cache.flatten(0, 1)[[1, 2, 4, 5, 6]].isnan().all()
