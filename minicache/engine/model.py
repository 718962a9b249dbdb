"""A decoder of the Llama family over a flat, ragged batch.

All sequences of a step lie one after the other in one row of tokens; only attention needs to know where each begins.

Shapes: T tokens of the whole batch, E hidden size, F feed-forward size, V vocabulary, L layers,
        Hq query heads, Hkv key-value heads, D head size.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from minicache.engine.attention import Attention
from minicache.engine.batch import Batch
from minicache.engine.kv_cache import KVCache
from minicache.engine.layers import Linear, RMSNorm, Rotary, rotate
from minicache.engine.model_config import ModelConfig

MLP_ROWS = 1024  # so that 2F numbers a row stay a piece of memory that is used again instead of being mapped anew


@dataclass(slots=True)
class Layer:
    """One decoder layer. Projections that read the same input are one matrix: one product instead of two or three."""

    attention_norm: RMSNorm
    qkv: Linear  # (E) -> ((Hq + 2 Hkv) D): all queries, then keys, then values
    qk_norm: RMSNorm | None  # weight (Hq + Hkv, D)
    output: Linear  # (Hq D) -> (E)
    mlp_norm: RMSNorm
    gate_up: Linear  # (E) -> (2F)
    down: Linear  # (F) -> (E)


class Model:
    """The weights and how to run them. Stateless: what a sequence remembers is in the `KVCache`."""

    def __init__(
        self, config: ModelConfig, embedding: Tensor, layers: list[Layer], norm: RMSNorm, lm_head: Linear
    ) -> None:
        self.config = config
        self.embedding = embedding  # (V, E)
        self.layers = layers
        self.norm = norm
        self.lm_head = lm_head
        self.rotary = Rotary(config, config.max_positions, self.dtype, self.device)

    def like(self, other: "Model") -> "Model":
        """`other`, run in the way that this model is run."""
        return other

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
        must be in the cache already, or be computed in this very batch.
        """
        hidden = self.embedding[tokens]  # (T, E)
        cos, sin = self.rotary.at(batch.positions)
        for index, layer in enumerate(self.layers):
            x = layer.attention_norm(hidden)
            q, k, v = self._project(layer, x, cos, sin)
            # The whole batch is written before any sequence attends: a request may share a block with one that
            # computes it in this same step.
            kv_cache.write(index, k, v, batch.slots)
            attended = attention(q, kv_cache.k[index], kv_cache.v[index], batch)  # (T, Hq, D)
            hidden += layer.output(attended.flatten(1))
            for rows in hidden.split(MLP_ROWS):
                gate, up = layer.gate_up(layer.mlp_norm(rows)).chunk(2, dim=-1)  # (rows, F) each
                rows += layer.down(F.silu(gate).mul_(up))
        return self.norm(hidden)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token for the rows of `hidden (R, E)`: `(R, V)`. Pass only the rows that need them."""
        return self.lm_head(hidden)

    def _project(self, layer: Layer, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries `(T, Hq, D)`, keys and values `(T, Hkv, D)` of `x (T, E)`, rotated to their positions."""
        heads, kv_heads = self.config.num_heads, self.config.num_kv_heads
        qkv = layer.qkv(x).unflatten(-1, (-1, self.config.head_dim))  # (T, Hq + 2 Hkv, D)
        qk, v = qkv.split([heads + kv_heads, kv_heads], dim=1)
        if layer.qk_norm:
            qk = layer.qk_norm(qk)
        q, k = rotate(qk, cos, sin).split([heads, kv_heads], dim=1)
        return q, k, v
