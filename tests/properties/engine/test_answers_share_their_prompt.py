"""Several answers to one prompt equal answers that were asked for one by one, and share one copy of the prompt.

Law: answer i of n equals the answer to the same prompt asked for alone with seed i; the first answer has the given
seed. The prompt is computed once: with either cache, for all chunk sizes and both times of publishing, the other
answers hit every reusable token of it. While two answers are generated, their block tables name the same blocks for
this part of the prompt (with a radix cache also for a whole last block, because duplicates are freed), and after it no
common block except for equal tokens. Without a cache they share no block.
"""

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.core import NoCache, StepPlan
from minicache.engine import Engine, SamplingParams
from tests.properties.serving import Prompt, require, serve
from tests.properties.workloads import BLOCK_SIZES, make_cache, profile_for, settings_for, tokens, uncached


@st.composite
def prompts_with_answers(draw: st.DrawFn) -> tuple[int, Prompt]:
    block_size = draw(st.sampled_from(BLOCK_SIZES))
    params = SamplingParams(
        max_tokens=draw(st.integers(1, 2 + block_size)),
        temperature=draw(st.sampled_from([0.7, 1.5])),
        seed=draw(st.integers(0, 999)),
        n=draw(st.integers(2, 4)),
    )
    return block_size, Prompt(
        tuple(draw(st.lists(tokens, min_size=1 + block_size // 2, max_size=3 * block_size + 2))), params
    )


class Tables:
    """Watches the blocks that the block tables of unfinished answers have in common."""

    def __init__(self, prompt: Prompt, block_size: int, kind: str) -> None:
        self.block_size = block_size
        self.prompt_length = len(prompt.tokens)
        self.num_shared = (self.prompt_length - (kind == "hash")) // block_size
        self.seen: Counter[str] = Counter()

    def __call__(self, engine: Engine, plan: StepPlan | None, when: str) -> None:
        writing = [item for item in plan.scheduled if item.start >= self.prompt_length] if plan else []
        for one, other in itertools.combinations(writing if when == "before" else [], 2):
            assert one.block_table[: self.num_shared] == other.block_table[: self.num_shared]
            for block in set(one.block_table) & set(other.block_table):
                index = one.block_table.index(block)
                assert other.block_table.index(block) == index
                end = (index + 1) * self.block_size
                assert one.request.tokens[:end] == other.request.tokens[:end]
            self.seen["writing together"] += 1
            self.seen["shared blocks"] += self.num_shared


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_answers_stand_alone_over_one_prompt(kind: str) -> None:
    seen: Counter[str] = Counter()

    @given(asked=prompts_with_answers(), config=settings_for(kind))
    def law(asked: tuple[int, Prompt], config) -> None:
        block_size, prompt = asked
        watch = Tables(prompt, block_size, kind)
        reusable = (len(prompt.tokens) - 1) // block_size * block_size
        run = serve([prompt], make_cache(kind, 500, block_size), config, watch)
        choices = run.outputs["r0"].choices
        params = [replace(prompt.params.of_sample(choice.index), n=1) for choice in choices]
        alone = uncached(block_size, [replace(prompt, params=each) for each in params])
        for choice in choices:
            assert choice.token_ids == alone.tokens[f"r{choice.index}"]
            assert choice.cached_tokens == (reusable if choice.index else 0)
        assert prompt.params.of_sample(0) == prompt.params
        seen.update(watch.seen)

    law()
    require(seen, "writing together", "shared blocks")


def test_without_a_cache_nothing_is_shared() -> None:
    prompt = Prompt(tuple(range(9)), SamplingParams(max_tokens=3, temperature=1.0, seed=1, n=3))
    run = serve([prompt], lambda events: NoCache(50, 4, events=events), profile_for("hash"))
    assert run.seen["shared blocks"] == 0
    assert [choice.cached_tokens for choice in run.outputs["r0"].choices] == [0, 0, 0]
