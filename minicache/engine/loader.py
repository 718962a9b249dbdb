"""From a folder of weights to a `Model`.

Shapes: E hidden size, F feed-forward size, V vocabulary, Hq query heads, Hkv key-value heads, D head size.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import torch
from torch import Tensor

from minicache.core.errors import InvalidArgument
from minicache.engine.errors import BrokenModel, UnsupportedModel
from minicache.engine.layers import Linear, RMSNorm
from minicache.engine.model import Layer, Model
from minicache.engine.model_config import ModelConfig
from minicache.engine.model_store import resolve
from minicache.engine.weights import FolderWeights, MemoryWeights, Weights, read_json


def load_model(folder: Path, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> Model:
    """Load a Hugging Face folder (config.json and safetensors, sharded or not).

    Raises `UnknownModel`, `UnsupportedModel` or `BrokenModel`, each naming the file and the field or tensor.
    """
    config = load_config(folder)
    return build_model(config, FolderWeights(folder, dtype, device))


def load_config(folder: Path) -> ModelConfig:
    """The shape of the model in `folder`; raises as `load_model` does. Reads no weights."""
    found = read_json(folder / "config.json")
    try:
        return ModelConfig.from_hf(found)
    except (BrokenModel, UnsupportedModel) as error:  # it names config.json, but knows no folder
        raise type(error)(f"{folder}/{error}") from None


def load_eos_tokens(folder: Path) -> frozenset[int]:
    """Token ids that end an answer: generation_config.json's, else config.json's, else none."""
    for name in ("generation_config.json", "config.json"):
        if (folder / name).is_file():
            ids = read_json(folder / name).get("eos_token_id")
            ids = ids if isinstance(ids, list) else [] if ids is None else [ids]
            if not all(isinstance(token, int) and token >= 0 for token in ids):
                raise BrokenModel(f"{folder / name}: eos_token_id must be token ids, not {ids!r}")
            if ids:
                return frozenset(ids)
    return frozenset()


def build_model(config: ModelConfig, weights: Weights) -> Model:
    """Assemble the decoder, checking each tensor's shape against the config."""
    embedding = weights.take("model.embed_tokens.weight", config.vocab_size, config.hidden_size)
    layers = [_layer(config, weights, f"model.layers.{i}.") for i in range(config.num_layers)]
    norm = RMSNorm(weights.take("model.norm.weight", config.hidden_size), config.rms_norm_eps)
    return Model(config, embedding, layers, norm, Linear(_head(config, weights, embedding)))


def _head(config: ModelConfig, weights: Weights, embedding: Tensor) -> Tensor:
    """The output matrix. A tied folder may hold it too, as a copy of the embedding; if it is another, it counts."""
    if config.tie_embeddings and "lm_head.weight" not in weights:
        return embedding
    head = weights.take("lm_head.weight", config.vocab_size, config.hidden_size)
    return embedding if config.tie_embeddings and torch.equal(head, embedding) else head


def with_weights(model: Model, source: Mapping[str, Tensor] | str | Path) -> Model:
    """A model of the same shape, dtype and device with other weights: a state dict's (Hugging Face names), or those of
    another model, given by folder or name. `model` stays as it is, and tensors that no layer asks for are ignored.

    Raises `BrokenModel`, or as `load_model` and the model store do.
    """
    if isinstance(source, Mapping):
        return build_model(model.config, MemoryWeights(source, model.dtype, model.device))
    if not isinstance(source, str | Path):
        raise InvalidArgument(f"weights must be a state dict, a model folder or the name of a model, not {source!r}")
    folder = resolve(source)
    config = load_config(folder)
    for field in fields(ModelConfig):
        ours, theirs = getattr(model.config, field.name), getattr(config, field.name)
        if ours != theirs:
            raise BrokenModel(f"{folder} holds another model: its {field.name} is {theirs}, the engine's {ours}")
    return build_model(config, FolderWeights(folder, model.dtype, model.device))


def _layer(config: ModelConfig, weights: Weights, prefix: str) -> Layer:
    hidden, inner, head_dim = config.hidden_size, config.intermediate_size, config.head_dim
    heads, kv_heads = config.num_heads, config.num_kv_heads
    q_size, kv_size = heads * head_dim, kv_heads * head_dim

    def norm(name: str) -> RMSNorm:
        return RMSNorm(weights.take(f"{prefix}{name}.weight", hidden), config.rms_norm_eps)

    def linear(biased: bool, *parts: tuple[str, int, int]) -> Linear:
        """One matrix of several that read the same input, their outputs one after the other."""
        matrix = torch.cat([weights.take(f"{prefix}{name}.weight", out, inp) for name, out, inp in parts])
        bias = torch.cat([weights.take(f"{prefix}{name}.bias", out) for name, out, _ in parts]) if biased else None
        return Linear(matrix, bias)

    qkv_parts = [("q_proj", q_size), ("k_proj", kv_size), ("v_proj", kv_size)]
    return Layer(
        attention_norm=norm("input_layernorm"),
        qkv=linear(config.qkv_bias, *((f"self_attn.{name}", size, hidden) for name, size in qkv_parts)),
        qk_norm=_qk_norm(config, weights, prefix) if config.qk_norm else None,
        output=linear(config.output_bias, ("self_attn.o_proj", hidden, q_size)),
        mlp_norm=norm("post_attention_layernorm"),
        gate_up=linear(False, ("mlp.gate_proj", inner, hidden), ("mlp.up_proj", inner, hidden)),
        down=linear(False, ("mlp.down_proj", hidden, inner)),
    )


def _qk_norm(config: ModelConfig, weights: Weights, prefix: str) -> RMSNorm:
    """One norm for all heads of queries and keys: the two weights repeated head by head, `(Hq + Hkv, D)`."""

    def heads(name: str, count: int) -> Tensor:
        return weights.take(f"{prefix}self_attn.{name}.weight", config.head_dim).expand(count, -1)

    both = torch.cat((heads("q_norm", config.num_heads), heads("k_norm", config.num_kv_heads)))
    return RMSNorm(both, config.rms_norm_eps)
