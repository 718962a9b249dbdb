"""GGUF to a Hugging Face folder: the same weights, in the right order, and the same tokenizer."""

from pathlib import Path

import pytest
import torch

from minicache.core.errors import MinicacheError
from minicache.engine.errors import BrokenModel, UnsupportedModel
from minicache.engine.models.gguf import convert
from minicache.engine.models.loader import (
    FolderWeights,
    MemoryWeights,
    build_model,
    load_config,
    load_eos_tokens,
    load_model,
    read_json,
)
from minicache.engine.models.store import resolve
from minicache.text.template import ChatTemplate
from minicache.text.tokenizer import HubTokenizer
from tests.engine.gguf_files import TEMPLATE, config, write_gguf
from tests.engine.small_models import run_chunks

Converted = tuple[Path, dict[str, torch.Tensor]]


def convert_one(folder: Path, family: str, tied: bool) -> Converted:
    weights = write_gguf(folder / "model.gguf", family=family, tied=tied)
    target = folder / "folder"
    target.mkdir()
    convert(folder / "model.gguf", target)
    return target, weights


@pytest.fixture
def converted(tmp_path: Path) -> Converted:
    return convert_one(tmp_path, "llama", tied=True)


def test_weights_come_back_in_order(converted: Converted) -> None:
    folder, weights = converted
    stored = FolderWeights(folder, torch.float32)
    assert set(stored) == set(weights)
    for name, values in weights.items():
        quantized = "gate_proj" in name  # to 8 bits, in blocks of 32
        torch.testing.assert_close(stored.take(name, *values.shape), values, rtol=0, atol=0.01 if quantized else 0)


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_the_model_runs_as_before(tmp_path: Path, family: str, tied: bool) -> None:
    folder, weights = convert_one(tmp_path, family, tied)
    shape = config(family, tied)
    assert load_config(folder) == shape
    gates = FolderWeights(folder, torch.float32)
    weights |= {name: gates.take(name, *weights[name].shape) for name in weights if "gate_proj" in name}
    tokens = list(range(0, 200, 7))
    expected = run_chunks(build_model(shape, MemoryWeights(weights, torch.float32)), tokens, [len(tokens)])
    torch.testing.assert_close(run_chunks(load_model(folder), tokens, [len(tokens)]), expected)


def test_the_tokenizer_merges_and_splits(converted: Converted) -> None:
    tokenizer = HubTokenizer(converted[0])
    text = "<|im_start|>in the 12, é<|im_end|>"
    tokens = tokenizer.encode(text)
    pieces = [tokenizer.decode([token], keep_control=True) for token in tokens]
    assert pieces == ["<|im_start|>", "i", "n", " the", " ", "1", "2", ",", " ", "�", "�", "<|im_end|>"]
    assert tokenizer.decode(tokens, keep_control=True) == text
    assert tokenizer.eos_ids == load_eos_tokens(converted[0]) == {2}
    assert ChatTemplate.from_folder(converted[0]).source == TEMPLATE


def test_a_gguf_path_is_converted_once_into_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINICACHE_HOME", str(tmp_path / "home"))
    write_gguf(tmp_path / "mine.gguf")
    folder = resolve(tmp_path / "mine.gguf")
    assert folder.name.startswith("mine-")
    stamp = (folder / "config.json").stat().st_mtime_ns
    assert resolve(tmp_path / "mine.gguf") == folder
    assert (folder / "config.json").stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"llama.attention.head_count": 0}, "llama.attention.head_count must be at least 1, not 0"),
        ({"llama.embedding_length": "x"}, "llama.embedding_length must be an integer, not 'x'"),
        ({"llama.rope.freq_base": [1]}, r"llama.rope.freq_base must be a number, not \[1\]"),
        ({"tokenizer.ggml.tokens": [3]}, "no token has this id"),
        ({"tokenizer.ggml.tokens": ["a"]}, "tokenizer.ggml.bos_token_id is 1, and no token has this id"),
        ({"tokenizer.ggml.merges": [3]}, "each item of the field tokenizer.ggml.merges must be a text"),
        ({"tokenizer.ggml.token_type": [1]}, "tokens, and types of 1"),
        (
            {"tokenizer.ggml.merges": ["no such"]},
            "the tokenizers library can build: .*vocabulary",
        ),
        ({"tokenizer.ggml.merges": ["alone"]}, "holds no tokenizer that the tokenizers library can build"),
        ({"general.architecture": ["llama"]}, "general.architecture must be a text"),
        ({"tokenizer.ggml.pre": UnicodeDecodeError("utf-8", b"\xed", 0, 1, "no")}, "tokenizer.ggml.pre cannot be read"),
    ],
    ids=str,
)
def test_fields_of_a_stranger(
    tmp_path: Path, changes: dict[str, object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gguf

    original = gguf.ReaderField.contents

    def contents(field: gguf.ReaderField) -> object:
        value = changes.get(field.name)
        if isinstance(value, Exception):
            raise value
        return original(field) if field.name not in changes else value

    monkeypatch.setattr(gguf.ReaderField, "contents", contents)
    with pytest.raises(MinicacheError, match=words):
        convert_one(tmp_path, "llama", tied=True)


def test_files_that_cannot_be_converted_say_why(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 100)
    with pytest.raises(BrokenModel, match=r"model\.gguf is truncated or not a GGUF file"):
        convert(path, target)
    write_gguf(path)
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(BrokenModel, match=r"model\.gguf is truncated or not a GGUF file"):
        convert(path, target)
    write_gguf(path, architecture="mamba")
    with pytest.raises(UnsupportedModel, match="'mamba' model; supported are llama, qwen2, qwen3"):
        convert(path, target)
    write_gguf(path, words="martian")
    with pytest.raises(UnsupportedModel, match="splits words like 'martian'"):
        convert(path, target)


@pytest.mark.model
def test_smollm2_tokens() -> None:
    """Digits one by one, control tokens whole, white space and bytes as SmolLM2's own tokenizer has them."""
    folder = resolve("smollm2")
    tokenizer = HubTokenizer(folder)
    assert tokenizer.encode("Hello world 2024") == [19556, 905, 216, 34, 32, 34, 36]
    assert tokenizer.encode("<|im_start|>user\nHi<|im_end|>\n") == [1, 4093, 198, 26843, 2, 198]
    assert (
        tokenizer.decode(tokenizer.encode("naïve 日本語 👍🏽\t  x\n\n y"), keep_control=True)
        == "naïve 日本語 👍🏽\t  x\n\n y"
    )
    assert tokenizer.vocab_size == load_config(folder).vocab_size == 49152
    assert load_eos_tokens(folder) == {2}
    assert read_json(folder / "config.json")["rms_norm_eps"] == 1e-5
