"""From a Hugging Face folder, or tensors in memory, to a `Model`: each tensor is checked as it is read.

Shapes: E hidden size, F feed-forward size, V vocabulary, Hq query heads, Hkv key-value heads, D head size. Names and
        shapes of tensors are Hugging Face's; every `take` states the shape it expects.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from minicache.common.files import require_end
from minicache.common.json_reader import read_json as parse_json
from minicache.core.errors import InvalidArgument
from minicache.engine.errors import BrokenModel, UnknownModel, UnsupportedModel
from minicache.engine.layers import Linear, RMSNorm
from minicache.engine.model import Layer, Model, Rows
from minicache.engine.model_config import ModelConfig
from minicache.engine.models.store import resolve

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
LONGEST_NAME = 60  # characters of a shard's name: at four bytes each still a name that every file system has


class Weights(Protocol):
    """Where a model takes its tensors from."""

    def __contains__(self, name: str) -> bool: ...

    def take(self, name: str, *shape: int) -> Tensor:
        """The tensor of that name as the model's dtype; raises `BrokenModel` if it is missing or of another shape."""


class FolderWeights:
    """The safetensors of a folder, in one file or in shards. Tensors are read when taken, one at a time."""

    def __init__(self, folder: Path, dtype: torch.dtype, device: torch.device | str = "cpu") -> None:
        self.folder, self.dtype, self.device = folder, dtype, device
        self._files = {path.name: open_safetensors(path) for path in shards(folder)}
        self._home = {name: file for file, opened in self._files.items() for name in opened.keys()}  # noqa: SIM118

    def __contains__(self, name: str) -> bool:
        return name in self._home

    def __iter__(self) -> Iterator[str]:
        return iter(self._home)

    def take(self, name: str, *shape: int) -> Tensor:
        if name not in self._home:
            raise BrokenModel(f"{self.folder}: the weights lack {name}, which config.json asks for")
        file = self._home[name]
        try:
            tensor: Tensor = self._files[file].get_tensor(name)
        except SafetensorError as error:
            raise BrokenModel(f"{self.folder / file} is corrupt at {name}: {error}; fetch it again") from None
        return checked(tensor, f"{self.folder / file}: {name}", shape).to(self.device, self.dtype)


class MemoryWeights:
    """A mapping of tensors, for models made in code. Copies them: their owner may go on training them."""

    def __init__(self, tensors: Mapping[str, Tensor], dtype: torch.dtype, device: torch.device | str = "cpu") -> None:
        self.tensors, self.dtype, self.device = tensors, dtype, device

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def take(self, name: str, *shape: int) -> Tensor:
        if name not in self.tensors:
            raise BrokenModel(f"the weights lack {name}, which the config asks for")
        tensor = self.tensors[name]
        if not isinstance(tensor, Tensor):
            raise BrokenModel(f"{name} must be a tensor, not {type(tensor).__name__}")
        return checked(tensor, name, shape).detach().to(self.device, self.dtype, copy=True)


def checked(tensor: Tensor, what: str, shape: tuple[int, ...]) -> Tensor:
    if tuple(tensor.shape) != shape:
        raise BrokenModel(f"{what} has shape {tuple(tensor.shape)}, but config.json asks for {shape}")
    if not tensor.is_floating_point():
        raise BrokenModel(f"{what} holds {str(tensor.dtype).removeprefix('torch.')}, which is no type of weights")
    return tensor


def shards(folder: Path) -> list[Path]:
    """The safetensors files of a folder. Raises `UnknownModel` without weights, `BrokenModel` if a shard is missing."""
    if (folder / INDEX).is_file():
        index = read_json(folder / INDEX)
        names = index.get("weight_map")
        if not isinstance(names, dict) or not names:
            raise BrokenModel(f"{folder / INDEX} has no weight_map")
        for name in names.values():
            if not isinstance(name, str) or Path(name).name != name or len(name) > LONGEST_NAME:
                raise BrokenModel(f"{folder / INDEX}: weight_map must name files of this folder, not {name!r:.200}")
        found = [folder / name for name in sorted(set(names.values()))]
    else:
        found = [folder / SINGLE]
    for path in found:
        if not path.is_file():
            error = BrokenModel if len(found) > 1 else UnknownModel
            raise error(f"{folder} has no {path.name}: a model folder holds config.json and its safetensors weights")
    return found


