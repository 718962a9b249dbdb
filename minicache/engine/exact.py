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
always read back from the cache, by position, whatever its block size: see `exact_attention.py` and, on a GPU,
`kernels/paged_attention.py`. The law holds within one process, thread count, device, attention backend and tile size.

Shapes: n tiles, P positions of a tile, T rows of the step, R = n * P rows with padding, E hidden size, V vocabulary,
        Hq query heads, Hkv key-value heads, D head size.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from minicache.engine.attention import Attention
from minicache.engine.batch import Batch
from minicache.engine.exact_attention import TileAttention
from minicache.engine.kv_cache import KVCache
from minicache.engine.layers import Linear, rotate
from minicache.engine.model import Layer, Model

STACKS = (64, 32, 16, 8, 4, 2, 1)  # how many tiles one product may have: few sizes, so that each can be tried


def exact_attention(backend: str, tile: int) -> Attention:
    """The attention of exact mode, on the backend "torch" or "triton"."""
    if backend != "triton":
        return TileAttention(tile)
    from minicache.engine.triton_attention import TritonAttention

    return TritonAttention(exact_tile=tile)


@dataclass(frozen=True)
class Tiles:
    """A step cut into tiles of `size` positions. `place` says which of the R padded rows each of its T rows is."""

    size: int
    place: Tensor  # (T,)
    positions: Tensor  # (R,)

    @classmethod
    def of(cls, batch: Batch, size: int) -> "Tiles":
        place: list[Tensor] = []
        positions: list[Tensor] = []
        num_rows = 0
        for sequence in batch.sequences:
            first = sequence.start // size * size
            padded = torch.arange(first, -(-sequence.context // size) * size)
            place.append(torch.arange(sequence.start, sequence.context) - first + num_rows)
            positions.append(padded)
            num_rows += len(padded)
        device = batch.positions.device
        return cls(size, torch.cat(place).to(device), torch.cat(positions).to(device))

    def pad(self, rows: Tensor) -> Tensor:
        """The step's rows `(T, ...)` in their places among `(R, ...)`; the others are zero."""
        padded = rows.new_zeros((len(self.positions), *rows.shape[1:]))
        padded[self.place] = rows
        return padded


class ExactModel(Model):
    """A `Model` that runs in exact mode, with an attention of `exact_attention` (None: that of torch).

    `stacked`: several tiles may be one product (None: if `can_stack` finds so).
    """

    def __init__(
        self, model: Model, attention: Attention | None = None, tile: int = 16, stacked: bool | None = None
    ) -> None:
        super().__init__(model.config, model.embedding, model.layers, model.norm, model.lm_head)
        self.attention = attention or TileAttention(tile)
        self.tile = tile
        self.stacked = can_stack(model, tile) if stacked is None else stacked

    def like(self, other: Model) -> "ExactModel":
        return ExactModel(other, self.attention, self.tile, self.stacked)

    @torch.inference_mode()
    def forward(self, tokens: Tensor, kv_cache: KVCache, batch: Batch, attention: Attention | None = None) -> Tensor:
        """As `Model.forward`, by its own attention whatever `attention` is given. Returns `(T, E)`."""
        tiles = Tiles.of(batch, self.tile)
        hidden = tiles.pad(self.embedding[tokens])  # (R, E)
        cos, sin = self.rotary.at(tiles.positions.clamp(max=self.config.max_positions - 1))
        heads, kv_heads = self.config.num_heads, self.config.num_kv_heads
        for index, layer in enumerate(self.layers):
            qkv = self._each(partial(project, layer, heads, kv_heads), hidden, cos, sin)[tiles.place]
            q, k, v = qkv.split([heads, kv_heads, kv_heads], dim=1)  # (T, H, D) each
            kv_cache.write(index, k, v, batch.slots)
            attended = self.attention(q, kv_cache.k[index], kv_cache.v[index], batch)  # (T, Hq, D)
            hidden = self._each(partial(go_on, layer), hidden, tiles.pad(attended.flatten(1)))
        return self._each(self.norm, hidden)[tiles.place]

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token for rows `hidden (r, E)`: `(r, V)`. Each is the first row of a tile of its own."""
        if not len(hidden):  # a step of chunks alone
            return hidden.new_empty((0, len(self.lm_head.weight)))
        padded = hidden.new_zeros((len(hidden), self.tile, hidden.shape[1]))
        padded[:, 0] = hidden
        return self._each(lambda rows: linear(self.lm_head, rows)[:: self.tile], padded.flatten(0, 1))

    def _each(self, op: Callable[..., Tensor], *rows: Tensor) -> Tensor:
        """`op` on every tile of some `(R, ...)`: one by one, or many at once where that gives the same bits."""
        sizes = STACKS if self.stacked else (1,)
        found, start = [], 0
        for size in cut(len(rows[0]) // self.tile, sizes):
            end = start + size * self.tile
            # Fresh copies: how rows are aligned in memory may change their bits, too.
            found.append(op(*(part[start:end].clone(memory_format=torch.contiguous_format) for part in rows)))
            start = end
        return torch.cat(found)


def cut(number: int, sizes: tuple[int, ...]) -> Iterator[int]:
    """`number` as a sum of `sizes`, which fall to 1: as few as can be."""
    for size in sizes:
        for _ in range(number // size):
            yield size
        number %= size


def project(layer: Layer, heads: int, kv_heads: int, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Queries, keys and values of `hidden (rows, E)`, rotated to their positions: `(rows, Hq + 2 Hkv, D)`."""
    qkv = linear(layer.qkv, layer.attention_norm(hidden)).unflatten(-1, (heads + 2 * kv_heads, -1))
    qk, v = qkv.split([heads + kv_heads, kv_heads], dim=1)
    if layer.qk_norm:
        qk = layer.qk_norm(qk)
    return torch.cat((rotate(qk, cos, sin), v), dim=1)


def go_on(layer: Layer, hidden: Tensor, attended: Tensor) -> Tensor:
    """What a layer makes of `hidden (rows, E)` and its `attended (rows, Hq D)`: `(rows, E)`."""
    hidden = hidden + linear(layer.output, attended)
    gate, up = linear(layer.gate_up, layer.mlp_norm(hidden)).chunk(2, dim=-1)
    return hidden + linear(layer.down, F.silu(gate) * up)


def linear(weights: Linear, rows: Tensor) -> Tensor:
    """Not `Linear` itself, which has other ways for few rows than for many."""
    return F.linear(rows, weights.weight, weights.bias)


def can_stack(model: Model, tile: int = 16) -> bool:
    """Whether computing several tiles at once gives, on this machine, the same bits as tile by tile.

    Tries all of a layer and the scores of tokens with random rows, in each number of tiles that exact mode would take
    at once. Kernels choose their way by shape, so that is nearly a proof.
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
        (partial(project, layer, config.num_heads, config.num_kv_heads), (hidden, cos, sin)),
        (partial(go_on, layer), (hidden, attended)),
        (model.norm, (hidden,)),
        (lambda rows: linear(model.lm_head, rows)[::tile], (hidden,)),
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
