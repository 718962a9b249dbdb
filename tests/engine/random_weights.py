"""Random weights: tests need models of every family and shape, but no sensible answers."""

import torch
from torch import Tensor

from minicache.engine.model_config import ModelConfig


def random_weights(config: ModelConfig, seed: int, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Weights of a random model under Hugging Face names; each projection keeps the magnitude of its input."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, scale: float) -> Tensor:
        return (torch.randn(shape, generator=generator, dtype=torch.float64) * scale).to(dtype)

    def linear(name: str, out: int, inp: int, bias: bool = False) -> None:
        tensors[f"{name}.weight"] = normal(out, inp, scale=inp**-0.5)
        if bias:
            tensors[f"{name}.bias"] = normal(out, scale=0.5)

    def norm(name: str, size: int) -> None:
        tensors[f"{name}.weight"] = 1 + normal(size, scale=0.1)

    tensors: dict[str, Tensor] = {"model.embed_tokens.weight": normal(config.vocab_size, config.hidden_size, scale=0.3)}
    hidden, inner = config.hidden_size, config.intermediate_size
    q_size, kv_size = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    for layer in range(config.num_layers):
        prefix = f"model.layers.{layer}"
        norm(f"{prefix}.input_layernorm", hidden)
        for name, size in (("q_proj", q_size), ("k_proj", kv_size), ("v_proj", kv_size)):
            linear(f"{prefix}.self_attn.{name}", size, hidden, config.qkv_bias)
        if config.qk_norm:
            norm(f"{prefix}.self_attn.q_norm", config.head_dim)
            norm(f"{prefix}.self_attn.k_norm", config.head_dim)
        linear(f"{prefix}.self_attn.o_proj", hidden, q_size, config.output_bias)
        norm(f"{prefix}.post_attention_layernorm", hidden)
        linear(f"{prefix}.mlp.gate_proj", inner, hidden)
        linear(f"{prefix}.mlp.up_proj", inner, hidden)
        linear(f"{prefix}.mlp.down_proj", hidden, inner)
    norm("model.norm", hidden)
    if not config.tie_embeddings:
        linear("lm_head", config.vocab_size, hidden)
    return tensors
