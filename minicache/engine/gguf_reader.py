"""GGUF files: their tensors under Hugging Face names, their settings as a Hugging Face config, their tokenizer.

llama.cpp stores the rows of a Llama's query and key projections in another order: it rotates neighbours (2i, 2i + 1),
Hugging Face rotates (i, i + D/2). `unpermuted` puts them back. Quantised tensors are dequantised to float32, exactly.

Shapes: Hq query heads, Hkv key-value heads, D head size, E hidden size.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minicache.engine.errors import BrokenModel, UnsupportedModel

ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}

TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
PER_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class GGUFFile:
    """One open GGUF file. Raises `BrokenModel` if it is not one, `UnsupportedModel` for an unknown architecture."""

    def __init__(self, path: Path) -> None:
        import gguf  # 0.3 s, and needed by conversions only

        self.path = path
        self._dequantize = gguf.quants.dequantize
        try:
            self._reader = gguf.GGUFReader(path)
        except Exception as error:  # the reader raises whatever it stumbles over: ValueError, IndexError, …
            raise BrokenModel(f"{path} is truncated or not a GGUF file ({error}); fetch it again") from None
        self.architecture = self.field("general.architecture")
        if self.architecture not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            raise UnsupportedModel(f"{path} holds a {self.architecture!r} model; supported are {known}")

    def field(self, name: str, default: Any = None) -> Any:
        """A metadata field's value. Without a default, a missing field is a `BrokenModel`."""
        field = self._reader.fields.get(name)
        if field is None and default is None:
            raise BrokenModel(f"{self.path} lacks the field {name}")
        return default if field is None else field.contents()

    def size(self, name: str, default: int | None = None) -> int:
        return int(self.field(f"{self.architecture}.{name}", default))

    @property
    def hf_config(self) -> dict[str, Any]:
        """What config.json would hold."""
        heads = self.size("attention.head_count")
        hidden = self.size("embedding_length")
        names = {tensor.name for tensor in self._reader.tensors}
        if "rope_freqs.weight" in names:
            raise UnsupportedModel(f"{self.path} scales its rotary embeddings; use the model's safetensors instead")
        return {
            "architectures": [ARCHITECTURES[self.architecture]],
            "model_type": self.architecture,
            "vocab_size": len(self.field("tokenizer.ggml.tokens")),
            "hidden_size": hidden,
            "intermediate_size": self.size("feed_forward_length"),
            "num_hidden_layers": self.size("block_count"),
            "num_attention_heads": heads,
            "num_key_value_heads": self.size("attention.head_count_kv", heads),
            "head_dim": self.size("attention.key_length", hidden // heads),
            "hidden_act": "silu",
            "max_position_embeddings": self.size("context_length"),
            "rms_norm_eps": _short(self.field(f"{self.architecture}.attention.layer_norm_rms_epsilon")),
            "rope_theta": _short(self.field(f"{self.architecture}.rope.freq_base", 10000.0)),
            "tie_word_embeddings": "output.weight" not in names,
            "attention_bias": self.architecture == "llama" and "blk.0.attn_q.bias" in names,
            "bos_token_id": self.field("tokenizer.ggml.bos_token_id", 0),
            "eos_token_id": self.field("tokenizer.ggml.eos_token_id", 0),
            "torch_dtype": "float32",
        }

    @property
    def num_tensors(self) -> int:
        return len(self._reader.tensors)

    def tensors(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Each tensor's Hugging Face name and values, one at a time."""
        heads = self.size("attention.head_count")
        row_heads = {"attn_q": heads, "attn_k": self.size("attention.head_count_kv", heads)}
        for tensor in self._reader.tensors:
            values = self._dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
            role = tensor.name.split(".")[-2]
            if self.architecture == "llama" and role in row_heads:
                values = unpermuted(values, row_heads[role])
            yield self._hf_name(tensor.name), values

    def _hf_name(self, name: str) -> str:
        match name.split("."):
            case ["blk", layer, role, kind] if role in PER_LAYER:
                return f"model.layers.{layer}.{PER_LAYER[role]}.{kind}"
            case [role, kind] if role in TOP:
                return f"{TOP[role]}.{kind}"
        raise UnsupportedModel(f"{self.path} has a tensor {name}, which no supported model has")


def unpermuted(rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows `(heads * D, …)` from interleaved order (0, D/2, 1, D/2 + 1, …) of each head to natural order."""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, half, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def _short(value: float) -> float:
    """A float32 as the shortest decimal that means it: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value)))
