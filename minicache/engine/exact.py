"""Exact mode: a cache hit changes nothing, bit for bit.

A hit changes how many rows a step computes, and with the shape of a product its rounding: that is why production
engines flip greedy tokens on a hit (vLLM #40896, SGLang #34683). Here the shape of every product, reduction and
softmax depends on absolute position alone:

    positions of one sequence   0 ........ 15 | 16 ....... 31 | 32 ....... 47
                                    tile 0    |    tile 1     |    tile 2
    computed in this step                          22 23 24 ..  .. 35
    rows that are multiplied                 [0 0 0 0 0 0 x x x x]  [x x x x 0 0 ...]

A tile is 16 consecutive positions of one sequence; its rows that are not computed now are zero. A row of a product
depends on that row and on the product's shape, so the other rows may hold anything. `TiledRows` lays the rows of the
model out like this; attention reads keys and values back from the cache, by position, whatever its block size
(`TileAttention`, or on a GPU `kernels/paged_attention.py`). The law holds within one process, thread count, device,
attention backend and tile size.

Shapes: n tiles, P positions of a tile, T rows of the step, R = n * P rows with padding, E hidden size, V vocabulary,
        Hq query heads, Hkv key-value heads, G = Hq / Hkv, D head size, N blocks, B block size,
        c = (t + 1) * P keys of tile t.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from minicache.engine.attention import BY_BLOCK, Batch, SequenceRows, scatter
from minicache.engine.model import Model, Rows

STACKS = (64, 32, 16, 8, 4, 2, 1)  # how many tiles one product may have: few sizes, so that each can be tried


@dataclass(frozen=True)
class TiledRows(Rows):
    """Rows in tiles of `tile` positions, multiplied tile by tile; with `stacked`, many tiles in one product.

    Stack only where `can_stack` finds that this gives the same bits.
    """

    tile: int
    stacked: bool
    place: Tensor | None = None  # (T,) which of the R rows each row of the step is
    num_rows: int = 0  # R

    def of(self, batch: Batch) -> "TiledRows":
        places, num_rows = [], 0
        for sequence in batch.sequences:
            first = sequence.start // self.tile * self.tile
            places.append(torch.arange(sequence.start, sequence.context) - first + num_rows)
            num_rows += -(-sequence.context // self.tile) * self.tile - first
        return replace(self, place=torch.cat(places).to(batch.positions.device), num_rows=num_rows)

    def pad(self, rows: Tensor) -> Tensor:
        padded = rows.new_zeros((self.num_rows, *rows.shape[1:]))
        padded[self.place] = rows
        return padded

    def unpad(self, rows: Tensor) -> Tensor:
        return rows[self.place]

    def each(self, op: Callable[..., Tensor], *rows: Tensor) -> Tensor:
        sizes = STACKS if self.stacked else (1,)
        found, start = [], 0
        for size in cut(len(rows[0]) // self.tile, sizes):
            end = start + size * self.tile
            # Fresh copies: the alignment of rows in memory can change their bits, too.
            found.append(op(*(part[start:end].clone(memory_format=torch.contiguous_format) for part in rows)))
            start = end
        return torch.cat(found)

    def single(self, op: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        """Each row is the first of a tile of its own."""
        if not len(rows):  # a step of chunks alone
            return op(rows)
        padded = rows.new_zeros((len(rows), self.tile, *rows.shape[1:]))
        padded[:, 0] = rows
        return self.each(lambda tiles: op(tiles)[:: self.tile], padded.flatten(0, 1))


def cut(number: int, sizes: tuple[int, ...]) -> Iterator[int]:
    """`number` as a sum of as few `sizes` as possible; `sizes` fall to 1."""
    for size in sizes:
        for _ in range(number // size):
            yield size
        number %= size


def can_stack(model: Model, tile: int = 16) -> bool:
    """Whether computing several tiles at once gives the same bits on this machine as tile by tile.

    Tries a whole layer and the scores of tokens with random rows, in each number of tiles that exact mode stacks.
    Libraries choose their kernel by shape, so this is nearly a proof.
    """
    config = model.config
    generator = torch.Generator(model.device).manual_seed(0)

    def noise(width: int) -> Tensor:
        shape = (STACKS[0] * tile, width)
        return torch.randn(shape, generator=generator, device=model.device, dtype=torch.float32).to(model.dtype)

    hidden, attended = noise(config.hidden_size), noise(config.num_heads * config.head_dim)
    cos, sin = model.rotary.at(torch.arange(len(hidden), device=model.device) % config.max_positions)
    layer = model.layers[0]
    tried: list[tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = [
        (layer.before_attention, (hidden, cos, sin)),
        (layer.after_attention, (hidden, attended)),
        (model.norm, (hidden,)),
        (lambda rows: model.lm_head(rows)[::tile], (hidden,)),
    ]
    with torch.inference_mode():
        for op, rows in tried:
            apart = [
                op(*(part.clone() for part in tiles)) for tiles in zip(*(r.split(tile) for r in rows), strict=True)
            ]
            for size in STACKS[:-1]:
                stacked = op(*(part[: size * tile].clone() for part in rows))
                if not torch.equal(stacked, torch.cat(apart[:size])):
                    return False
    return True


@dataclass(frozen=True)
class Tile:
    """Positions `[start, start + P)` of a sequence; `rows` are those that the step computes."""

    start: int
    rows: slice  # of the step
    first: int  # the row of the tile that is the first of these
    slots: Tensor  # (min(context, start + P),) of all positions from 0 on: those that the tile's rows may attend to


class TileAttention:
    """`Attention` in plain torch, tile by tile: each row has the same bits whatever else is computed in its step.

    Does not use `scaled_dot_product_attention`, which chooses its kernel, and with it the order of its sums, by the
    number of queries and keys.
    """

    kv_order = BY_BLOCK
    store = staticmethod(scatter)

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

    There are always `c = start + P` keys. Those not written yet are zero and masked, not left out (0 x NaN is NaN).
    """
    size, heads, head_dim = q.shape
    kv_heads = k.shape[1]
    num_keys = tile.start + size
    keys, values = (cache.new_zeros((num_keys, kv_heads, head_dim)) for cache in (k, v))
    keys[: len(tile.slots)], values[: len(tile.slots)] = k[tile.slots], v[tile.slots]
    # The G queries that share a key-value head are rows of one product: (Hkv, P G, D) x (Hkv, D, c).
    grouped = q.unflatten(1, (kv_heads, -1)).transpose(0, 1).flatten(1, 2).contiguous()
    scores = (grouped @ keys.permute(1, 2, 0).contiguous()) / math.sqrt(head_dim)
    wide = torch.promote_types(scores.dtype, torch.float32)
    rows = torch.arange(tile.start, tile.start + size, device=q.device).repeat_interleave(heads // kv_heads)
    future = torch.arange(num_keys, device=q.device) > rows[:, None]  # (P G, c)
    weights = scores.to(wide).masked_fill(future, -math.inf).softmax(-1).to(q.dtype)
    attended = weights @ values.transpose(0, 1).contiguous()  # (Hkv, P G, D)
    return attended.unflatten(1, (size, -1)).transpose(0, 1).flatten(1, 2)
