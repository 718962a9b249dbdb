"""Ragged queries over block tables, causal: prompts, chunks after a cached prefix and decodes in one launch.

Shapes: T tokens of the batch, S sequences, Hq query heads, Hkv key-value heads, G = Hq / Hkv, D head size, N blocks,
        B block size, M blocks of a table, P tiles, R rows of a tile, Q queries of a tile, C keys of a tile,
        c context of a sequence.

    a tile of R rows: Q = R // G queries, each in the G heads that read one key-value head

                 keys 0 … C    C … 2C    2C … 3C
    query 0      # # # # # #   # # # #   # .          # seen    . masked: later than the query
    query 1      # # # # # #   # # # #   # # .        the walk ends with the tile that holds the last query's own key

FLOPs of a sequence with n rows: 4 D Hq for each (query, key) pair, and there are n c - n (n - 1) / 2. Bytes: the rows
of q and out once, 2 n Hq D elements; keys and values once for each tile of rows, 2 c Hkv D n / Q at most, most of them
from the L2 cache. A prompt of 4,096 (n = c) does 2 n FLOPs for each element of q, k, v and out: the matrix units bound
it. A decode (n = 1) does 2 G FLOPs for each element of KV: the memory's bandwidth bounds it, whatever R is.

Exact mode (see `minicache.engine.exact`) runs this kernel alone, with tiles of queries that begin at multiples of Q of
the sequence's positions. A row's place in its tile, the tiles of keys that it meets and their order then depend only on
its position, and R, Q, C, the number of threads and of stages only on the model: together they fix the order in which a
GPU sums. Tiles of keys that a row meets only because a later row of its tile needs them add exactly 0.
"""

import math
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

PROMPT_ROWS = 64  # each loaded key meets 64 rows, the fewest that Hopper's matrix unit takes
DECODE_ROWS = SMALLEST_SIDE  # for batches of decodes alone: each has only G rows to fill a tile with


# One program for every width of a table: by default triton compiles others for a width of 1 and multiples of 16.
@triton.jit(do_not_specialize=["table_stride"])
def paged_attention_kernel(
    out,  # (T, Hq, D)
    q,  # (T, Hq, D)
    k_cache,  # (N, B, Hkv, D)
    v_cache,  # (N, B, Hkv, D)
    tables,  # (S, M)
    spans,  # (S, 3): first row, number of rows, position of the first row
    tiles,  # (P, 2): sequence, first query; it is negative where an aligned tile begins before the sequence's rows
    q_stride,  # elements from one row of q to the next
    table_stride,  # M
    SCALE: tl.constexpr,  # log2(e) / sqrt(D)
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,  # G
    HEAD: tl.constexpr,  # D
    PADDED_HEAD: tl.constexpr,  # the next power of two
    BLOCK: tl.constexpr,  # B
    ROWS: tl.constexpr,  # R
    QUERIES: tl.constexpr,  # Q
    KEYS: tl.constexpr,  # C
    OPERAND: tl.constexpr,  # the type in which matrices are multiplied
    SUM: tl.constexpr,  # the type in which products are summed
):
    # The program owns QUERIES queries of one sequence, in the GROUP heads that share one key-value head: each key is
    # loaded once for all of them.
    sequence = tl.load(tiles + 2 * tl.program_id(0))
    first_query = tl.load(tiles + 2 * tl.program_id(0) + 1)
    kv_head = tl.program_id(1)
    first_row = tl.load(spans + 3 * sequence)
    num_rows = tl.load(spans + 3 * sequence + 1)
    start = tl.load(spans + 3 * sequence + 2)

    # Row r is query r // GROUP in head r % GROUP. Rows without a query compute the first or last query again and are
    # not stored: so every row sees a key, and no maximum below is taken over an empty set.
    r = tl.arange(0, ROWS)
    wanted = first_query + r // GROUP
    owned = (r < QUERIES * GROUP) & (wanted >= 0) & (wanted < num_rows)
    query = tl.minimum(tl.maximum(wanted, 0), num_rows - 1)
    row = (first_row + query).to(tl.int64)
    head = kv_head * GROUP + r % GROUP

    # The queries are loaded once.
    d = tl.arange(0, PADDED_HEAD)
    inside = d < HEAD
    at_q = row[:, None] * q_stride + head[:, None] * HEAD + d[None, :]
    queries = tl.load(q + at_q, mask=inside[None, :], other=0.0).to(OPERAND)  # (R, D)

    # The running softmax of each row: the largest score so far, the sum of weights and the weighted sum of values, both
    # relative to that score.
    peak = tl.full([ROWS], float("-inf"), SUM)
    total = tl.full([ROWS], 0.0, SUM)
    mixed = tl.full([ROWS, PADDED_HEAD], 0.0, SUM)
    end = start + tl.minimum(first_query + QUERIES, num_rows)  # no row of the tile sees a key from here on
    # Tiles of keys are cut by position, not by block.
    for first_key in range(0, end, KEYS):
        key = first_key + tl.arange(0, KEYS)

        # Slots from `end` on were never written and may be NaN. 0 * NaN is NaN, so they are read as 0 instead of being
        # given weight 0. The table may end there, too.
        written = key < end
        block = tl.load(tables + sequence * table_stride + key // BLOCK, mask=written, other=0).to(tl.int64)
        slot = block * BLOCK + key % BLOCK
        at_kv = slot[:, None] * (KV_HEADS * HEAD) + kv_head * HEAD + d[None, :]
        readable = written[:, None] & inside[None, :]
        keys = tl.load(k_cache + at_kv, mask=readable, other=0.0).to(OPERAND)  # (C, D)
        values = tl.load(v_cache + at_kv, mask=readable, other=0.0).to(OPERAND)  # (C, D)

        # A query sees its own position and those before it.
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee", out_dtype=SUM) * SCALE  # (R, C)
        scores = tl.where(key[None, :] <= (start + query)[:, None], scores, float("-inf"))

        # A higher peak shrinks the sums so far, which are relative to the old one.
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        shrink = tl.exp2(peak - new_peak)
        weights = tl.exp2(scores - new_peak[:, None])  # (R, C), at most 1
        total = total * shrink + tl.sum(weights, 1)
        mixed = mixed * shrink[:, None]
        mixed = tl.dot(weights.to(OPERAND), values, acc=mixed, input_precision="ieee", out_dtype=SUM)  # (R, D)
        peak = new_peak

    at_out = row[:, None] * (KV_HEADS * GROUP * HEAD) + head[:, None] * HEAD + d[None, :]
    attended = (mixed / total[:, None]).to(out.dtype.element_ty)
    tl.store(out + at_out, attended, mask=owned[:, None] & inside[None, :])


def paged_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    layout: Layout,
    *,
    tile_rows: int | None = None,
    exact_tile: int | None = None,
) -> Tensor:
    """Attend with `q (T, Hq, D)` over `k_cache` and `v_cache (N, B, Hkv, D)`; returns `(T, Hq, D)`.

    See `minicache.engine.attention.Attention`. `tile_rows` fixes R, a power of two of at least 16 and G; None chooses R
    for the batch. With `exact_tile` each row has the same bits in every batch: R does not depend on the batch, and no
    tile of queries crosses a multiple of `exact_tile` positions. Raises `InvalidArgument` if the tensors do not fit
    together.
    """
    geometry = Geometry.of(q, k_cache, v_cache)
    require_layout(q, k_cache, layout)
    require_runnable(paged_attention_kernel, q, k_cache, v_cache, layout.tables)
    rows = tile_rows or rows_of(geometry, decode=layout.single_rows and not exact_tile)
    if rows < max(SMALLEST_SIDE, geometry.group) or rows & (rows - 1):
        raise InvalidArgument(f"tile_rows must be a power of two that holds a group of {geometry.group}, not {rows}")
    queries = queries_of(geometry, rows, exact_tile)
    tiles = layout.tiles(queries, aligned=exact_tile is not None)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    paged_attention_kernel[len(tiles), geometry.kv_heads](
        out,
        q,
        k_cache,
        v_cache,
        layout.tables,
        layout.spans,
        tiles,
        q.stride(0),
        layout.tables.stride(0),
        **constants_of(geometry, rows, queries),
        **threads_of(geometry, rows),
    )
    return out


