"""A GGUF file to a Hugging Face folder: config, weights, tokenizer, chat template."""

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from minicache.common.progress import Progress, silent
from minicache.engine.errors import UnsupportedModel
from minicache.engine.gguf_reader import GGUFFile

CONTROL, USER_DEFINED = 3, 4  # GGUF token types that text is never merged across

# How text is cut into words before pairs are merged, by GGUF's name for it.
QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def convert(gguf_path: Path, folder: Path, progress: Progress = silent) -> None:
    """Write the model in `gguf_path` to the existing empty `folder`, dequantised to float32.

    Not atomic: give it a temporary folder and rename that. Raises `BrokenModel` or `UnsupportedModel`.
    """
    from safetensors.numpy import save_file

    source = GGUFFile(gguf_path)
    config = source.hf_config
    build_tokenizer(source).save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", tokenizer_config(source))
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", {"eos_token_id": config["eos_token_id"]})
    tensors = {}
    for done, (name, values) in enumerate(source.tensors(), start=1):
        tensors[name] = values
        progress("converting", done, source.num_tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def build_tokenizer(source: GGUFFile) -> Tokenizer:
    """The byte-level BPE tokenizer that the GGUF file describes."""
    if (kind := source.field("tokenizer.ggml.model")) != "gpt2":
        raise UnsupportedModel(f"{source.path} has a {kind!r} tokenizer; only byte-level BPE ('gpt2') can be converted")
    tokens = source.field("tokenizer.ggml.tokens")
    types = source.field("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ", 1)) for merge in source.field("tokenizer.ggml.merges")]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, fuse_unk=False, byte_fallback=False))
    tokenizer.normalizer, tokenizer.pre_tokenizer = word_splitter(source)
    tokenizer.decoder = decoders.ByteLevel()
    for token, kind in zip(tokens, types, strict=True):
        if kind in (CONTROL, USER_DEFINED):
            tokenizer.add_tokens([AddedToken(token, special=kind == CONTROL, normalized=False)])
    return tokenizer


def word_splitter(source: GGUFFile) -> tuple[Any, Any]:
    """Normalizer and pre-tokenizer."""
    match source.field("tokenizer.ggml.pre"):
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
    """What tokenizer_config.json would hold: special tokens by role, and the chat template."""
    tokens = source.field("tokenizer.ggml.tokens")
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    config["model_max_length"] = source.size("context_length")
    for role, field in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        index = source.field(f"tokenizer.ggml.{field}_token_id", -1)
        if index >= 0:
            config[f"{role}_token"] = tokens[index]
    if template := source.field("tokenizer.chat_template", ""):
        config["chat_template"] = template
    return config


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
