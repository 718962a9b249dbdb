"""Attention of exact mode in plain torch: the shape of every product and softmax depends on absolute position alone.

Not `scaled_dot_product_attention`: it chooses its kernel, and with it the order of its sums, by how many queries and
keys there are.

Shapes: P positions of a tile, T rows of the step, Hq query heads, Hkv key-value heads, G = Hq / Hkv,
        D head size, N blocks, B block size, c = (t + 1) * P keys of tile t.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from minicache.engine.batch import Batch, SequenceRows


@dataclass(frozen=True)
class Tile:
    """Positions `[start, start + P)` of a sequence, some of which are `rows` of the step."""

    start: int
    rows: slice  # of the step
    first: int  # which row of the tile is the first of these
    slots: Tensor  # (min(context, start + P),) of all positions from 0 on: what the tile's rows may attend to


class TileAttention:
    """See `minicache.engine.attention.Attention`. A row has the same bits whatever else is computed in its step."""

    def __init__(self, tile: int = 16) -> None:
        self.tile = tile
        self._batch: Batch | None = None
        self._tiles: list[Tile] = []

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, batch: Batch) -> Tensor:
        if batch is not self._batch:  # the tiles of a step are the same in every layer
            self._tiles = [tile for each in batch.sequences for tile in tiles_of(each, self.tile, batch.block_size)]
            self._batch = batch
        k, v = k.flatten(0, 1), v.flatten(0, 1)  # (N B, Hkv, D): a row for each slot
        out = torch.empty_like(q)
        for tile in self._tiles:
            new = q[tile.rows]
            padded = q.new_zeros((self.tile, *q.shape[1:]))  # (P, Hq, D)
            padded[tile.first : tile.first + len(new)] = new
            out[tile.rows] = attend_tile(padded, tile, k, v)[tile.first : tile.first + len(new)]
        return out


def tiles_of(sequence: SequenceRows, size: int, block_size: int) -> Iterator[Tile]:
    """The tiles in which a sequence has rows."""
    positions = torch.arange(sequence.context, device=sequence.block_table.device)
    slots = sequence.block_table[positions // block_size] * block_size + positions % block_size
    for start in range(sequence.start // size * size, sequence.context, size):
        first, end = max(start, sequence.start), min(start + size, sequence.context)
        rows = slice(sequence.row + first - sequence.start, sequence.row + end - sequence.start)
        yield Tile(start, rows, first - start, slots[: start + size])


def attend_tile(q: Tensor, tile: Tile, k: Tensor, v: Tensor) -> Tensor:
    """Attention of one tile's `q (P, Hq, D)` over slots of `k` and `v (slots, Hkv, D)`; returns `(P, Hq, D)`.

    Keys are `c = start + P` whatever is written yet: the rest is zero, not left out (0 x NaN is NaN), and masked.
    """
    size, heads, head_dim = q.shape
    kv_heads = k.shape[1]
    num_keys = tile.start + size
    keys, values = (cache.new_zeros((num_keys, kv_heads, head_dim)) for cache in (k, v))
    keys[: len(tile.slots)], values[: len(tile.slots)] = k[tile.slots], v[tile.slots]
    # The G queries that share a key-value head are rows of one product: (Hkv, P G, D) x (Hkv, D, c).
    grouped = q.unflatten(1, (kv_heads, -1)).transpose(0, 1).flatten(1, 2).contiguous()
    scores = (grouped @ keys.permute(1, 2, 0).contiguous()) / math.sqrt(head_dim)
    wide = scores.dtype if scores.dtype == torch.float64 else torch.float32
    rows = torch.arange(tile.start, tile.start + size, device=q.device).repeat_interleave(heads // kv_heads)
    future = torch.arange(num_keys, device=q.device) > rows[:, None]  # (P G, c)
    weights = scores.to(wide).masked_fill(future, -math.inf).softmax(-1).to(q.dtype)
    attended = weights @ values.transpose(0, 1).contiguous()  # (Hkv, P G, D)
    return attended.unflatten(1, (size, -1)).transpose(0, 1).flatten(1, 2)
