"""A small GGUF file of each family, as llama.cpp's converter would write it."""

from pathlib import Path

import gguf
import numpy as np
import torch

from minicache.engine.model_config import ModelConfig
from minicache.engine.models.gguf import PER_LAYER, TOP
from minicache.engine.tiny.folder import byte_letters
from tests.engine.random_weights import random_weights

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["Ġ t", "h e", "Ġt he", "1 2"]
TOKENS = [*CONTROL, *byte_letters(), *(merge.replace(" ", "") for merge in MERGES)]
HEADS, KV_HEADS, HEAD_DIM, LAYERS = 4, 2, 8, 2  # row order is changed in a Llama's q and k only
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"


def config(family: str = "llama", tied: bool = True) -> ModelConfig:
    return ModelConfig(
        family=family,
        vocab_size=len(TOKENS),
        hidden_size=HEADS * HEAD_DIM,
        intermediate_size=64,
        num_layers=LAYERS,
        num_heads=HEADS,
        num_kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        max_positions=128,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        tie_embeddings=tied,
        qkv_bias=family == "qwen2",
        qk_norm=family == "qwen3",
    )


def interleaved(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """Row i of each head's first half, then row i of its second: llama.cpp's order of a query or key projection."""
    per_head = rows.reshape(heads, 2, -1, rows.shape[-1])
    return torch.stack([per_head[:, half, i] for i in range(per_head.shape[2]) for half in (0, 1)], 1).reshape(
        rows.shape
    )


def write_gguf(
    path: Path, *, family: str = "llama", tied: bool = True, architecture: str | None = None, words: str = "smollm"
) -> dict[str, torch.Tensor]:
    """Write the file; returns the weights under Hugging Face names, in Hugging Face's order."""
    shape = config(family, tied)
    weights = random_weights(shape, seed=2)
    writer = gguf.GGUFWriter(path, architecture or family)
    writer.add_block_count(shape.num_layers)
    writer.add_context_length(shape.max_positions)
    writer.add_embedding_length(shape.hidden_size)
    writer.add_feed_forward_length(shape.intermediate_size)
    writer.add_head_count(shape.num_heads)
    writer.add_head_count_kv(shape.num_kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(shape.rms_norm_eps)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(words)
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * len(CONTROL) + [1] * (len(TOKENS) - len(CONTROL)))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    names = {hf: ours for ours, hf in (PER_LAYER | TOP).items()}
    for name, values in weights.items():
        parts = name.removeprefix("model.layers.").split(".")
        if parts[0].isdigit():
            role = names[".".join(parts[1:-1])]
            name = f"blk.{parts[0]}.{role}.{parts[-1]}"
        else:
            role = names[name.rpartition(".")[0]]
            name = f"{role}.weight"
        if family == "llama" and role in ("attn_q", "attn_k"):
            values = interleaved(values, HEADS if role == "attn_q" else KV_HEADS)
        if role == "ffn_gate":
            quantized = gguf.quants.quantize(values.numpy(), gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(name, quantized, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(name, np.ascontiguousarray(values.numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights
