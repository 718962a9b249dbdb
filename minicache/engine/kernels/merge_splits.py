"""Combines the results of a context's splits: the second half of `paged_decode`.

Shapes: S sequences, Hq query heads, D head size, K splits of a context.

The softmax over a whole context is a mean of the softmaxes over its parts, weighed by the sums of their exponentials:

    out = sum_i 2**(lse_i) partial_i / sum_i 2**(lse_i)      where 2**(lse_i) is the sum of split i's exponentials

It reads S Hq K (D + 1) float32 and writes S Hq D: bandwidth bounds it. That is little compared with the KV that the
splits read, because a split has hundreds of keys. 3 FLOPs for each element read.
"""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from minicache.engine.kernels.launch import FP_FUSION, Geometry

THREADS = {"num_warps": 4, "num_stages": 1, "enable_fp_fusion": FP_FUSION}


@triton.jit
def keys_of_a_split(context, SPLITS: tl.constexpr, KEYS: tl.constexpr):
    """Keys of a split: the fewest whole tiles of KEYS keys with which SPLITS splits hold the context. The last splits
    may be empty."""
    tiles = (context + KEYS - 1) // KEYS
    return (tiles + SPLITS - 1) // SPLITS * KEYS


@triton.jit
def merge_splits_kernel(
    out,  # (T, Hq, D), one row of each sequence
    partials,  # (S, Hq, K, D): the attention of each split by itself
    lse,  # (S, Hq, K): log2 of the sum of its exponentials
    spans,  # (S, 3): row, 1, position
    HEADS: tl.constexpr,  # Hq
    HEAD: tl.constexpr,  # D
    PADDED_HEAD: tl.constexpr,  # the next power of two
    SPLITS: tl.constexpr,  # K
    KEYS: tl.constexpr,  # keys of a tile, of which a split is a multiple
):
    # A program owns one query head of one sequence.
    sequence, head = tl.program_id(0), tl.program_id(1)
    row = tl.load(spans + 3 * sequence).to(tl.int64)
    context = tl.load(spans + 3 * sequence + 2) + 1

    # A short context needs fewer than SPLITS splits. The others wrote nothing, so their memory is not read.
    length = keys_of_a_split(context, SPLITS, KEYS)
    split = tl.arange(0, SPLITS)
    used = split * length < context
    first = (sequence * HEADS + head).to(tl.int64) * SPLITS
    logs = tl.load(lse + first + split, mask=used, other=float("-inf"))
    weights = tl.exp2(logs - tl.max(logs, 0))  # at most 1; 0 where nothing was written

    d = tl.arange(0, PADDED_HEAD)
    inside = d < HEAD
    at = (first + split)[:, None] * HEAD + d[None, :]
    partial = tl.load(partials + at, mask=used[:, None] & inside[None, :], other=0.0)  # (K, D)
    merged = tl.sum(partial * weights[:, None], 0) / tl.sum(weights, 0)
    tl.store(out + (row * HEADS + head) * HEAD + d, merged.to(out.dtype.element_ty), mask=inside)


def merge_splits(out: Tensor, partials: Tensor, lse: Tensor, spans: Tensor, geometry: Geometry, keys: int) -> None:
    """Write to `out (T, Hq, D)` the combination of `paged_decode`'s `partials (S, Hq, K, D)` and `lse (S, Hq, K)`."""
    num_sequences, heads, splits, _ = partials.shape
    constants = constants_of(geometry, splits, keys)
    merge_splits_kernel[num_sequences, heads](out, partials, lse, spans, **constants, **THREADS)


def constants_of(geometry: Geometry, splits: int, keys: int) -> dict[str, Any]:
    """The kernel's constants."""
    return {
        "HEADS": geometry.kv_heads * geometry.group,
        "HEAD": geometry.head_dim,
        "PADDED_HEAD": geometry.padded_head,
        "SPLITS": splits,
        "KEYS": keys,
    }
