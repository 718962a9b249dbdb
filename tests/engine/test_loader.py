"""What is wrong with a model folder is said in one sentence that names the file."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from minicache.engine.errors import BrokenModel, UnknownModel, UnsupportedModel
from minicache.engine.model_config import ModelConfig
from minicache.engine.models.loader import load_config, load_eos_tokens, load_model
from tests.engine.small_models import LLAMA3_ROPE, hf_config, run_chunks, write_model

TOKENS = list(range(0, 60, 3))


def shard(folder: Path) -> None:
    """Cut the weights into two files and an index."""
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    parts = {"model-1-of-2.safetensors": names[::2], "model-2-of-2.safetensors": names[1::2]}
    for file, members in parts.items():
        save_file({name: tensors[name] for name in members}, folder / file)
    index = {"weight_map": {name: file for file, members in parts.items() for name in members}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors").unlink()


def test_shards_are_one_model(tmp_path: Path) -> None:
    whole, cut = write_model(tmp_path / "whole"), write_model(tmp_path / "cut")
    shard(cut)
    torch.testing.assert_close(
        *(run_chunks(load_model(folder), TOKENS, [20]) for folder in (whole, cut)), rtol=0, atol=0
    )
    (cut / "model-2-of-2.safetensors").unlink()
    with pytest.raises(BrokenModel, match=r"cut has no model-2-of-2\.safetensors"):
        load_model(cut)


def test_end_tokens_come_from_the_generation_config_first(tmp_path: Path) -> None:
    folder = write_model(tmp_path, eos_token_id=3)
    assert load_eos_tokens(folder) == {3}
    (folder / "generation_config.json").write_text('{"eos_token_id": [4, 5]}')
    assert load_eos_tokens(folder) == {4, 5}
    (folder / "generation_config.json").write_text('{"eos_token_id": "end"}')
    with pytest.raises(BrokenModel, match=r"generation_config\.json: eos_token_id must be token ids"):
        load_eos_tokens(folder)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match=r"has no config\.json, so it is not a model folder"):
        load_model(tmp_path)
    folder = write_model(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    with pytest.raises(UnknownModel, match=r"has no model\.safetensors"):
        load_model(folder)


@pytest.mark.parametrize("keep", [0, 5, 300, -100], ids=["empty", "in the length", "in the header", "in the data"])
def test_truncated_weights(tmp_path: Path, keep: int) -> None:
    path = write_model(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BrokenModel, match=r"model\.safetensors is truncated or not a safetensors file"):
        load_model(tmp_path)


def test_weights_of_another_shape_than_the_config(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    (folder / "config.json").write_text(json.dumps(hf_config("llama") | {"intermediate_size": 81}))
    with pytest.raises(
        BrokenModel, match=r"gate_proj\.weight has shape \(80, 48\), but config\.json asks for \(81, 48\)"
    ):
        load_model(folder)
    (folder / "config.json").write_text(json.dumps(hf_config("llama") | {"num_hidden_layers": 4}))
    with pytest.raises(BrokenModel, match=r"the weights lack model\.layers\.3\."):
        load_model(folder)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"architectures": ["MambaForCausalLM"]},
            UnsupportedModel,
            "MambaForCausalLM is not supported; supported are L",
        ),
        ({"architectures": None}, UnsupportedModel, "model_type 'llama' is not supported"),
        ({"hidden_act": "gelu"}, UnsupportedModel, "hidden_act 'gelu' is not supported"),
        ({"use_sliding_window": True}, UnsupportedModel, "use_sliding_window True is not supported"),
        ({"quantization_config": {}}, UnsupportedModel, "quantised weights are not supported"),
        ({"rope_scaling": {"rope_type": "yarn"}}, UnsupportedModel, "rotary scaling 'yarn' is not supported"),
        (
            {"rope_scaling": {"rope_type": "llama3"}},
            BrokenModel,
            "factor must be a positive number, not None .llama3 rotary",
        ),
        (
            {"rope_scaling": LLAMA3_ROPE | {"high_freq_factor": 1.0}},
            BrokenModel,
            "high_freq_factor must be above low_freq_factor .llama3 rotary",
        ),
        ({"hidden_size": None}, BrokenModel, "hidden_size must be a positive integer, not None"),
        ({"vocab_size": "many"}, BrokenModel, "vocab_size must be a positive integer, not 'many'"),
        ({"num_key_value_heads": 4}, BrokenModel, "6 attention heads cannot share 4 key-value heads evenly"),
        ({"head_dim": 7}, BrokenModel, "head_dim must be even"),
        ({"rope_theta": "far"}, BrokenModel, "rope_theta must be a positive number, not 'far'"),
        ({"rms_norm_eps": []}, BrokenModel, "rms_norm_eps must be a positive number"),
    ],
)
def test_configs_that_do_not_fit(changes: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ModelConfig.from_hf(hf_config("llama") | changes)


@pytest.mark.parametrize("changes", [{"hidden_act": "gelu"}, {"head_dim": 7}])
def test_the_folder_of_a_config_is_named(tmp_path: Path, changes: dict) -> None:
    (tmp_path / "config.json").write_text(json.dumps(hf_config("llama") | changes))
    with pytest.raises((BrokenModel, UnsupportedModel), match=rf"^{tmp_path}/config\.json: "):
        load_config(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", "\x00\xff"])
def test_configs_that_are_not_json_objects(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(BrokenModel, match=r"config\.json"):
        load_config(tmp_path)
