"""KV computed with old weights is never used again.

Law: each token is drawn from the logits that the weights of this moment give for all tokens before it (within 1e-9),
computed at once and without a cache, however often the weights change between two steps. No answer changes, however
often the cache is reset.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, repeat

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minicache.core import StepPlan
from minicache.engine import Engine
from tests.engine.small_models import run_chunks
from tests.properties.serving import Prompt, assert_same, require, serve, tiny_model, weights
from tests.properties.workloads import (
    eager_profile_for,
    eventful,
    make_cache,
    settings_for,
    small_pool,
    uncached,
    workloads,
)

SEEDS = (7, 8)


class Updates:
    """Changes the weights between some steps, and records the weights with which each token's logits were computed."""

    def __init__(self, choices: Iterator[bool]) -> None:
        self.choices = choices
        self.era = 0
        self.eras: dict[tuple[str, int], list[int]] = {}

    def __call__(self, engine: Engine, plan: StepPlan | None, when: str) -> None:
        if when == "between" and next(self.choices):
            self.era += 1
            engine.update_weights(weights("llama", SEEDS[self.era % 2]))
            assert engine.cache.num_free == engine.cache.capacity
        if when == "after" and plan:
            for item in plan.scheduled:
                if item.samples:
                    self.eras.setdefault((item.request.id, item.request.num_tokens), []).append(self.era)


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_every_token_is_of_the_weights_of_its_moment(kind: str) -> None:
    seen: Counter[str] = Counter()

    def hold(block_size: int, prompts: list[Prompt], config, choices: list[bool]) -> None:
        updates = Updates(chain(choices, repeat(False)))
        run = serve(prompts, make_cache(kind, small_pool(block_size, prompts, 3), block_size), config, updates)
        for name, output in run.tokens.items():
            prompt = prompts[int(name.partition("/")[0][1:])].tokens
            whole = [*prompt, *output]
            by_weights = [run_chunks(tiny_model("llama", seed), whole, [len(whole)]) for seed in SEEDS]
            for position in range(len(prompt), len(whole)):
                for row, era in zip(run.logits[name, position], updates.eras[name, position], strict=True):
                    torch.testing.assert_close(row, by_weights[era % 2][position - 1], rtol=0, atol=1e-9)
                    seen["new weights"] += era > 0
        seen.update(run.seen)
        seen["updates"] += updates.era

    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        choices = data.draw(st.lists(st.sampled_from([False, False, True]), max_size=20))
        hold(*data.draw(workloads()), data.draw(settings_for(kind)), choices)

    hold(*eventful(), eager_profile_for(kind), [False, False, True, False, False, True])
    law()
    require(seen, "updates", "new weights", "hits", "preemptions")


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_an_emptied_cache_changes_no_answer(kind: str) -> None:
    seen: Counter[str] = Counter()

    def hold(block_size: int, prompts: list[Prompt], config, choices: list[bool]) -> None:
        moments = chain(choices, repeat(False))

        def empty(engine: Engine, plan: StepPlan | None, when: str) -> None:
            if when == "between" and next(moments):
                running = bool(engine.scheduler.running)
                assert engine.reset_prefix_cache() is not running
                assert engine.reset_prefix_cache(preempt_running=True)
                seen["resets"] += 1
                seen["resets under way"] += running

        run = serve(prompts, make_cache(kind, small_pool(block_size, prompts, 3), block_size), config, empty)
        assert_same(run, uncached(block_size, prompts))
        seen.update(run.seen)

    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        choices = data.draw(st.lists(st.sampled_from([False, False, True]), max_size=20))
        hold(*data.draw(workloads()), data.draw(settings_for(kind)), choices)

    hold(*eventful(), eager_profile_for(kind), [False, False, True, False, False, True])
    law()
    require(seen, "resets", "resets under way", "hits", "preemptions")
