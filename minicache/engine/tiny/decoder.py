"""The decoder of `tiny` as it is trained: a Llama that autograd can follow.

The engine's own model has no gradients: it works on a paged cache. This one sees whole sequences. Both read the same
weights, and a test compares their logits.

Shapes: B sequences, T tokens of each, E hidden size, Hq query heads, Hkv key-value heads, D head size, F feed-forward
size, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minicache.engine.model_config import ModelConfig


class Attention(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.num_heads, config.num_kv_heads, config.head_dim
        hidden, q_size, kv_size = config.hidden_size, self.heads * self.head_dim, self.kv_heads * self.head_dim
        self.q_proj = nn.Linear(hidden, q_size, bias=False)
        self.k_proj = nn.Linear(hidden, kv_size, bias=False)
        self.v_proj = nn.Linear(hidden, kv_size, bias=False)
        self.o_proj = nn.Linear(q_size, hidden, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """`x` is (B, T, E), `cos` and `sin` are (T, D); returns (B, T, E)."""
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.head_dim).transpose(1, 2)  # (B, Hq, T, D)
        k = self.k_proj(x).view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)  # (B, Hkv, T, D)
        v = self.v_proj(x).view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        out = F.scaled_dot_product_attention(q, self._for_each_query(k), self._for_each_query(v), is_causal=True)
        return self.o_proj(out.transpose(1, 2).flatten(2))

    def _for_each_query(self, x: Tensor) -> Tensor:
        """(B, Hkv, T, D) to (B, Hq, T, D): repeats each key-value head for the query heads that share it."""
        return x[:, :, None].expand(-1, -1, self.heads // self.kv_heads, -1, -1).flatten(1, 2)


class FeedForward(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, config: ModelConfig, dropout: float) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = FeedForward(config)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.dropout(self.self_attn(self.input_layernorm(x), cos, sin))
        return x + self.dropout(self.mlp(self.post_attention_layernorm(x)))


class Decoder(nn.Module):
    """Its parameters carry Hugging Face names without the leading `model.`; the output matrix is the embedding."""

    def __init__(self, config: ModelConfig, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config, dropout) for _ in range(config.num_layers))
        self.norm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        frequencies = config.rope_theta ** (-torch.arange(0, config.head_dim, 2) / config.head_dim)  # (D / 2,)
        angles = (torch.arange(config.max_positions)[:, None] * frequencies).repeat(1, 2)  # (positions, D)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:  # the 2 matrices a layer whose result is added to the residual stream start smaller
                into_residual = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * config.num_layers) ** 0.5 if into_residual else 0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (B, T, V) of the token after each of `tokens` (B, T)."""
        length = tokens.shape[1]
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, self.cos[:length], self.sin[:length])
        return F.linear(self.norm(x), self.embed_tokens.weight)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding: turns the halves of each head of `x` (…, T, D) by an angle proportional to the position."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin
