"""A model folder may hold anything: whatever is wrong with it is said in one sentence that names the file."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from minicache.core.errors import InvalidArgument, MinicacheError
from minicache.engine import Engine, SamplingParams
from minicache.engine.errors import BrokenModel, PoolTooSmall, UnknownModel, UnsupportedModel
from minicache.engine.models import store as model_store
from minicache.engine.models.loader import load_model
from minicache.engine.tiny.folder import write_tiny
from minicache.text.errors import TemplateFailed
from minicache.text.template import ChatTemplate
from minicache.text.tokenizer import HubTokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny(tmp_path)
    return tmp_path


def change_config(folder: Path, **fields: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def bad_shard_names(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": 5, "b": "x"}}))


def endless_depth(folder: Path) -> None:
    change_config(folder, num_hidden_layers=1_000_000)


def shard_name_too_long(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "x" * 5000}}))


def shard_outside(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../secret.safetensors"}}))


def endless_context(folder: Path) -> None:
    change_config(folder, max_position_embeddings=10**13)


def another_program(folder: Path) -> None:
    change_config(folder, model_type="evil", auto_map={"AutoModelForCausalLM": "modeling_evil.Evil"})


def endless_angle(folder: Path) -> None:
    change_config(folder, rope_theta=10**400)


def nested(folder: Path) -> None:
    (folder / "config.json").write_text('{"a":' * 500 + "1" + "}" * 500)


def architectures_as_text(folder: Path) -> None:
    change_config(folder, architectures="LlamaForCausalLM")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (bad_shard_names, "weight_map must name files of this folder, not 5"),
        (shard_name_too_long, "weight_map must name files of this folder, not 'xxx"),
        (shard_outside, "weight_map must name files of this folder, not '../secret.safetensors'"),
        (endless_depth, "num_hidden_layers must be at most 1,000, not 1,000,000"),
        (endless_context, "max_position_embeddings must be at most"),
        (another_program, "model_type is 'evil', and LlamaForCausalLM is a llama"),
        (endless_angle, r"rope_theta must be at most 3e\+38"),
        (nested, "nested more than 128 levels deep"),
        (architectures_as_text, "architectures must be a list of names, not 'LlamaForCausalLM'"),
    ],
)
def test_a_spoilt_folder_is_refused(folder: Path, spoil: Callable[[Path], None], words: str) -> None:
    spoil(folder)
    with pytest.raises((BrokenModel, UnsupportedModel), match=words):
        Engine(model=folder)


def test_weights_that_are_not_numbers_are_noticed(folder: Path) -> None:
    """Greedy decoding of NaN would answer token 0 for ever and look like an answer."""
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] = torch.full_like(weights["model.norm.weight"], torch.nan)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    engine = Engine(model=folder, num_blocks=20)
    with pytest.raises(BrokenModel, match="not numbers"):
        engine.generate([[1, 2, 3]], SamplingParams(max_tokens=2))
    assert not engine.has_unfinished
    assert engine.cache.num_free == engine.cache.capacity


def test_integers_are_no_weights(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] = weights["model.norm.weight"].to(torch.int64)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BrokenModel, match=r"norm\.weight holds int64, which is no type of weights"):
        Engine(model=folder)


def test_a_template_that_is_no_text(folder: Path) -> None:
    (folder / "chat_template.jinja").write_bytes(b"\xff\xfe\x00rubbish")
    with pytest.raises(TemplateFailed, match=r"chat_template\.jinja is not a readable template"):
        ChatTemplate.from_folder(folder)


def test_a_folder_that_is_called_like_a_file(tmp_path: Path) -> None:
    (tmp_path / "d.gguf").mkdir()
    with pytest.raises(UnknownModel):
        Engine(model=tmp_path / "d.gguf")


@pytest.mark.parametrize(
    "settings", [{"num_blocks": 10**13}, {"num_blocks": 10**30}, {"memory_budget": 10**30}], ids=str
)
def test_a_pool_beyond_all_memory_is_refused_before_it_is_built(folder: Path, settings: dict[str, int]) -> None:
    with pytest.raises(PoolTooSmall, match=r"needs [\d,]+ bytes, more than can be had on cpu: give fewer") as caught:
        Engine(model=folder, **settings)
    assert "\n" not in str(caught.value)


def test_half_a_surrogate_pair_is_no_prompt(folder: Path) -> None:
    engine = Engine(model=folder, num_blocks=20)
    with pytest.raises(InvalidArgument, match="prompt must be text"):
        engine.submit("\ud800")
    assert not engine.has_unfinished


def test_an_option_of_the_wrong_type_stops_nobody_else(folder: Path) -> None:
    engine = Engine(model=folder, num_blocks=40, cache="radix")
    engine.submit([1, 2, 3], SamplingParams(max_tokens=2), request_id="good")
    with pytest.raises(MinicacheError, match="priority"):
        engine.submit([1, 2, 3], priority="high")  # type: ignore[arg-type]
    while engine.has_unfinished:
        done = engine.step()
    assert done[-1].finished


@pytest.mark.parametrize("endless", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"])
def test_a_pipe_or_a_device_in_a_model_folder_is_not_read(
    folder: Path, name: str, endless: Callable[[Path], object]
) -> None:
    (folder / name).unlink()
    endless(folder / name)
    reads = {"tokenizer.json": HubTokenizer, "tokenizer_config.json": ChatTemplate.from_folder}
    with pytest.raises(MinicacheError, match=r"has no|does not exist"):
        reads.get(name, load_model)(folder)


@pytest.mark.parametrize("endless", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_a_gguf_file_that_never_ends_is_not_read(tmp_path: Path, endless: Callable[[Path], object]) -> None:
    endless(tmp_path / "endless.gguf")
    with pytest.raises(UnknownModel, match=r"endless\.gguf is not an ordinary file$"):
        model_store.resolve(tmp_path / "endless.gguf")
