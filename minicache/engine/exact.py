"""Exact mode: a cache hit changes nothing, bit for bit.

A hit changes how many rows a step computes, and with the shape of a product its rounding: that is why production
engines flip greedy tokens on a hit (vLLM #40896, SGLang #34683). Here the shape of every product, reduction and
softmax depends on absolute position alone:

    positions of one sequence   0 ........ 15 | 16 ....... 31 | 32 ....... 47
                                    tile 0    |    tile 1     |    tile 2
    computed in this step                          22 23 24 ..  .. 35
    rows that are multiplied                 [0 0 0 0 0 0 x x x x]  [x x x x 0 0 ...]

A tile is 16 consecutive positions of one sequence; its rows that are not computed now are zero. A row of a product
depends on that row and on the product's shape, so what stands in the other rows does not matter. Keys and values are
always read back from the cache, by position, whatever its block size. The law holds within one process, thread count,
device and tile size.

Shapes: n tiles, P positions of a tile, T = rows of the step, R = n * P rows with padding, E hidden size, V vocabulary,
        Hq query heads, Hkv key-value heads, G = Hq / Hkv, D head size, c = (t + 1) * P keys of tile t.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from minicache.engine.attention import Attention
from minicache.engine.batch import Batch, SequenceRows
from minicache.engine.kv_cache import KVCache
from minicache.engine.layers import Linear, rotate
from minicache.engine.model import Layer, Model

Op = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Tile:
    """Positions `[start, start + P)` of a sequence; `slots` are where those up to `context` lie in the cache."""

    start: int
    slots: Tensor  # (min(context, start + P),) of all positions from 0 on: what the tile's rows may attend to


@dataclass(frozen=True)
class Tiles:
    """A step cut into tiles. `place` says for each of the step's T rows which of the R padded rows it is."""

    size: int
    tiles: list[Tile]
    place: Tensor  # (T,)
    positions: Tensor  # (R,)

    @classmethod
    def of(cls, batch: Batch, size: int) -> "Tiles":
        tiles: list[Tile] = []
        place: list[Tensor] = []
        for sequence in batch.sequences:
            first = sequence.start // size
            rows = torch.arange(sequence.start, sequence.context) + (len(tiles) - first) * size
            place.append(rows)
            slots = all_slots(sequence, batch.block_size)
            for start in range(first * size, sequence.context, size):
                tiles.append(Tile(start, slots[: start + size]))
        device = batch.positions.device
        positions = torch.cat([torch.arange(tile.start, tile.start + size) for tile in tiles])
        return cls(size, tiles, torch.cat(place).to(device), positions.to(device))

    def pad(self, rows: Tensor) -> Tensor:
        """The step's rows `(T, ...)` in their places among `(R, ...)`; the others are zero."""
        padded = rows.new_zeros((len(self.tiles) * self.size, *rows.shape[1:]))
        padded[self.place] = rows
        return padded


