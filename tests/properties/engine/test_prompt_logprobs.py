"""Log-probabilities of a prompt are complete, with any content of the cache.

A reused position has no logits, so a request that needs them must compute the position. Law: with either cache, after
any earlier requests, in chunks of any size and through preemptions, the answer has a log-probability for each prompt
position after the first requested one, and it equals the one computed for the whole prompt at once (within 1e-9). Reuse
follows vLLM's rule with a hash chain (no tokens) and SGLang's with a radix cache (the tokens before the first requested
position). In both cases the request publishes, so that the next one hits its prompt.
"""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from minicache.engine import SamplingParams
from minicache.engine.answers import TokenLogprobs
from minicache.engine.sampler import token_logprobs
from tests.engine.small_models import run_chunks
from tests.properties.serving import Prompt, assert_same_logprobs, require, serve, tiny_model
from tests.properties.workloads import (
    eager_profile_for,
    eventful,
    make_cache,
    profile_for,
    settings_for,
    small_pool,
    workloads,
)


@st.composite
def asked_for_prompts(draw: st.DrawFn, max_tokens: int, prompt_length: int) -> SamplingParams:
    """Workloads in which most requests ask for log-probabilities of their prompt, from some position on."""
    if draw(st.sampled_from([True, False, False])):
        return SamplingParams(max_tokens=max_tokens)
    start = draw(st.integers(0, prompt_length - 1))
    return SamplingParams(max_tokens=max_tokens, prompt_logprobs=draw(st.integers(0, 3)), prompt_logprobs_start=start)


def said_at_once(prompt: Prompt) -> list[TokenLogprobs | None]:
    """The oracle: the log-probabilities of the whole prompt, computed at once."""
    start, k = prompt.params.prompt_logprobs_start, prompt.params.prompt_logprobs
    assert k is not None
    logits = run_chunks(tiny_model(), prompt.tokens, [len(prompt.tokens)])
    return [None, *token_logprobs(logits[start:-1], prompt.tokens[start + 1 :], k)]


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_every_position_wanted_is_told(kind: str) -> None:
    seen: Counter[str] = Counter()

    def hold(block_size: int, prompts: list[Prompt], spare: int, config) -> None:
        run = serve(prompts, make_cache(kind, small_pool(block_size, prompts, spare), block_size), config)
        for index, prompt in enumerate(prompts):
            output = run.outputs[f"r{index}"]
            if prompt.params.prompt_logprobs is None:
                assert output.prompt_logprobs is None
                continue
            assert_same_logprobs(output.prompt_logprobs, said_at_once(prompt))
            assert output.cached_tokens <= (prompt.params.prompt_logprobs_start if kind == "radix" else 0)
            seen["told"] += len(output.prompt_logprobs or []) - 1
            seen["reused"] += output.cached_tokens
        seen.update(run.seen)

    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        block_size, prompts = data.draw(workloads(asked_for_prompts))
        hold(block_size, prompts, data.draw(st.sampled_from([0, 0, 1, 3])), data.draw(settings_for(kind)))

    block_size, prompts = eventful()
    asked = [{}, {"prompt_logprobs": 1}, {"prompt_logprobs": 0, "prompt_logprobs_start": 9}] * 2
    wanting = [
        replace(prompt, params=SamplingParams(prompt.params.max_tokens, **more))
        for prompt, more in zip(prompts, asked, strict=True)
    ]
    hold(block_size, wanting, 2, eager_profile_for(kind))
    law()
    require(seen, "told", "evictions", "preemptions", *(["reused", "hits"] if kind == "radix" else ["hits"]))


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_what_is_reused_is_each_engines_rule(kind: str) -> None:
    """The same prompt three times: without log-probabilities, with them from a position on, and without them again."""
    seen: Counter[str] = Counter()

    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        block_size, prompts = data.draw(workloads(asked_for_prompts))
        prompt, plain = prompts[0], SamplingParams(max_tokens=1)
        start = prompt.params.prompt_logprobs_start
        assume(prompt.params.prompt_logprobs is not None)
        each = enumerate([plain, prompt.params, plain])
        thrice = [replace(prompt, arrives=100 * i, params=params) for i, params in each]
        run = serve(thrice, make_cache(kind, 500, block_size), data.draw(settings_for(kind)))
        whole = (len(prompt.tokens) - 1) // block_size * block_size
        expected = min(whole, start // block_size * block_size) if kind == "radix" else 0
        assert [run.outputs[f"r{i}"].cached_tokens for i in range(3)] == [0, expected, whole]
        [alone] = serve(
            [replace(prompt, arrives=0)], make_cache(kind, 500, block_size), profile_for(kind)
        ).outputs.values()
        assert alone.cached_tokens == 0
        assert_same_logprobs(run.outputs["r1"].prompt_logprobs, alone.prompt_logprobs)
        seen["found whole"] += whole > 0
        seen["found in part"] += 0 < expected < whole

    law()
    require(seen, "found whole", *(["found in part"] if kind == "radix" else []))
