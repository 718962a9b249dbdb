"""The folder of `tiny` as Hugging Face tools read it: config, weights in float16, tokenizer, chat template."""

from collections.abc import Mapping
from pathlib import Path
from shutil import copyfile
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from minicache.engine.models.gguf import write_json
from minicache.engine.models.store import TINY_FOLDER
from minicache.text.byte_tokenizer import ByteTokenizer
from minicache.text.template import CHATML

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": ByteTokenizer.vocab_size,
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "bos_token_id": None,
    "eos_token_id": sorted(ByteTokenizer.eos_ids),
    "torch_dtype": "float16",
}


def write_folder(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Write `weights` (Hugging Face names), config and tokenizer into `folder`; the same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    halves = {name: tensor.detach().to(torch.float16).contiguous() for name, tensor in weights.items()}
    save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # safetensors lets only the owner read it
    write_json(folder / "config.json", CONFIG)
    write_json(folder / "generation_config.json", {"eos_token_id": CONFIG["eos_token_id"]})
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "model_max_length": CONFIG["max_position_embeddings"],
            "eos_token": "<|im_end|>",
            "chat_template": CHATML,
        },
    )
    byte_tokenizer().save(str(folder / "tokenizer.json"))


def write_tiny(folder: Path) -> None:
    """Copy the trained model into the existing empty `folder`."""
    for path in sorted(TINY_FOLDER.iterdir()):
        copyfile(path, folder / path.name)


def byte_tokenizer() -> Tokenizer:
    """`ByteTokenizer` as a tokenizer.json that any tool can read: byte-level BPE without merges."""
    vocabulary = {letter: byte for byte, letter in enumerate(byte_letters())}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    control = sorted(ByteTokenizer.CONTROL, key=ByteTokenizer.CONTROL.__getitem__)
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in control])
    return tokenizer


def byte_letters() -> list[str]:
    """The letter that byte-level BPE writes for each byte: the byte's own if printable, else one from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(256, 512))
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]