def rows_of(geometry: Geometry, *, decode: bool) -> int:
    """R: rows of a tile, at least one query of the whole group.

    NVIDIA's matrix units do not multiply full float32: threads multiply it, and their registers hold only small tiles.
    """
    few = decode or geometry.dtype.itemsize > 2
    return max(DECODE_ROWS if few else PROMPT_ROWS, triton.next_power_of_2(geometry.group))


def queries_of(geometry: Geometry, rows: int, exact_tile: int | None) -> int:
    """Q: as many as R rows hold; in exact mode the largest power of two among these that divides `exact_tile`."""
    most = rows // geometry.group
    return math.gcd(exact_tile, 1 << (most.bit_length() - 1)) if exact_tile else most


def keys_of(geometry: Geometry) -> int:
    """C: the keys of a tile, as many as fit if keys and values of 2 tiles have 64 KiB of shared memory."""
    row = 2 * geometry.padded_head * geometry.dtype.itemsize  # bytes of a key and a value
    return max(SMALLEST_SIDE, min(64, (1 << 15) // row))


def constants_of(geometry: Geometry, rows: int, queries: int) -> dict[str, Any]:
    """The kernel's constants."""
    return {
        "SCALE": geometry.scale,
        "KV_HEADS": geometry.kv_heads,
        "GROUP": geometry.group,
        "HEAD": geometry.head_dim,
        "PADDED_HEAD": geometry.padded_head,
        "BLOCK": geometry.block_size,
        "ROWS": rows,
        "QUERIES": queries,
        "KEYS": keys_of(geometry),
        "OPERAND": operand(paged_attention_kernel, geometry.dtype),
        "SUM": geometry.accumulator,
    }


def threads_of(geometry: Geometry, rows: int) -> dict[str, Any]:
    """Threads of a program: twice as many where the accumulator `(R, D)` would fill their registers."""
    num_warps = 8 if rows * geometry.padded_head > 64 * 128 else 4
    return {"num_warps": num_warps, "num_stages": 2, "enable_fp_fusion": FP_FUSION}
