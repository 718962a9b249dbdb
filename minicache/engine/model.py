"""A decoder of the Llama family over a flat, ragged batch.

All sequences of a step lie one after the other in one row of tokens; only attention needs to know where each begins.

Shapes: T tokens of the whole batch, R rows as laid out (T of them, and in exact mode padding), E hidden size,
        F feed-forward size, V vocabulary, L layers, Hq query heads, Hkv key-value heads, D head size.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from minicache.engine.attention import Attention, Batch
from minicache.engine.kv_cache import KVCache
from minicache.engine.layers import Linear, RMSNorm, Rotary, rotate
from minicache.engine.model_config import ModelConfig


class Rows:
    """How a model lays out the rows that it multiplies. Here: as they come, all in one product (R = T).

    `fast_cpu.SlicedRows` multiplies some at a time, `exact.TiledRows` puts each where its position belongs.
    """

    def of(self, batch: Batch) -> "Rows":
        """The layout of one step's rows."""
        return self

    def pad(self, rows: Tensor) -> Tensor:
        """The step's rows `(T, …)` as laid out, `(R, …)`."""
        return rows

    def unpad(self, rows: Tensor) -> Tensor:
        """The step's rows `(T, …)` of `(R, …)`."""
        return rows

    def each(self, op: Callable[..., Tensor], *rows: Tensor) -> Tensor:
        """`op`, which treats each row alike, applied to some `(R, …)`."""
        return op(*rows)

    def single(self, op: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        """`op` applied to rows `(r, …)` that were picked from the step, each on its own."""
        return op(rows)


@dataclass(slots=True)
class Layer:
    """One decoder layer. Projections that read the same input are one matrix: one product instead of two or three."""

    config: ModelConfig
    attention_norm: RMSNorm
    qkv: Linear  # (E) -> ((Hq + 2 Hkv) D): all queries, then keys, then values
    qk_norm: RMSNorm | None  # weight (Hq + Hkv, D)
    output: Linear  # (Hq D) -> (E)
    mlp_norm: RMSNorm
    gate_up: Linear  # (E) -> (2F)
    down: Linear  # (F) -> (E)

    def before_attention(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Queries, keys and values of `hidden (R, E)`, rotated to their positions: `(R, Hq + 2 Hkv, D)`."""
        heads, kv_heads = self.config.num_heads, self.config.num_kv_heads
        qkv = self.qkv(self.attention_norm(hidden)).unflatten(-1, (heads + 2 * kv_heads, -1))
        qk, v = qkv.split([heads + kv_heads, kv_heads], dim=1)
        if self.qk_norm:
            qk = self.qk_norm(qk)
        return torch.cat((rotate(qk, cos, sin), v), dim=1)

    def after_attention(self, hidden: Tensor, attended: Tensor) -> Tensor:
        """The layer's result `(R, E)` from its input `hidden (R, E)` and `attended (R, Hq D)`."""
        hidden = hidden + self.output(attended)
        gate, up = self.gate_up(self.mlp_norm(hidden)).chunk(2, dim=-1)  # (R, F) each
        return hidden + self.down(F.silu(gate) * up)


class Model:
    """The weights and how to run them. Stateless: the `KVCache` holds all state of a sequence."""

    def __init__(
        self,
        config: ModelConfig,
        embedding: Tensor,
        layers: list[Layer],
        norm: RMSNorm,
        lm_head: Linear,
        rows: Rows | None = None,
    ) -> None:
        self.config = config
        self.embedding = embedding  # (V, E)
        self.layers = layers
        self.norm = norm
        self.lm_head = lm_head
        self.rows = rows or Rows()
        self.rotary = Rotary(config, config.max_positions, self.dtype, self.device)

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    @torch.inference_mode()
    def forward(self, tokens: Tensor, kv_cache: KVCache, batch: Batch, attention: Attention) -> Tensor:
        """Compute `tokens (T,)` at `batch.positions (T,)` and write their keys and values to `kv_cache`.

        Returns the last layer's normalised hidden states `(T, E)`. The KV of every earlier position of each sequence
        must be in the cache already, or be computed in this same batch.
        """
        heads, kv_heads = self.config.num_heads, self.config.num_kv_heads
        rows = self.rows.of(batch)
        hidden = rows.pad(self.embedding[tokens])  # (R, E)
        cos, sin = (rows.pad(table) for table in self.rotary.at(batch.positions))  # (R, 1, D)
        for layer, k_cache, v_cache in zip(self.layers, kv_cache.k, kv_cache.v, strict=True):
            qkv = rows.unpad(rows.each(layer.before_attention, hidden, cos, sin))  # (T, Hq + 2 Hkv, D)
            q, k, v = qkv.split([heads, kv_heads, kv_heads], dim=1)
            # The whole batch is stored before any sequence attends: a request may share a block with one that computes
            # it in this same step.
            attention.store(k, v, k_cache, v_cache, batch.slots)
            attended = attention(q, k_cache, v_cache, batch)  # (T, Hq, D)
            hidden = rows.each(layer.after_attention, hidden, rows.pad(attended.flatten(1)))
        return rows.unpad(rows.each(self.norm, hidden))

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token for rows `hidden (r, E)`: `(r, V)`. Pass only the rows that need them."""
        return self.rows.single(self.lm_head, hidden)
