"""Attention over block tables: the interface, the data of a step that it needs, and the backend to read first.

    block table of a sequence    [ 7 | 2 | 9 ]          with B = 4: position 5 lies in block 2 at offset 1, slot 9

    positions   0 .............. start ............... context
                |  in the cache  |  rows of this step  |
                                 |<---- num_rows ----->|

Shapes: T tokens (rows) of the step, n rows and c positions (context) of one sequence, Hq query heads, Hkv key-value
        heads, D head size, N blocks, B block size.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class SequenceRows:
    """One sequence's part of a batch: rows `[row, row + num_rows)`, which are its positions `[start, context)`."""

    row: int
    num_rows: int
    start: int
    block_table: Tensor  # (blocks of the context,) int64

    @property
    def context(self) -> int:
        return self.start + self.num_rows

    @property
    def rows(self) -> slice:
        return slice(self.row, self.row + self.num_rows)


@dataclass(frozen=True)
class Batch:
    """The rows of one step, sequence after sequence. Tensors are int64 and on the model's device."""

    block_size: int
    positions: Tensor  # (T,)
    slots: Tensor  # (T,) where each row's KV is written: block * block_size + offset
    sequences: tuple[SequenceRows, ...]

    @classmethod
    def build(
        cls,
        chunks: Iterable[tuple[int, int, Sequence[int]]],
        block_size: int,
        device: torch.device | str = "cpu",
    ) -> "Batch":
        """Lay out `(start, num_rows, block_table)` of each sequence, one after the other.

        A table may be longer than the context needs. Raises `ValueError` if it is shorter.
        """
        sequences, positions, slots = [], [], []
        row = 0
        for start, num_rows, table in chunks:
            num_blocks = -(-(start + num_rows) // block_size)
            if num_rows < 1 or start < 0 or len(table) < num_blocks:
                raise ValueError(f"cannot lay out {num_rows} rows from {start} over {len(table)} blocks")
            blocks = torch.tensor(table[:num_blocks], dtype=torch.int64)
            at = torch.arange(start, start + num_rows)
            positions.append(at)
            slots.append(blocks[at // block_size] * block_size + at % block_size)
            sequences.append(SequenceRows(row, num_rows, start, blocks.to(device)))
            row += num_rows
        return cls(block_size, torch.cat(positions).to(device), torch.cat(slots).to(device), tuple(sequences))


BY_BLOCK = (0, 1, 2, 3)  # a cache (N, B, Hkv, D) lies in memory block by block, as its shape says
BY_HEAD = (2, 0, 1, 3)  # head by head: (Hkv, N, B, D)


class Attention(Protocol):
    """Causal grouped-query attention of ragged queries over a paged KV cache.

    `kv_order` is the order of the dimensions `(N, B, Hkv, D)` in memory that the backend wants: see `KVCache`.
    """

    kv_order: tuple[int, int, int, int]

    def store(self, k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor, /) -> None:
        """Write `k` and `v (T, Hkv, D)` to `slots (T,)` of the caches `(N, B, Hkv, D)`. No slot occurs twice."""
        ...

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, batch: Batch, /) -> Tensor:
        """Attend with `q (T, Hq, D)` over the caches `k` and `v (N, B, Hkv, D)`; returns `(T, Hq, D)`.

        The row at position p of a sequence sees positions 0 … p of that sequence and nothing else; their KV must have
        been stored, the batch's own included. Scores are scaled by D**-0.5. Changes none of its arguments.
        """
        ...


def scatter(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """`Attention.store` with torch's own kernel."""
    k_cache.flatten(0, 1).index_copy_(0, slots, k)
    v_cache.flatten(0, 1).index_copy_(0, slots, v)


class TorchAttention:
    """`Attention` as its formula, softmax(Q K^T / sqrt(D)) V, one sequence at a time, on any device.

    Keeps all scores `(Hq, n, c)` of a sequence in memory: 600 MB for a prompt of 4,096 tokens with 9 heads in float32.
    """

    kv_order = BY_BLOCK
    store = staticmethod(scatter)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, batch: Batch) -> Tensor:
        out = torch.empty_like(q)
        for sequence in batch.sequences:
            # Gather whole blocks in table order: that is the order of positions. Slots after the context may hold
            # anything, NaN included, so they are cut off here.
            keys = k[sequence.block_table].flatten(0, 1)[: sequence.context]  # (c, Hkv, D)
            values = v[sequence.block_table].flatten(0, 1)[: sequence.context]
            queries = q[sequence.rows].unflatten(1, (keys.shape[1], -1))  # (n, Hkv, G, D): G heads share a KV head
            scores = torch.einsum("nhgd,chd->hgnc", queries, keys) / math.sqrt(q.shape[-1])

            positions = torch.arange(sequence.context, device=q.device)
            future = positions > positions[sequence.start :, None]  # (n, c)
            wide = torch.promote_types(scores.dtype, torch.float32)  # softmax in float32 at least
            weights = scores.masked_fill(future, -math.inf).softmax(-1, dtype=wide).to(q.dtype)
            out[sequence.rows] = torch.einsum("hgnc,chd->nhgd", weights, values).flatten(1, 2)  # (n, Hq, D)
        return out
