"""Small random models of each family, and how to run one over a paged cache."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from minicache.engine.attention import Batch
from minicache.engine.backends import make_backend
from minicache.engine.kv_cache import KVCache
from minicache.engine.model import Model
from minicache.engine.model_config import ModelConfig
from minicache.engine.models.loader import MemoryWeights, build_model
from tests.engine.random_weights import random_weights

SIZES: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,  # not hidden_size / heads
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1000.0,
    "hidden_act": "silu",
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": True},
    "llama-untied": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": False},
    "llama-bias": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": True},
    "llama3": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "rope_scaling": LLAMA3_ROPE},
    "llama3-parameters": {  # as transformers 5 writes it
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "rope_parameters": LLAMA3_ROPE | {"rope_theta": 500.0},
    },
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "head_dim": 8, "tie_word_embeddings": True},
    "qwen2-untied": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "head_dim": 8},
    "qwen3-tied": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "tie_word_embeddings": True},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "tie_word_embeddings": False},
}


def hf_config(family: str) -> dict[str, Any]:
    return SIZES | FAMILIES[family]


def small_model(family: str = "llama", dtype: torch.dtype = torch.float64) -> Model:
    config = ModelConfig.from_hf(hf_config(family))
    return build_model(config, MemoryWeights(random_weights(config, seed=1, dtype=torch.float64), dtype))


def require_same_logits(found: torch.Tensor, expected: torch.Tensor, model: Model) -> None:
    """Equal but for the rounding of float32, which transformers' norms and rotary embeddings have in float64 too.

    A layer adds some rounding errors of either sign, in proportion to the values: they grow as the square root of the
    number of layers. Measured on three machines, with and without AVX: at most 8 epsilon of the largest logit for 3
    layers, 23 for SmolLM2's 30. Three times that is allowed.
    """
    within = 16 * model.config.num_layers**0.5 * torch.finfo(torch.float32).eps * float(expected.abs().max())
    torch.testing.assert_close(found, expected, rtol=0, atol=within)


def write_model(folder: Path, family: str = "llama", **changes: Any) -> Path:
    """A Hugging Face folder of the same model, without a tokenizer."""
    config = hf_config(family) | changes
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(random_weights(ModelConfig.from_hf(config), seed=1), folder / "model.safetensors")
    return folder


def run_chunks(
    model: Model, tokens: Sequence[int], chunks: Sequence[int], block_size: int = 4, backend: str = "torch"
) -> torch.Tensor:
    """Logits `(len(tokens), V)` of one sequence computed in chunks of these sizes, over a shuffled block table."""
    num_blocks = -(-len(tokens) // block_size)
    table = (torch.randperm(num_blocks, generator=torch.Generator().manual_seed(5)) + 1).tolist()
    attention = make_backend(backend).attention
    kv_cache = KVCache(model.config, num_blocks + 1, block_size, model.dtype, kv_order=attention.kv_order)
    for layer in (*kv_cache.k, *kv_cache.v):
        layer.fill_(torch.nan)  # what was never written must never show
    start, rows = 0, []
    for size in chunks:
        batch = Batch.build([(start, size, table)], block_size)
        hidden = model.forward(torch.tensor(tokens[start : start + size]), kv_cache, batch, attention)
        rows.append(model.logits(hidden))
        start += size
    assert start == len(tokens)
    return torch.cat(rows)
