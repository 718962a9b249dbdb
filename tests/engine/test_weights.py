"""New weights and an emptied cache while requests run; one caller at a time."""

import threading
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from minicache.core.errors import InvalidArgument
from minicache.engine import Engine, SamplingParams
from minicache.engine.errors import BrokenModel, EngineBusy, UnknownModel
from minicache.engine.exact import TiledRows
from minicache.engine.fast_cpu.products import SlicedRows
from minicache.engine.model_config import ModelConfig
from tests.engine.random_weights import random_weights
from tests.engine.small_models import hf_config, write_model

PROMPT = list(range(40))
ASKED = SamplingParams(max_tokens=6, ignore_eos=True)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(model=write_model(tmp_path / "old"), num_blocks=20, dtype="float64")


def other_weights() -> dict[str, torch.Tensor]:
    return random_weights(ModelConfig.from_hf(hf_config("llama")), seed=2)


def test_nothing_old_is_found_after_new_weights(engine: Engine, tmp_path: Path) -> None:
    old = engine.generate([PROMPT], ASKED)[0]
    engine.update_weights(other_weights())
    new = engine.generate([PROMPT], ASKED)[0]
    assert new.cached_tokens == 0
    assert new.token_ids != old.token_ids
    engine.update_weights(tmp_path / "old")
    back = engine.generate([PROMPT], ASKED)[0]
    assert (back.cached_tokens, back.token_ids) == (0, old.token_ids)


@pytest.mark.parametrize("settings", [{"exact": True}, {"attention": "torch"}, {"attention": "fast_cpu"}], ids=str)
@pytest.mark.parametrize("source", ["a state dict", "a folder"])
def test_new_weights_run_as_the_old_ones_did(tmp_path: Path, settings: dict[str, Any], source: str) -> None:
    """In exact mode or not, by the same products."""
    engine = Engine(model=write_model(tmp_path), num_blocks=20, **settings)
    old = engine.runner.model
    engine.update_weights(tmp_path if source == "a folder" else other_weights())
    new = engine.runner.model
    assert new is not old
    assert isinstance(new.rows, TiledRows) == ("exact" in settings)
    assert isinstance(new.rows, SlicedRows) == (settings.get("attention") == "fast_cpu")
    assert new.rows == old.rows
    linears = [(layer.qkv, layer.output, layer.gate_up, layer.down) for layer in new.layers]
    assert {type(linear) for linear in (new.lm_head, *chain(*linears))} == {type(old.lm_head)}


def test_weights_that_go_on_being_trained_are_not_those_of_the_engine(engine: Engine) -> None:
    state = {name: torch.nn.Parameter(tensor.double()) for name, tensor in other_weights().items()}
    engine.update_weights(state)
    before = engine.generate([PROMPT], ASKED)[0].token_ids
    with torch.no_grad():
        for tensor in state.values():
            tensor.zero_()
    assert engine.generate([PROMPT[::-1], PROMPT], ASKED)[1].token_ids == before


def test_weights_that_do_not_fit_change_nothing(engine: Engine, tmp_path: Path) -> None:
    before = engine.generate([PROMPT], ASKED)[0]
    state = other_weights()
    wrong = {
        "lacks": ({"model.norm.weight": state["model.norm.weight"]}, BrokenModel, "the weights lack model.embed"),
        "shape": (state | {"model.norm.weight": torch.ones(47)}, BrokenModel, r"model\.norm\.weight has shape \(47,\)"),
        "type": (state | {"model.norm.weight": [1.0]}, BrokenModel, r"model\.norm\.weight must be a tensor, not list"),
        "folder": (tmp_path / "nothing", UnknownModel, "unknown model .*nothing'"),
        "empty": (tmp_path, UnknownModel, "has no config.json"),
        "name": ("tiny", BrokenModel, "holds another model: its"),
        "other": (write_model(tmp_path / "other", "qwen3"), BrokenModel, "another model: its family is qwen3"),
        "deeper": (write_model(tmp_path / "deep", num_hidden_layers=4), BrokenModel, "its num_layers is 4, the engine"),
        "nonsense": (5, InvalidArgument, "weights must be a state dict, a model folder or the name of a model, not 5"),
    }
    for source, error, message in wrong.values():
        with pytest.raises(error, match=message):
            engine.update_weights(source)
    after = engine.generate([PROMPT], ASKED)[0]
    assert (after.cached_tokens, after.token_ids) == (32, before.token_ids)


def test_a_running_request_computes_everything_anew(engine: Engine, tmp_path: Path) -> None:
    request_id = engine.submit(PROMPT, ASKED)
    engine.step()
    engine.step()
    assert engine.reset_prefix_cache() is False, "it holds blocks"
    engine.update_weights(load_file(tmp_path / "old" / "model.safetensors"))
    assert engine.cache.num_free == engine.cache.capacity
    while engine.has_unfinished:
        [output] = engine.step()
    assert output.request_id == request_id
    assert output.token_ids == engine.generate([PROMPT], ASKED)[0].token_ids


def test_an_idle_engine_is_emptied(engine: Engine) -> None:
    engine.generate([PROMPT], ASKED)
    assert engine.reset_prefix_cache() is True
    assert engine.generate([PROMPT], ASKED)[0].cached_tokens == 0


def test_a_second_thread_is_told_that_it_is_one_too_many(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, leave = threading.Event(), threading.Event()
    run = engine.runner.run

    def waits(*arguments: object) -> object:
        entered.set()
        assert leave.wait(120)
        return run(*arguments)

    monkeypatch.setattr(engine.runner, "run", waits)
    request_id = engine.submit(PROMPT, SamplingParams(max_tokens=1, ignore_eos=True))
    outputs = []
    thread = threading.Thread(target=lambda: outputs.extend(engine.step()))
    thread.start()
    try:
        assert entered.wait(120)
        for call in (
            engine.step,
            engine.reset_prefix_cache,
            lambda: engine.submit([1]),
            lambda: engine.abort(request_id),
            lambda: engine.generate([[1]]),
            lambda: engine.stream([1]),
            lambda: engine.update_weights({}),
        ):
            with pytest.raises(EngineBusy, match=r"\(\) was called while another call of the engine runs"):
                call()
    finally:
        leave.set()
        thread.join(120)
    assert [output.finish_reason for output in outputs] == ["length"]
    assert engine.submit([1]) == "request-2", "another thread may drive it afterwards"
    engine.abort("request-2")


def test_events_cannot_call_the_engine(tmp_path: Path) -> None:
    def sink(event: object) -> None:
        engine.abort("a")

    engine = Engine(model=write_model(tmp_path), num_blocks=20, events=sink)
    with pytest.raises(EngineBusy, match="abort"):
        engine.submit(PROMPT, ASKED, request_id="a")
