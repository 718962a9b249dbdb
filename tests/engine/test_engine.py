"""The engine as a program sees it: outputs, streaming, aborts, bad input."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from minicache.core.errors import InvalidArgument, RequestTooLong
from minicache.engine import Engine, EngineConfig, SamplingParams
from minicache.engine.errors import BackendUnavailable, NoTokenizer, PoolTooSmall, UnknownModel
from minicache.engine.kv_cache import block_bytes, blocks_for_budget
from minicache.engine.models import store as model_store
from minicache.text.errors import TokenizerFailed
from tests.engine.small_models import run_chunks, small_model, write_model

PROMPT = "A prefix cache keeps the keys and values of a prompt's beginning."
SHORT = SamplingParams(max_tokens=5, ignore_eos=True)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINICACHE_HOME", str(tmp_path_factory.mktemp("home")))
        yield model_store.resolve("tiny")


@pytest.fixture(params=["hash", "radix", "none"])
def engine(home: Path, request: pytest.FixtureRequest) -> Iterator[Engine]:
    engine = Engine(model=home, cache=request.param, num_blocks=65 if request.param != "radix" else 1025)
    yield engine
    engine.cache.check()
    assert not engine.has_unfinished
    assert engine.cache.num_free == engine.cache.capacity, "blocks leaked"
    assert not engine._answers
    assert not engine._params


def test_an_answer_is_what_the_model_says(tmp_path: Path) -> None:
    """Greedy tokens equal the argmax of logits computed in one go."""
    engine = Engine(model=write_model(tmp_path), num_blocks=20, dtype="float64", max_num_batched_tokens=7)
    prompt = list(range(20))
    [output] = engine.generate([prompt], SamplingParams(max_tokens=10, ignore_eos=True))
    whole = [*prompt, *output.token_ids]
    logits = run_chunks(small_model("llama", torch.float32), whole, [len(whole)])
    assert logits[19:-1].argmax(-1).tolist() == output.token_ids
    assert output.text is None, "this model has no tokenizer"


def test_outputs(engine: Engine) -> None:
    cold, warm = (engine.generate([PROMPT], SHORT)[0] for _ in range(2))
    assert cold.token_ids == warm.token_ids
    assert cold.text == warm.text == engine.tokenizer.decode(cold.token_ids)
    assert (cold.prompt_tokens, cold.finish_reason, len(cold.token_ids)) == (len(PROMPT), "length", 5)
    assert len(PROMPT) == 65
    expected = {"hash": (64, "whole"), "radix": (64, "last_token"), "none": (0, "skipped")}[engine.config.cache]
    assert (warm.cached_tokens, warm.match_end) == expected
    assert cold.cached_tokens == 0
    times = warm.timings
    assert times.submitted < times.first_token < times.last_token == times.finished
    assert times.ttft < times.total
    assert times.decode_rate(5) > 0


def test_streaming_gives_the_same_in_pieces(engine: Engine) -> None:
    [whole] = engine.generate([PROMPT], SamplingParams(max_tokens=30, ignore_eos=True))
    tokens: list[int] = []
    pieces: list[str] = []
    for output in engine.stream(PROMPT, SamplingParams(max_tokens=30, ignore_eos=True)):
        tokens += output.new_token_ids
        pieces.append(output.new_text)
        assert output.token_ids == tokens
        assert output.text == "".join(pieces)
    assert tokens == whole.token_ids
    assert "".join(pieces) == whole.text
    assert len(pieces) == 30


def test_a_stream_that_nobody_reads_is_aborted(engine: Engine) -> None:
    stream = engine.stream(PROMPT, SHORT)
    assert engine.has_unfinished
    del stream
    assert not engine.has_unfinished
    assert engine.cache.num_free == engine.cache.capacity


def test_leaving_a_stream_aborts_the_request(engine: Engine) -> None:
    for output in itertools.islice(engine.stream(PROMPT, SHORT), 2):
        assert not output.finished
    assert not engine.has_unfinished


def test_a_batch_answers_as_each_alone(engine: Engine) -> None:
    prompts = [PROMPT, PROMPT[:30], "Something else.", PROMPT + " And more."]
    params = [SamplingParams(max_tokens=4 + i, temperature=float(i % 2), seed=i, ignore_eos=True) for i in range(4)]
    together = engine.generate(prompts, params)
    alone = [engine.generate([prompt], chosen)[0] for prompt, chosen in zip(prompts, params, strict=True)]
    assert [output.token_ids for output in together] == [output.token_ids for output in alone]


def test_stop_tokens_end_an_answer(engine: Engine) -> None:
    [free] = engine.generate([PROMPT], SHORT)
    stop = free.token_ids[2]
    [stopped] = engine.generate([PROMPT], SamplingParams(max_tokens=5, stop_tokens=[stop], ignore_eos=True))
    assert stopped.finish_reason == "stop"
    assert stopped.token_ids == free.token_ids[: free.token_ids.index(stop) + 1]
    engine.eos_tokens = frozenset({stop})
    assert engine.generate([PROMPT], SamplingParams(max_tokens=5))[0].finish_reason == "stop"
    assert engine.generate([PROMPT], SHORT)[0].finish_reason == "length"


def test_without_a_seed_each_request_draws_its_own(engine: Engine) -> None:
    params = SamplingParams(max_tokens=12, temperature=3.0, ignore_eos=True)
    first, second = engine.generate([PROMPT, PROMPT], params)
    assert first.token_ids != second.token_ids


def test_abort_returns_what_there_was(engine: Engine) -> None:
    waiting = engine.submit("never started", SHORT)
    assert engine.abort(waiting).finish_reason == "abort"
    running = engine.submit(PROMPT, SHORT)
    other = engine.submit(PROMPT, SHORT, request_id="other")
    engine.step()
    aborted = engine.abort(running)
    assert (aborted.finish_reason, len(aborted.token_ids), aborted.finished) == ("abort", 1, True)
    assert engine.abort(running) is None
    while engine.has_unfinished:
        outputs = engine.step()
        assert [output.request_id for output in outputs] == [other]
    assert engine.step() == []


def test_a_failed_step_is_tried_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    [expected] = engine.generate([PROMPT], SHORT)
    forward, calls = engine.runner.model.forward, itertools.count()

    def fails_once(*arguments: object) -> torch.Tensor:
        if next(calls) == 2:
            raise RuntimeError("out of memory")
        return forward(*arguments)

    monkeypatch.setattr(engine.runner.model, "forward", fails_once)
    engine.submit(PROMPT, SHORT)
    outputs = engine.step() + engine.step()
    with pytest.raises(RuntimeError, match="out of memory"):
        engine.step()
    engine.cache.check()
    while engine.has_unfinished:
        outputs += engine.step()
    assert outputs[-1].token_ids == expected.token_ids


def test_generate_leaves_nothing_queued_when_it_raises(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgument, match="empty prompt"):
        engine.generate([PROMPT, []], SHORT)
    assert not engine.has_unfinished
    monkeypatch.setattr(engine.runner, "run", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        engine.generate([PROMPT], SHORT)
    assert not engine.has_unfinished


BAD_INPUT = {
    "empty text": (lambda e: e.submit(""), InvalidArgument, "empty prompt"),
    "no tokens": (lambda e: e.submit([]), InvalidArgument, "empty prompt"),
    "not a prompt": (lambda e: e.submit(5), InvalidArgument, "prompt must be text or token ids in a list, not 5"),
    "bytes": (lambda e: e.submit(b"abc"), InvalidArgument, "prompt must be text or token ids in a list, not b'abc'"),
    "no prompts": (lambda e: e.generate(None), InvalidArgument, "prompts must be a list of prompts, not None"),
    "bytes for a batch": (lambda e: e.generate(b"abc"), InvalidArgument, "token ids in a list, not b'abc'"),
    "a set": (lambda e: e.submit({1, 2}), InvalidArgument, "token ids in a list, not {1, 2}"),
    "a table": (lambda e: e.submit({1: 2}), InvalidArgument, "token ids in a list, not {1: 2}"),
    "ids of one prompt": (lambda e: e.generate([1, 2]), InvalidArgument, "token ids in a list, not 1"),
    "token too large": (
        lambda e: e.submit([1, 2, 259]),
        InvalidArgument,
        "token 259 at position 2 is not in the vocab",
    ),
    "negative token": (lambda e: e.submit([-1]), InvalidArgument, "token -1 at position 0 is not in the vocab"),
    "not a token": (lambda e: e.submit([1, "a"]), InvalidArgument, "token 'a' at position 1 must be an integer"),
    "a fraction": (lambda e: e.submit([1.5]), InvalidArgument, "token 1.5 at position 0 must be an integer"),
    "beyond the context": (lambda e: e.submit([1] * 4090), RequestTooLong, "exceed the context of 4,096"),
    "beyond the pool": (lambda e: e.submit([1] * 2000), RequestTooLong, "raise num_blocks, or shorten the prompt"),
    "id in use": (lambda e: e.submit("again", request_id="good"), InvalidArgument, "id 'good' is in use"),
    "empty id": (lambda e: e.submit("a", request_id=""), InvalidArgument, "id must be a non-empty text"),
    "bad params": (lambda e: e.submit("a", {"max_tokens": 2}), InvalidArgument, "params must be SamplingParams"),
    "bad namespace": (lambda e: e.submit("a", namespace="b"), InvalidArgument, "namespace must be a Namespace"),
    "too few params": (
        lambda e: e.generate(["a", "b"], [SHORT]),
        InvalidArgument,
        "2 prompts need 2 Sampling",
    ),
    "bad stream": (lambda e: e.stream([]), InvalidArgument, "empty prompt"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_refused_and_the_others_go_on(engine: Engine, name: str) -> None:
    act, error, message = BAD_INPUT[name]
    engine.submit(PROMPT, SHORT, request_id="good")
    outputs = engine.step()
    with pytest.raises(error, match=message) as caught:
        act(engine)
    assert "\n" not in str(caught.value)
    while engine.has_unfinished:
        outputs += engine.step()
    assert outputs[-1].request_id == "good"
    assert outputs[-1].finish_reason == "length"


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"block_size": 0}, InvalidArgument, "block_size must be at least 1, not 0"),
        ({"num_blocks": 1}, InvalidArgument, "num_blocks must be at least 2"),
        ({"num_blocks": 10, "memory_budget": 10}, InvalidArgument, "num_blocks or memory_budget, not both"),
        (
            {"memory_budget": 10_000},
            PoolTooSmall,
            "holds 0 tokens of KV .* but 1 are needed: give .* bytes",
        ),
        (
            {"memory_budget": 70_000, "max_context": 50},
            PoolTooSmall,
            "but 50 are needed: give .* bytes",
        ),
        ({"cache": "lru"}, InvalidArgument, "cache must be one of hash, radix, none, not 'lru'"),
        ({"cache": "radix", "profile": "vllm"}, InvalidArgument, "profile vllm publishes KV when it is scheduled"),
        ({"dtype": "int4"}, InvalidArgument, "dtype must be one of"),
        ({"device": "tpu"}, InvalidArgument, "device must be one of cpu, cuda, mps"),
        ({"attention": "flash"}, InvalidArgument, "attention must be one of torch, fast_cpu, triton, reference"),
        ({"max_context": 5000}, InvalidArgument, "max_context 5,000 exceeds the model's context of 4,096"),
        (
            {"attention": []},
            InvalidArgument,
            "attention must be one of torch, fast_cpu, triton, reference, not",
        ),
        ({"events": 5}, InvalidArgument, "events must be a function to call with each event, not 5"),
        ({"exact": "no"}, InvalidArgument, "exact must be one of True, False, not 'no'"),
        ({"max_num_batched_tokens": 0}, InvalidArgument, "max_num_batched_tokens must be at least 1"),
        ({"model": "nothing"}, UnknownModel, "unknown model 'nothing'"),
    ],
)
def test_bad_settings_are_named(home: Path, settings: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Engine(**({"model": home} | settings))


def test_a_config_and_settings_together_are_refused(home: Path) -> None:
    with pytest.raises(InvalidArgument, match="an EngineConfig or settings, not both: cache"):
        Engine(EngineConfig(model=home), cache="radix")


@pytest.mark.parametrize("config", ["tiny", {"model": "tiny"}])
def test_what_is_no_config_is_refused(config: object) -> None:
    with pytest.raises(InvalidArgument, match=r"config must be an EngineConfig, not .*: or give settings"):
        Engine(config)  # type: ignore[arg-type]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_device_is_named(home: Path) -> None:
    with pytest.raises(BackendUnavailable, match="device cuda is not available"):
        Engine(model=home, device="cuda")


def test_a_model_without_a_tokenizer_takes_token_ids_only(tmp_path: Path) -> None:
    engine = Engine(model=write_model(tmp_path), num_blocks=5)
    with pytest.raises(NoTokenizer, match="give the prompt as token ids"):
        engine.submit("text")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(TokenizerFailed, match=r"tokenizer\.json is not a tokenizer"):
        Engine(model=tmp_path, num_blocks=5)


@pytest.mark.parametrize("block_size", [1, 16])
def test_a_budget_buys_blocks(block_size: int) -> None:
    shape = small_model().config
    size = block_bytes(shape, block_size, torch.float32)
    assert size == 2 * 3 * block_size * 2 * 10 * 4
    assert blocks_for_budget(shape, block_size, torch.float32, 7 * size) == 7
    assert blocks_for_budget(shape, block_size, torch.float32, 7 * size, min_tokens=6 * block_size) == 7
    with pytest.raises(PoolTooSmall, match=f"holds {6 * block_size} tokens .* give {8 * size:,} bytes"):
        blocks_for_budget(shape, block_size, torch.float32, 8 * size - 1, min_tokens=6 * block_size + 1)
