"""One query of each sequence over its block table, the context split between programs: for few, long sequences.

Shapes: T tokens of the batch (one of each sequence), S sequences, Hq query heads, Hkv key-value heads, G = Hq / Hkv,
        D head size, N blocks, B block size, M blocks of a table, C keys of a tile, K splits of a context.

    context of 300, C = 16, K = 4:   | split 0: 80 keys | split 1: 80 keys | split 2: 80 keys | split 3: 60 keys |
                                     one program for each split and key-value head; `merge_splits` combines them

`paged_attention` runs one program for each decode and key-value head. Two sequences with 8 heads are then 16 programs,
on a GPU that runs hundreds at once and needs most of them to reach its memory's bandwidth. Here K programs share the
reading of each context.

Bytes of a sequence: its KV once, 2 c Hkv D elements; its partial results, written and read, 2 Hq K (D + 1) float32.
FLOPs: 4 c Hq D, which is 2 G for each element of KV read: bandwidth bounds it.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from minicache.core.errors import InvalidArgument
from minicache.engine.kernels.launch import (
    FP_FUSION,
    SMALLEST_SIDE,
    Geometry,
    operand,
    require_layout,
    require_runnable,
)
from minicache.engine.kernels.layout import Layout
from minicache.engine.kernels.merge_splits import keys_of_a_split, merge_splits

PROGRAMS_PER_PROCESSOR = 4  # enough loads in flight on each processor of the GPU to hide their latency
SHORTEST_SPLIT = 256  # keys: a program with fewer costs more to start and to merge than it saves
MOST_SPLITS = 32  # `merge_splits` holds the partial results of all splits in registers
# Three stages: two tiles are on their way from memory while a third is used.
THREADS = {"num_warps": 4, "num_stages": 3, "enable_fp_fusion": FP_FUSION}


# One program for every width of a table, as in `paged_attention`.
@triton.jit(do_not_specialize=["table_stride"])
def paged_decode_kernel(
    partials,  # (S, Hq, K, D)
    lse,  # (S, Hq, K)
    q,  # (T, Hq, D)
    k_cache,  # (N, B, Hkv, D)
    v_cache,  # (N, B, Hkv, D)
    tables,  # (S, M)
    spans,  # (S, 3): row, 1, position
    q_stride,  # elements from one row of q to the next
    table_stride,  # M
    SCALE: tl.constexpr,  # log2(e) / sqrt(D)
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,  # G
    HEAD: tl.constexpr,  # D
    PADDED_HEAD: tl.constexpr,  # the next power of two
    BLOCK: tl.constexpr,  # B
    ROWS: tl.constexpr,  # G, filled up to what a matrix unit takes
    KEYS: tl.constexpr,  # C
    SPLITS: tl.constexpr,  # K
    OPERAND: tl.constexpr,  # the type in which matrices are multiplied
    SUM: tl.constexpr,  # the type in which products are summed
):
    # The program owns a run of keys of one sequence, in one key-value head, for the GROUP query heads that read it.
    sequence, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row = tl.load(spans + 3 * sequence).to(tl.int64)
    context = tl.load(spans + 3 * sequence + 2) + 1  # the query sees all of it: there is no causal mask
    length = keys_of_a_split(context, SPLITS, KEYS)
    begin = split * length
    end = tl.minimum(begin + length, context)
    if begin >= context:  # a short context needs fewer splits, and `merge_splits` does not read the others' results
        return

    # The query is loaded once. Rows beyond the group repeat its last head and are not stored.
    r = tl.arange(0, ROWS)
    head = kv_head * GROUP + tl.minimum(r, GROUP - 1)
    d = tl.arange(0, PADDED_HEAD)
    inside = d < HEAD
    at_q = row * q_stride + head[:, None] * HEAD + d[None, :]
    queries = tl.load(q + at_q, mask=inside[None, :], other=0.0).to(OPERAND)  # (ROWS, D)

    # The running softmax, as in `paged_attention`.
    peak = tl.full([ROWS], float("-inf"), SUM)
    total = tl.full([ROWS], 0.0, SUM)
    mixed = tl.full([ROWS, PADDED_HEAD], 0.0, SUM)
    for first_key in range(begin, end, KEYS):
        key = first_key + tl.arange(0, KEYS)
        written = key < end
        block = tl.load(tables + sequence * table_stride + key // BLOCK, mask=written, other=0).to(tl.int64)
        slot = block * BLOCK + key % BLOCK
        at_kv = slot[:, None] * (KV_HEADS * HEAD) + kv_head * HEAD + d[None, :]
        readable = written[:, None] & inside[None, :]
        keys = tl.load(k_cache + at_kv, mask=readable, other=0.0).to(OPERAND)  # (C, D)
        values = tl.load(v_cache + at_kv, mask=readable, other=0.0).to(OPERAND)  # (C, D)

        # Only the tile at the end of the context has keys to mask.
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee", out_dtype=SUM) * SCALE  # (ROWS, C)
        scores = tl.where(written[None, :], scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        shrink = tl.exp2(peak - new_peak)
        weights = tl.exp2(scores - new_peak[:, None])  # (ROWS, C)
        total = total * shrink + tl.sum(weights, 1)
        mixed = mixed * shrink[:, None]
        mixed = tl.dot(weights.to(OPERAND), values, acc=mixed, input_precision="ieee", out_dtype=SUM)  # (ROWS, D)
        peak = new_peak

    # The attention to these keys alone, and their weight: log2 of the sum of their exponentials.
    stored = r < GROUP
    at = (sequence * (KV_HEADS * GROUP) + head).to(tl.int64) * SPLITS + split
    tl.store(lse + at, peak + tl.log2(total), mask=stored)
    at_partial = at[:, None] * HEAD + d[None, :]
    tl.store(partials + at_partial, mixed / total[:, None], mask=stored[:, None] & inside[None, :])


def paged_decode(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, layout: Layout, *, num_splits: int | None = None
) -> Tensor:
    """Attend with `q (T, Hq, D)`, one row of each sequence, over `k_cache` and `v_cache (N, B, Hkv, D)`.

    Returns `(T, Hq, D)`. `num_splits` is a power of two, at most 32; None chooses it for the GPU. Raises
    `InvalidArgument` if the tensors do not fit together or a sequence has several rows.
    """
    geometry = Geometry.of(q, k_cache, v_cache)
    require_layout(q, k_cache, layout)
    layout.require_single_rows()
    require_runnable(paged_decode_kernel, q, k_cache, v_cache, layout.tables)
    splits = num_splits or splits_of(geometry, layout, processors(q.device))
    if splits not in (1 << n for n in range(MOST_SPLITS.bit_length())):
        raise InvalidArgument(f"num_splits must be a power of two from 1 to {MOST_SPLITS}, not {splits}")
    keys = keys_of(geometry)
    shape = (len(q), q.shape[1], splits)
    summed_in = torch.float64 if q.dtype is torch.float64 else torch.float32
    partials = torch.empty((*shape, geometry.head_dim), dtype=summed_in, device=q.device)
    lse = torch.empty(shape, dtype=summed_in, device=q.device)
    paged_decode_kernel[len(q), geometry.kv_heads, splits](
        partials,
        lse,
        q,
        k_cache,
        v_cache,
        layout.tables,
        layout.spans,
        q.stride(0),
        layout.tables.stride(0),
        **constants_of(geometry, splits),
        **THREADS,
    )
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    merge_splits(out, partials, lse, layout.spans, geometry, keys)
    return out


def splits_of(geometry: Geometry, layout: Layout, num_processors: int) -> int:
    """K: enough splits to fill the GPU, if the contexts are long enough."""
    programs = len(layout.batch.sequences) * geometry.kv_heads
    wanted = -(-PROGRAMS_PER_PROCESSOR * num_processors // programs)
    worthwhile = max(1, layout.longest_context // SHORTEST_SPLIT)
    return min(MOST_SPLITS, triton.next_power_of_2(min(wanted, worthwhile)))


def processors(device: torch.device) -> int:
    """The number of the GPU's processors; 1 on a CPU, which interprets one program at a time."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def keys_of(geometry: Geometry) -> int:
    """C: the keys of a tile of 16 KiB; of 8 KiB in float32, which threads multiply, not matrix units."""
    size = 1 << (14 if geometry.dtype.itemsize == 2 else 13)
    return max(SMALLEST_SIDE, min(64, size // (geometry.padded_head * geometry.dtype.itemsize)))


def constants_of(geometry: Geometry, splits: int) -> dict[str, Any]:
    """The kernel's constants."""
    return {
        "SCALE": geometry.scale,
        "KV_HEADS": geometry.kv_heads,
        "GROUP": geometry.group,
        "HEAD": geometry.head_dim,
        "PADDED_HEAD": geometry.padded_head,
        "BLOCK": geometry.block_size,
        "ROWS": max(SMALLEST_SIDE, triton.next_power_of_2(geometry.group)),
        "KEYS": keys_of(geometry),
        "SPLITS": splits,
        "OPERAND": operand(paged_decode_kernel, geometry.dtype),
        "SUM": geometry.accumulator,
    }
