"""GGUF files: read, and converted to a Hugging Face folder (config, weights, tokenizer, chat template).

llama.cpp stores the rows of a Llama's query and key projections in another order: it rotates neighbours (2i, 2i + 1),
Hugging Face rotates (i, i + D/2). `unpermuted` restores Hugging Face's. Quantised tensors are dequantised to float32,
exactly.

Shapes: Hq query heads, Hkv key-value heads, D head size, E hidden size.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from minicache.common.progress import Progress, silent
from minicache.engine.errors import BrokenModel, UnsupportedModel
from minicache.text.tokenizers_library import library_errors

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

T = TypeVar("T")
WORDS: dict[type, str] = {int: "an integer", float: "a number", str: "a text", list: "a list"}
CONTROL, USER_DEFINED = 3, 4  # GGUF token types that are never merged with text

# How text is cut into words before pairs are merged, by GGUF's name for it.
QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class GGUFFile:
    """One open GGUF file. Raises `BrokenModel` if it is not one, `UnsupportedModel` for an unknown architecture."""

    def __init__(self, path: Path) -> None:
        import gguf  # 0.3 s, and needed by conversions only

        self.path = path
        self._dequantize = gguf.quants.dequantize
        try:
            self._reader = gguf.GGUFReader(path)
        except Exception as error:  # the reader has no error of its own: it raises ValueError, IndexError, …
            raise BrokenModel(f"{path} is truncated or not a GGUF file ({error}); fetch it again") from None
        self.architecture = self.field("general.architecture", str)
        if self.architecture not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            raise UnsupportedModel(f"{path} holds a {self.architecture!r} model; supported are {known}")

    def field(self, name: str, kind: type[T], default: T | None = None) -> T:
        """A metadata field's value. Raises `BrokenModel` if it has another type, or is missing without a default."""
        field = self._reader.fields.get(name)
        if field is None and default is None:
            raise BrokenModel(f"{self.path} lacks the field {name}")
        try:
            value = default if field is None else field.contents()
        except (ValueError, LookupError) as error:  # text that is no UTF-8, an unknown type
            raise BrokenModel(f"{self.path}: the field {name} cannot be read: {error}") from None
        if not isinstance(value, kind) or isinstance(value, bool):
            raise BrokenModel(f"{self.path}: the field {name} must be {WORDS[kind]}, not {value!r}")
        return value

    def items(self, name: str, kind: type[T]) -> list[T]:
        """The value of a field that holds a list of this type. Raises as `field` does."""
        found: list[T] = self.field(name, list)
        if not all(isinstance(item, kind) for item in found):
            raise BrokenModel(f"{self.path}: each item of the field {name} must be {WORDS[kind]}")
        return found

    def size(self, name: str, default: int | None = None) -> int:
        value = self.field(f"{self.architecture}.{name}", int, default)
        if value < 1:
            raise BrokenModel(f"{self.path}: the field {self.architecture}.{name} must be at least 1, not {value}")
        return value

    def token_id(self, role: str) -> int | None:
        """The id of the token with this role; None without one. Raises `BrokenModel` if no token has this id."""
        name = f"tokenizer.ggml.{role}_token_id"
        id = self.field(name, int, -1)
        if id >= len(self.field("tokenizer.ggml.tokens", list)):
            raise BrokenModel(f"{self.path}: the field {name} is {id}, and no token has this id")
        return id if id >= 0 else None

    @property
    def hf_config(self) -> dict[str, Any]:
        """The content of config.json."""
        heads = self.size("attention.head_count")
        hidden = self.size("embedding_length")
        names = {tensor.name for tensor in self._reader.tensors}
        if "rope_freqs.weight" in names:
            raise UnsupportedModel(f"{self.path} scales its rotary embeddings; use the model's safetensors instead")
        return {
            "architectures": [ARCHITECTURES[self.architecture]],
            "model_type": self.architecture,
            "vocab_size": len(self.field("tokenizer.ggml.tokens", list)),
            "hidden_size": hidden,
            "intermediate_size": self.size("feed_forward_length"),
            "num_hidden_layers": self.size("block_count"),
            "num_attention_heads": heads,
            "num_key_value_heads": self.size("attention.head_count_kv", heads),
            "head_dim": self.size("attention.key_length", hidden // heads),
            "hidden_act": "silu",
            "max_position_embeddings": self.size("context_length"),
            "rms_norm_eps": _short(self.field(f"{self.architecture}.attention.layer_norm_rms_epsilon", float)),
            "rope_theta": _short(self.field(f"{self.architecture}.rope.freq_base", float, 10000.0)),
            "tie_word_embeddings": "output.weight" not in names,
            "attention_bias": self.architecture == "llama" and "blk.0.attn_q.bias" in names,
            "bos_token_id": self.token_id("bos") or 0,
            "eos_token_id": self.token_id("eos") or 0,
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
            name, role = self._hf_name(tensor.name), tensor.name.split(".")[-2]
            try:
                values = self._dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
                if self.architecture == "llama" and role in row_heads:
                    values = unpermuted(values, row_heads[role])
            except (NotImplementedError, ValueError, LookupError) as error:  # integers; an odd shape
                raise BrokenModel(f"{self.path}: the tensor {tensor.name} cannot be read: {error}") from None
            yield name, values

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
    """A float32 as its shortest decimal: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def convert(gguf_path: Path, folder: Path, progress: Progress = silent) -> None:
    """Write the model in `gguf_path` to the existing empty `folder`, dequantised to float32.

    Not atomic: give it a temporary folder and rename that. Raises `BrokenModel`, `UnsupportedModel` or `OSError`.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    source = GGUFFile(gguf_path)
    config = source.hf_config
    (folder / "tokenizer.json").write_text(build_tokenizer(source).to_str(pretty=True), encoding="utf-8")
    write_json(folder / "tokenizer_config.json", tokenizer_config(source))
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", {"eos_token_id": config["eos_token_id"]})
    tensors = {}
    for done, (name, values) in enumerate(source.tensors(), start=1):
        tensors[name] = values
        progress("converting", done, source.num_tensors)
    try:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    except SafetensorError as error:  # the disk is full, for example
        raise OSError(f"{error}") from None


def build_tokenizer(source: GGUFFile) -> Tokenizer:
    """The byte-level BPE tokenizer that the GGUF file describes."""
    if (kind := source.field("tokenizer.ggml.model", str)) != "gpt2":
        raise UnsupportedModel(f"{source.path} has a {kind!r} tokenizer; only byte-level BPE ('gpt2') can be converted")
    tokens = source.items("tokenizer.ggml.tokens", str)
    types = source.items("tokenizer.ggml.token_type", int)
    if len(tokens) != len(types):
        raise BrokenModel(f"{source.path} has {len(tokens):,} tokens, and types of {len(types):,}")
    merges = [(a, b) for a, _, b in (merge.partition(" ") for merge in source.items("tokenizer.ggml.merges", str))]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    normalizer, splitter = word_splitter(source)
    with library_errors(source.path, "holds no tokenizer that the tokenizers library can build"):
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, fuse_unk=False, byte_fallback=False))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
        tokenizer.decoder = decoders.ByteLevel()
        for token, type in zip(tokens, types, strict=True):
            if type in (CONTROL, USER_DEFINED):
                tokenizer.add_tokens([AddedToken(token, special=type == CONTROL, normalized=False)])
    return tokenizer


def word_splitter(source: GGUFFile) -> tuple[Any, Any]:
    """Normalizer and pre-tokenizer."""
    match source.field("tokenizer.ggml.pre", str):
        case "smollm":
            return None, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)])
        case "gpt-2":
            return None, byte_level(True)
        case "qwen2":
            words = pre_tokenizers.Split(Regex(QWEN2_WORDS), behavior="isolated", invert=False)
            return normalizers.NFC(), pre_tokenizers.Sequence([words, byte_level(False)])
        case other:
            raise UnsupportedModel(f"{source.path} splits words like {other!r}: use the model's safetensors instead")


def byte_level(use_regex: bool) -> pre_tokenizers.ByteLevel:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=use_regex)


def tokenizer_config(source: GGUFFile) -> dict[str, Any]:
    """The content of tokenizer_config.json: special tokens by role, and the chat template."""
    tokens = source.items("tokenizer.ggml.tokens", str)
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    config["model_max_length"] = source.size("context_length")
    for role, field in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        if (index := source.token_id(field)) is not None:
            config[f"{role}_token"] = tokens[index]
    if template := source.field("tokenizer.chat_template", str, ""):
        config["chat_template"] = template
    return config


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
