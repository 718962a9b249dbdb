"""Writes new keys and values to the paged cache: a scatter of rows.

Shapes: T tokens, Hkv key-value heads, D head size, N blocks, B block size. A slot is block * B + offset.

It computes nothing: it reads and writes 2 T Hkv D elements, 4 T Hkv D element sizes in all, and reads T slots, so the
memory's bandwidth bounds it. With 8 heads of 128 in bfloat16 that is 8 KiB a token; 4,096 tokens are 32 MiB, 10 µs at
3.35 TB/s.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from minicache.core.errors import InvalidArgument
from minicache.engine.kernels.launch import FP_FUSION, require_cache, require_rows, require_runnable

THREADS = {"num_warps": 4, "num_stages": 1, "enable_fp_fusion": FP_FUSION}


@triton.jit
def store_kv_kernel(
    k,  # (T, Hkv, D)
    v,  # (T, Hkv, D)
    k_cache,  # (N, B, Hkv, D)
    v_cache,  # (N, B, Hkv, D)
    slots,  # (T,)
    k_stride,  # elements from one row of k to the next: k may be a slice of a wider product
    v_stride,
    ROW: tl.constexpr,  # Hkv * D
    PADDED_ROW: tl.constexpr,  # the next power of two
):
    # A program owns one token: all its heads, which are contiguous both in k and v and in the caches.
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token).to(tl.int64)  # a pool may have more than 2**31 elements

    # Ranges are powers of two. Elements after the row belong to the next token, so they are neither read nor written.
    element = tl.arange(0, PADDED_ROW)
    inside = element < ROW
    key = tl.load(k + token * k_stride + element, mask=inside)
    value = tl.load(v + token * v_stride + element, mask=inside)

    # No two tokens of a batch have one slot, so the order of programs does not matter.
    tl.store(k_cache + slot * ROW + element, key, mask=inside)
    tl.store(v_cache + slot * ROW + element, value, mask=inside)


def store_kv(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """Store `k` and `v (T, Hkv, D)` at `slots (T,)` of the caches `(N, B, Hkv, D)`.

    Raises `InvalidArgument` if the tensors do not fit together. The values of the slots are not checked, because that
    would wait for the GPU: they must differ and lie in the pool.
    """
    require_cache(k_cache, v_cache)
    shape = (len(slots), *k_cache.shape[2:])
    require_rows("k", k, shape, k_cache)
    require_rows("v", v, shape, k_cache)
    if slots.dtype not in (torch.int32, torch.int64) or slots.ndim != 1 or not slots.is_contiguous():
        raise InvalidArgument(f"slots must be one dense row of integers, not {tuple(slots.shape)} of {slots.dtype}")
    require_runnable(store_kv_kernel, k, v, k_cache, v_cache, slots)
    if len(slots):
        constants = constants_of(k_cache.shape[2] * k_cache.shape[3])
        grid = (len(slots),)
        store_kv_kernel[grid](k, v, k_cache, v_cache, slots, k.stride(0), v.stride(0), **constants, **THREADS)


def constants_of(row: int) -> dict[str, Any]:
    """The kernel's constants for rows of `row` elements."""
    return {"ROW": row, "PADDED_ROW": triton.next_power_of_2(row)}
