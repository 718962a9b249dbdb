"""What a request can ask of an engine: how an answer ends, several answers, log-probabilities, penalties."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from minicache.core.errors import InvalidArgument
from minicache.engine import Engine, SamplingParams
from minicache.engine.errors import NoTokenizer
from minicache.engine.models.store import TINY_FOLDER
from tests.engine.small_models import write_model

PROMPT = "A prefix cache keeps the keys and values of a prompt's beginning."
LENGTH = len(PROMPT)


@pytest.fixture(params=["hash", "radix", "none"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    num_blocks = 1025 if request.param == "radix" else 65
    engine = Engine(model=TINY_FOLDER, cache=request.param, num_blocks=num_blocks)
    yield engine
    engine.cache.check()
    assert not engine.has_unfinished
    assert engine.cache.num_free == engine.cache.capacity, "blocks leaked"
    assert not engine._answers
    assert not engine._params


def answer(engine: Engine, **settings: object):
    return engine.generate([PROMPT], SamplingParams(**({"max_tokens": 40, "ignore_eos": True} | settings)))[0]


# Ends


def test_a_stop_string_ends_the_text_and_is_not_in_it(engine: Engine) -> None:
    free = answer(engine)
    stop = free.text[20:24]
    end = free.text.index(stop)
    stopped = answer(engine, stop=[stop, "not there"])
    assert (stopped.text, stopped.finish_reason, stopped.stop_reason) == (free.text[:end], "stop", stop)
    assert stopped.token_ids == free.token_ids[: end + len(stop)]


def test_a_stop_string_in_a_stream_never_shows(engine: Engine) -> None:
    free = answer(engine)
    stop = free.text[20:24]
    shown = ""
    for output in engine.stream(PROMPT, SamplingParams(max_tokens=40, ignore_eos=True, stop=stop)):
        shown += output.new_text
        assert output.text == shown
        assert free.text.startswith(shown)
    assert shown == free.text[: free.text.index(stop)]


def test_the_last_token_may_complete_a_stop_string(engine: Engine) -> None:
    free = answer(engine, max_tokens=24)
    stopped = answer(engine, max_tokens=24, stop=free.text[-3:])
    assert (stopped.finish_reason, stopped.stop_reason) == ("stop", free.text[-3:])


def test_what_began_like_a_stop_string_comes_at_the_end(engine: Engine) -> None:
    free = answer(engine, max_tokens=24)
    assert answer(engine, max_tokens=24, stop=free.text[-3:] + "\0").text == free.text


def test_a_stop_token_is_a_token_of_the_answer_and_not_of_its_text(engine: Engine) -> None:
    free = answer(engine)
    token = free.token_ids[10]
    end = free.token_ids.index(token)
    stopped = answer(engine, stop_tokens=[token])
    assert (stopped.finish_reason, stopped.stop_reason) == ("stop", token)
    assert (stopped.token_ids, stopped.text) == (free.token_ids[: end + 1], free.text[:end])


def test_min_tokens_come_before_any_end(engine: Engine) -> None:
    free = answer(engine)
    stops = {"stop": list(free.text[:3]), "stop_tokens": free.token_ids[:3]}
    later = answer(engine, min_tokens=8, **stops)
    assert len(later.token_ids) > 8
    assert not set(later.token_ids[:8]) & set(stops["stop_tokens"])
    engine.eos_tokens = frozenset(free.token_ids[:1])
    eos = SamplingParams(max_tokens=9, min_tokens=9)
    assert len(engine.generate([PROMPT], eos)[0].token_ids) == 9
    assert len(engine.generate([PROMPT], SamplingParams(max_tokens=9))[0].token_ids) == 1


def test_a_penalty_against_repetition(engine: Engine) -> None:
    plain, penalised = answer(engine), answer(engine, repetition_penalty=1.8)
    assert len(set(penalised.token_ids)) > len(set(plain.token_ids))


# Several answers


def test_answers_share_the_blocks_of_their_prompt(engine: Engine) -> None:
    engine.submit(PROMPT, SamplingParams(max_tokens=5, temperature=1.0, seed=3, n=3, ignore_eos=True), request_id="a")
    outputs = engine.step() + engine.step()
    tables = engine.cache.snapshot().tables
    assert set(tables) == {"a", "a/1", "a/2"}
    whole = {"hash": (LENGTH - 1) // 16, "radix": LENGTH, "none": 0}[engine.config.cache]
    assert len({table[:whole] for table in tables.values()}) == 1
    rest = [block for table in tables.values() for block in table[whole:]]
    assert len(rest) == len(set(rest))
    while engine.has_unfinished:
        outputs += engine.step()
    last = {output.index: output for output in outputs}
    assert {output.request_id for output in outputs} == {"a"}
    assert last[0].choices == [last[0], last[1], last[2]]
    found = {"hash": 64, "radix": 64, "none": 0}[engine.config.cache]
    assert [choice.cached_tokens for choice in last[0].choices] == [0, found, found]
    assert len({tuple(choice.token_ids) for choice in last[0].choices}) == 3


def test_the_first_answer_is_that_of_one_alone(engine: Engine) -> None:
    drawn = {"temperature": 1.0, "seed": 11, "max_tokens": 9}
    assert answer(engine, **drawn, n=3).token_ids == answer(engine, **drawn).token_ids


def test_a_stream_of_several_answers(engine: Engine) -> None:
    params = SamplingParams(max_tokens=9, temperature=1.0, seed=11, n=2, ignore_eos=True)
    pieces = {0: "", 1: ""}
    for output in engine.stream(PROMPT, params):
        pieces[output.index] += output.new_text
    [whole] = engine.generate([PROMPT], params)
    assert pieces == {choice.index: choice.text for choice in whole.choices}


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_abort_ends_all_answers(engine: Engine, steps: int) -> None:
    params = SamplingParams(max_tokens=9, temperature=1.0, n=3, ignore_eos=True)
    request_id = engine.submit(PROMPT, params)
    for _ in range(steps):
        engine.step()
    aborted = engine.abort(request_id)
    assert [choice.finish_reason for choice in aborted.choices] == ["abort"] * 3
    assert engine.step() == []


def test_the_ids_of_answers_are_taken(engine: Engine) -> None:
    several = SamplingParams(max_tokens=2, temperature=1.0, n=3)
    engine.submit(PROMPT, several, request_id="a")
    for taken in ("a", "a/2"):
        with pytest.raises(InvalidArgument, match=f"request id '{taken}' is in use"):
            engine.submit(PROMPT, request_id=taken)
    engine.submit(PROMPT, SamplingParams(max_tokens=2), request_id="b/1")
    with pytest.raises(InvalidArgument, match="request id 'b' is in use"):
        engine.submit(PROMPT, several, request_id="b")
    while engine.has_unfinished:
        engine.step()


# Log-probabilities


def test_logprobs_of_an_answer(engine: Engine) -> None:
    told = answer(engine, logprobs=3, temperature=1.3, top_k=4, seed=2)
    assert len(told.logprobs) == len(told.token_ids)
    for token, entry in zip(told.token_ids, told.logprobs, strict=True):
        assert entry.chosen.token_id == token
        assert entry.chosen.text == engine.tokenizer.decode([token])
        assert [top.logprob for top in entry.top] == sorted((top.logprob for top in entry.top), reverse=True)
        assert len(entry.top) == 3
    assert answer(engine).logprobs is None
    assert answer(engine, logprobs=0).logprobs[0].top == ()


def test_logprobs_of_a_prompt_are_computed_once_for_all_answers(engine: Engine) -> None:
    answer(engine)  # the prompt is cached now
    asked = {"prompt_logprobs": 2, "temperature": 1.0, "n": 2, "max_tokens": 3}
    whole, part = answer(engine, **asked), answer(engine, **asked, prompt_logprobs_start=40)
    assert len(whole.prompt_logprobs) == LENGTH
    assert [entry.chosen.text for entry in whole.prompt_logprobs[1:]] == list(PROMPT[1:])
    assert [entry.chosen.token_id for entry in part.prompt_logprobs[1:]] == list(PROMPT.encode()[41:])
    assert part.prompt_logprobs[0] is None
    assert whole.choices[1].prompt_logprobs == whole.prompt_logprobs
    assert whole.cached_tokens == 0
    assert part.cached_tokens == (40 if engine.config.cache == "radix" else 0)
    assert whole.choices[1].cached_tokens == (0 if engine.config.cache == "none" else 64)
    assert answer(engine).prompt_logprobs is None


# Bad input


BAD = {
    "stop token": ({"stop_tokens": [259]}, "stop_tokens: 259 is not in the vocabulary of 259"),
    "logprobs": ({"logprobs": 260}, "logprobs must be at most 259, the vocabulary, not 260"),
    "prompt logprobs": ({"prompt_logprobs": 260}, "prompt_logprobs must be at most 259"),
    "start": ({"prompt_logprobs": 1, "prompt_logprobs_start": LENGTH}, "prompt_logprobs_start 65 is not a position"),
    "no end": ({"min_tokens": 1, "stop_tokens": range(259)}, "min_tokens: every token of the vocabulary ends"),
    "context": ({"max_tokens": 4096}, "exceed the context of 4,096"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_the_model_cannot_do_is_refused_and_the_batch_goes_on(engine: Engine, name: str) -> None:
    settings, message = BAD[name]
    engine.submit(PROMPT, SamplingParams(max_tokens=3, ignore_eos=True), request_id="good")
    outputs = engine.step()
    with pytest.raises(ValueError, match=message) as caught:
        engine.submit(PROMPT, SamplingParams(**settings))
    assert "\n" not in str(caught.value)
    while engine.has_unfinished:
        outputs += engine.step()
    assert outputs[-1].finish_reason == "length"


def test_stop_strings_need_a_tokenizer(tmp_path: Path) -> None:
    engine = Engine(model=write_model(tmp_path), num_blocks=5)
    with pytest.raises(NoTokenizer, match="stop: the model has no tokenizer"):
        engine.submit([1, 2], SamplingParams(stop="END"))
    [told] = engine.generate([[1, 2]], SamplingParams(max_tokens=2, logprobs=1, ignore_eos=True))
    assert told.logprobs[0].chosen.text is None


def test_tokens_beyond_the_tokenizer(tmp_path: Path) -> None:
    """Models pad their vocabulary: such a token has no text, and a text that needs one is refused."""
    wide, narrow = Engine(model=write_model(tmp_path / "wide", vocab_size=300), num_blocks=9), Engine(model=TINY_FOLDER)
    wide.tokenizer = narrow.tokenizer
    with torch.inference_mode():
        wide.runner.model.lm_head.weight = torch.roll(wide.runner.model.lm_head.weight, 41, 0)
    outputs = wide.generate([[t] for t in range(20)], SamplingParams(max_tokens=9, ignore_eos=True, logprobs=2))
    assert any(token >= 259 for output in outputs for token in output.token_ids)
    assert all(isinstance(output.text, str) for output in outputs)
    small = Engine(model=write_model(tmp_path / "small"), num_blocks=9)
    small.tokenizer = narrow.tokenizer
    with pytest.raises(InvalidArgument, match="token 100 at position 0 is not in the vocabulary of 61"):
        small.submit("d")