def all_slots(sequence: SequenceRows, block_size: int) -> Tensor:
    """The slot of each position `[0, context)` of a sequence."""
    positions = torch.arange(sequence.context, device=sequence.block_table.device)
    return sequence.block_table[positions // block_size] * block_size + positions % block_size


class ExactModel(Model):
    """A `Model` that runs in exact mode. `stacked`: tiles may be one product (None: if `can_stack` finds so)."""

    def __init__(self, model: Model, tile: int = 16, stacked: bool | None = None) -> None:
        super().__init__(model.config, model.embedding, model.layers, model.norm, model.lm_head)
        self.tile = tile
        self.stacked = can_stack(model, tile) if stacked is None else stacked

    def like(self, other: Model) -> "ExactModel":
        return ExactModel(other, self.tile, self.stacked)

    @torch.inference_mode()
    def forward(self, tokens: Tensor, kv_cache: KVCache, batch: Batch, attention: Attention | None = None) -> Tensor:
        """As `Model.forward`; `attention` is not used, for exact mode has its own. Returns `(T, E)`."""
        tiles = Tiles.of(batch, self.tile)
        hidden = tiles.pad(self.embedding[tokens])  # (R, E)
        cos, sin = self.rotary.at(tiles.positions.clamp(max=self.config.max_positions - 1))
        for index, layer in enumerate(self.layers):
            q, k, v = self._exact_project(layer, hidden, cos, sin)
            kv_cache.write(index, k[tiles.place], v[tiles.place], batch.slots)
            attended = self._attend(q, kv_cache.k[index], kv_cache.v[index], tiles)  # (R, Hq D)
            hidden = hidden + self._linear(layer.output, attended)
            gate, up = self._linear(layer.gate_up, self._each(layer.mlp_norm, hidden)).chunk(2, dim=-1)
            hidden = hidden + self._linear(layer.down, F.silu(gate) * up)
        return self._each(self.norm, hidden)[tiles.place]

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token for rows `hidden (r, E)`: `(r, V)`. Each is the first row of a tile of its own."""
        padded = hidden.new_zeros((len(hidden), self.tile, hidden.shape[1]))
        padded[:, 0] = hidden
        return self._linear(self.lm_head, padded.flatten(0, 1))[:: self.tile]

    def _exact_project(self, layer: Layer, hidden: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries `(R, Hq, D)`, keys and values `(R, Hkv, D)`, rotated to their positions."""
        heads, kv_heads = self.config.num_heads, self.config.num_kv_heads
        qkv = self._linear(layer.qkv, self._each(layer.attention_norm, hidden))
        qk, v = qkv.unflatten(-1, (-1, self.config.head_dim)).split([heads + kv_heads, kv_heads], dim=1)
        if layer.qk_norm:
            qk = self._each(layer.qk_norm, qk)
        q, k = rotate(qk, cos, sin).split([heads, kv_heads], dim=1)
        return q, k, v

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, tiles: Tiles) -> Tensor:
        """Attention of each tile over the cache `k` and `v (N, B, Hkv, D)`; returns `(R, Hq D)`."""
        k, v = k.flatten(0, 1), v.flatten(0, 1)
        queries = q.split(self.tile)
        return torch.cat([attend_tile(*pair, k, v) for pair in zip(queries, tiles.tiles, strict=True)])

    def _linear(self, linear: Linear, x: Tensor) -> Tensor:
        return self._each(lambda rows: F.linear(rows, linear.weight, linear.bias), x)

    def _each(self, op: Op, x: Tensor) -> Tensor:
        """`op` on every tile of `x (R, ...)`: one after the other, or all at once where that gives the same bits."""
        if self.stacked:
            return op(x.contiguous())
        return torch.cat([op(rows.clone(memory_format=torch.contiguous_format)) for rows in x.split(self.tile)])


def attend_tile(q: Tensor, tile: Tile, k: Tensor, v: Tensor) -> Tensor:
    """Attention of one tile's `q (P, Hq, D)` over slots of `k` and `v (slots, Hkv, D)`; returns `(P, Hq D)`.

    Keys are `c = start + P` whatever is written yet: the rest is zero, not left out (0 x NaN is NaN), and masked.
    """
    size, heads, head_dim = q.shape
    kv_heads = k.shape[1]
    end = tile.start + size
    keys, values = (cache.new_zeros((end, kv_heads, head_dim)) for cache in (k, v))
    keys[: len(tile.slots)], values[: len(tile.slots)] = k[tile.slots], v[tile.slots]
    # The G queries that share a key-value head are rows of one product: (Hkv, P G, D) x (Hkv, D, c).
    grouped = q.unflatten(1, (kv_heads, -1)).transpose(0, 1).flatten(1, 2).contiguous()
    scores = (grouped @ keys.permute(1, 2, 0).contiguous()) / math.sqrt(head_dim)
    wide = scores.dtype if scores.dtype == torch.float64 else torch.float32
    rows = torch.arange(tile.start, end, device=q.device).repeat_interleave(heads // kv_heads)
    future = torch.arange(end, device=q.device) > rows[:, None]  # (P G, c)
    weights = scores.to(wide).masked_fill(future, -math.inf).softmax(-1).to(q.dtype)
    attended = weights @ values.transpose(0, 1).contiguous()  # (Hkv, P G, D)
    return attended.unflatten(1, (size, -1)).transpose(0, 1).flatten(1)


def can_stack(model: Model, tile: int = 16) -> bool:
    """Whether products of several tiles at once have, on this machine, the same bits as tile by tile.

    Tries every shape of the model's matrices with 2 to 64 tiles of random rows: a check, not a proof.
    """
    linears = [model.lm_head]
    for layer in model.layers[:1]:
        linears += [layer.qkv, layer.output, layer.gate_up, layer.down]
    generator = torch.Generator(model.device).manual_seed(0)
    for linear in linears:
        shape = (64 * tile, linear.weight.shape[1])
        rows = torch.randn(shape, generator=generator, device=model.device, dtype=torch.float32).to(model.dtype)
        apart = torch.cat([F.linear(x.clone(), linear.weight, linear.bias) for x in rows.split(tile)])
        for tiles in (2, 3, 5, 8, 17, 33, 64):
            stacked = F.linear(rows[: tiles * tile].clone(), linear.weight, linear.bias)
            if not torch.equal(stacked, apart[: tiles * tile]):
                return False
    return True
