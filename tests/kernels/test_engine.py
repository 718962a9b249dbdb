"""A whole model over the kernels: the same logits and tokens as over torch's attention."""

from pathlib import Path

import pytest
import torch

from minicache.engine import Engine, EngineConfig, SamplingParams
from minicache.engine.kernels.store_kv import store_kv
from minicache.engine.kernels.triton_attention import TritonAttention
from tests.engine.small_models import run_chunks, small_model, write_model

PROMPT = [5, 17, 3, 44, 8, 21, 60, 2, 33, 9]


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_logits_in_chunks(family: str) -> None:
    model = small_model(family)
    expected = run_chunks(model, PROMPT, [10], backend="torch")
    found = run_chunks(model, PROMPT, [4, 5, 1], backend="triton")
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("cache", ["hash", "radix"])
def test_an_engine_that_hits(tmp_path: Path, cache: str) -> None:
    """Two prompts with a common beginning, the second one served from the first one's blocks."""
    folder = write_model(tmp_path / "model", num_hidden_layers=1)
    prompts = [[*PROMPT, 11], [*PROMPT, 12, 13]]
    answers = []
    params = SamplingParams(max_tokens=3, ignore_eos=True)
    sizes = {"block_size": 4, "num_blocks": 16, "max_context": 24, "dtype": "float64"}
    for attention in ("torch", "triton"):
        engine = Engine(model=folder, cache=cache, attention=attention, **sizes)
        answers.append([engine.generate([prompt], params)[0] for prompt in prompts])
    assert engine.runner.attention.store is store_kv
    assert isinstance(engine.runner.attention, TritonAttention)
    assert answers[1][1].cached_tokens == 8
    assert [answer.token_ids for answer in answers[1]] == [answer.token_ids for answer in answers[0]]


def test_long_contexts_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU with many processors: decodes go to `paged_decode`, chunks do not."""
    split: list[int] = []
    from minicache.engine.kernels import triton_attention

    def spy(*args: object, num_splits: int) -> torch.Tensor:
        split.append(num_splits)
        return whole(*args, num_splits=num_splits)

    whole = triton_attention.paged_decode
    monkeypatch.setattr(triton_attention, "paged_decode", spy)
    monkeypatch.setattr(triton_attention, "processors", lambda device: 100)
    monkeypatch.setattr("minicache.engine.kernels.paged_decode.SHORTEST_SPLIT", 2)
    model = small_model("llama")
    found = run_chunks(model, PROMPT, [8, 1, 1], backend="triton")
    torch.testing.assert_close(found, run_chunks(model, PROMPT, [10]), rtol=0, atol=1e-9)
    assert split == [4, 4, 4, 8, 8, 8]  # 3 layers, contexts of 9 and 10 in splits of at least 2


def test_the_default_is_triton_on_a_gpu() -> None:
    assert EngineConfig(device="cuda").effective_attention == "triton"
    assert EngineConfig(device="cuda", dtype="float64").effective_attention == "fast_cpu"
    assert EngineConfig().effective_attention == "fast_cpu"
    assert EngineConfig(device="mps").effective_attention == "fast_cpu"
    assert EngineConfig(device="cuda", attention="torch").effective_attention == "torch"