def open_safetensors(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError, ValueError) as error:
        raise BrokenModel(f"{path} is truncated or not a safetensors file ({error}); fetch it again") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file of a model; raises `UnknownModel` if missing, `BrokenModel` if it is not an object."""
    try:
        if not path.is_file():  # a pipe or a device, whose end never comes, is as bad as nothing
            raise FileNotFoundError
        value = parse_json(require_end(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnknownModel(f"{path.parent} has no {path.name}, so it is not a model folder") from None
    except (OSError, ValueError) as error:
        raise BrokenModel(f"{path} is not readable JSON: {error}") from None
    if not isinstance(value, dict):
        raise BrokenModel(f"{path} holds {type(value).__name__}, not a JSON object")
    return value


def load_model(
    folder: Path,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    linear: type[Linear] = Linear,
) -> Model:
    """Load a Hugging Face folder (config.json and safetensors, sharded or not), its products computed by `linear`.

    Raises `UnknownModel`, `UnsupportedModel` or `BrokenModel`, each naming the file and the field or tensor.
    """
    config = load_config(folder)
    return build_model(config, FolderWeights(folder, dtype, device), linear)


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


def build_model(
    config: ModelConfig, weights: Weights, linear: type[Linear] = Linear, rows: Rows | None = None
) -> Model:
    """Assemble the decoder, checking each tensor's shape against the config."""
    embedding = weights.take("model.embed_tokens.weight", config.vocab_size, config.hidden_size)
    layers = [_layer(config, weights, f"model.layers.{i}.", linear) for i in range(config.num_layers)]
    norm = RMSNorm(weights.take("model.norm.weight", config.hidden_size), config.rms_norm_eps)
    return Model(config, embedding, layers, norm, linear(_head(config, weights, embedding)), rows)


def _head(config: ModelConfig, weights: Weights, embedding: Tensor) -> Tensor:
    """The output matrix. A tied folder may hold it too, as a copy of the embedding; a different matrix is used."""
    if config.tie_embeddings and "lm_head.weight" not in weights:
        return embedding
    head = weights.take("lm_head.weight", config.vocab_size, config.hidden_size)
    return embedding if config.tie_embeddings and torch.equal(head, embedding) else head


def with_weights(model: Model, source: Mapping[str, Tensor] | str | Path) -> Model:
    """A model like `model` (shape, dtype, device, products, layout of rows) with other weights: a state dict under
    Hugging Face names, or those of another model, given by folder or name.

    Does not change `model`; ignores tensors that no layer asks for. Raises `BrokenModel`, or as `load_model` and the
    model store do.
    """
    linear = type(model.lm_head)
    if isinstance(source, Mapping):
        weights: Weights = MemoryWeights(source, model.dtype, model.device)
        return build_model(model.config, weights, linear, model.rows)
    if not isinstance(source, str | Path):
        raise InvalidArgument(f"weights must be a state dict, a model folder or the name of a model, not {source!r}")
    folder = resolve(source)
    config = load_config(folder)
    for field in fields(ModelConfig):
        ours, theirs = getattr(model.config, field.name), getattr(config, field.name)
        if ours != theirs:
            raise BrokenModel(f"{folder} holds another model: its {field.name} is {theirs}, the engine's {ours}")
    return build_model(config, FolderWeights(folder, model.dtype, model.device), linear, model.rows)


def _layer(config: ModelConfig, weights: Weights, prefix: str, make_linear: type[Linear]) -> Layer:
    hidden, inner, head_dim = config.hidden_size, config.intermediate_size, config.head_dim
    heads, kv_heads = config.num_heads, config.num_kv_heads
    q_size, kv_size = heads * head_dim, kv_heads * head_dim

    def norm(name: str) -> RMSNorm:
        return RMSNorm(weights.take(f"{prefix}{name}.weight", hidden), config.rms_norm_eps)

    def linear(biased: bool, *parts: tuple[str, int, int]) -> Linear:
        """One matrix of several that read the same input, their outputs one after the other."""
        matrix = torch.cat([weights.take(f"{prefix}{name}.weight", out, inp) for name, out, inp in parts])
        bias = torch.cat([weights.take(f"{prefix}{name}.bias", out) for name, out, _ in parts]) if biased else None
        return make_linear(matrix, bias)

    qkv_parts = [("q_proj", q_size), ("k_proj", kv_size), ("v_proj", kv_size)]
    return Layer(
        config,
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
