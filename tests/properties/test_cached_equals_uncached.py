"""A prefix cache never changes an answer.

Law: whatever requests come, in whatever order, with either cache, at any block size, in a pool so small that blocks are
evicted and requests preempted, in chunks of any size, under either time of publishing, with a model of any family:
every request gets the same answers as without a cache, from the same logits (within 1e-9 in float64), and is told the
same log-probabilities. That holds for answers that are drawn, filtered, penalised, stopped by a string or a token, or
come several to a prompt; and it holds when requests are aborted, between two steps or in the middle of one, when the
victim of a preemption was scheduled in that very step, and when the model fails: nothing that was not computed is ever
found, and no block leaks.
"""

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.core import SchedulerConfig, StepPlan
from minicache.engine import Engine
from tests.properties.serving import FAMILIES, ModelFailed, Prompt, assert_same, require, serve
from tests.properties.workloads import (
    eager_profile_for,
    eventful,
    make_cache,
    settings_for,
    small_pool,
    uncached,
    workloads,
)


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_every_answer_is_the_same_with_a_cache(kind: str) -> None:
    seen: Counter[str] = Counter()

    def hold(block_size: int, prompts: list[Prompt], spare: int, config: SchedulerConfig, family: str) -> None:
        cache = make_cache(kind, small_pool(block_size, prompts, spare), block_size)
        run = serve(prompts, cache, config, family=family)
        assert_same(run, uncached(block_size, prompts, family))
        seen.update(run.seen)
        seen[family] += run.seen["hits"]

    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        spare = data.draw(st.sampled_from([0, 0, 1, 3]))
        hold(*data.draw(workloads()), spare, data.draw(settings_for(kind)), data.draw(st.sampled_from(list(FAMILIES))))

    for family in FAMILIES:
        hold(*eventful(), spare=2, config=eager_profile_for(kind), family=family)
    law()
    require(seen, "hits", "evictions", "preemptions", "shared blocks", "stops", *FAMILIES)


class Trouble:
    """At some moments the model fails, before it has computed anything or after; at some a request is aborted."""

    def __init__(self, choices: Iterator[str]) -> None:
        self.choices = choices

    def __call__(self, engine: Engine, plan: StepPlan | None, when: str) -> None:
        choice = next(self.choices)
        if choice == "fail" and plan is not None:
            raise ModelFailed
        if choice == "abort" and plan is None and engine.has_unfinished:
            engine.abort(list(engine._samples)[-1])
        if choice == "abort" and plan:
            request = plan.scheduled[-1].request
            if not request.status.is_final:
                engine.scheduler.abort(request.id)


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_nothing_uncomputed_is_found_after_aborts_and_failures(kind: str) -> None:
    seen: Counter[str] = Counter()

    def hold(block_size: int, prompts: list[Prompt], spare: int, config: SchedulerConfig, troubles: list[str]) -> None:
        cache = make_cache(kind, small_pool(block_size, prompts, spare), block_size)
        run = serve(prompts, cache, config, Trouble(itertools.chain(troubles, itertools.repeat(""))))
        assert_same(run, uncached(block_size, prompts))
        seen.update(run.seen)

    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        spare = data.draw(st.sampled_from([0, 0, 1, 3]))
        troubles = data.draw(st.lists(st.sampled_from(["", "", "", "", "fail", "abort"]), max_size=30))
        hold(*data.draw(workloads()), spare, data.draw(settings_for(kind)), troubles)

    hold(
        *eventful(), spare=2, config=eager_profile_for(kind), troubles=["", "", "", "fail", "", "", "", "abort", "fail"]
    )
    law()
    require(seen, "hits", "evictions", "preemptions", "failures", "aborts")
