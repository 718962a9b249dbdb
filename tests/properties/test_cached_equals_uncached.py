"""A prefix cache never changes an answer.

Law: whatever requests come, in whatever order, with either cache, at any block size, in a pool so small that blocks are
evicted and requests preempted, under either time of publishing: every request gets the same tokens as without a cache,
from the same logits (within 1e-9 in float64). That holds too when requests are aborted in the middle of a step, when
the victim of a preemption was scheduled in that very step, and when the model fails: nothing that was not computed is
ever found, and no block leaks.
"""

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minicache.core import (
    EventStream,
    HashChainCache,
    NoCache,
    PrefixCache,
    RadixCache,
    Scheduler,
    SchedulerConfig,
    StepPlan,
)
from tests.properties.serving import VOCABULARY, ModelFailed, Prompt, Run, serve

BLOCK_SIZES = (1, 4, 16)
seen: Counter[str] = Counter()

tokens = st.integers(0, VOCABULARY - 1)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[int, list[Prompt]]:
    """Prompts that begin with parts of two stems, some cut at multiples of the block size, some repeated whole."""
    block_size = draw(st.sampled_from(BLOCK_SIZES))
    stems = [draw(st.lists(tokens, min_size=3 * block_size, max_size=3 * block_size + 4)) for _ in range(2)]
    prompts: list[Prompt] = []
    for _ in range(draw(st.integers(3, 7))):
        stem = draw(st.sampled_from(stems))
        cut = draw(st.one_of(st.sampled_from([block_size, 2 * block_size, 3 * block_size]), st.integers(1, len(stem))))
        tail = draw(st.lists(tokens, max_size=3))
        repeated = draw(st.sampled_from(prompts)).tokens if prompts and draw(st.booleans()) else None
        prompts.append(
            Prompt(
                tokens=repeated or (*stem[:cut], *tail),
                max_tokens=draw(st.integers(1, 2 + block_size)),
                arrives=draw(st.integers(0, 8)),
                priority=draw(st.integers(0, 2)),
                temperature=draw(st.sampled_from([0.0, 0.0, 1.0])),
            )
        )
    return block_size, prompts


@st.composite
def settings_for(draw: st.DrawFn, kind: str) -> SchedulerConfig:
    """Any scheduler that the cache allows."""
    return SchedulerConfig(
        max_num_batched_tokens=draw(st.sampled_from([3, 8, 64])),
        publish_at="compute" if kind == "radix" else draw(st.sampled_from(["schedule", "compute"])),
        publish_outputs=draw(st.sampled_from(["as_filled", "at_finish"])),
        queue_policy=draw(st.sampled_from(["fcfs", "lpm", "priority", "fcfs-retouch"])),
        admission=draw(st.sampled_from(["first_chunk", "full_sequence", "output_reserve"])),
        victim=draw(st.sampled_from(["last", "lowest_priority", "least_output"])),
        preempted_to=draw(st.sampled_from(["front", "back"])),
    )


def small_pool(block_size: int, prompts: list[Prompt], spare: int) -> int:
    """Blocks for the largest request alone, and `spare` more: the least that can serve all, nearly."""
    largest = max(len(prompt.tokens) + prompt.max_tokens for prompt in prompts)
    return -(-largest // block_size) + 1 + spare


def uncached(block_size: int, prompts: list[Prompt]) -> Run:
    """The same requests in a pool with room for all, and no cache."""
    return serve(prompts, lambda events: NoCache(2_000, block_size, events=events), SchedulerConfig.vllm())


def cached(kind: str, num_blocks: int, block_size: int, events: EventStream) -> PrefixCache:
    if kind == "hash":
        return HashChainCache(num_blocks, block_size, events=events)
    return RadixCache(num_blocks, block_size, events=events)


def assert_same(run: Run, control: Run, aborted: frozenset[str] = frozenset()) -> None:
    for request, output in control.tokens.items():
        got = run.tokens[request]
        assert got == (output[: len(got)] if request in aborted else output), request
    for key, row in run.logits.items():
        assert not row.isnan().any(), f"{key} has read KV that was never computed"
        torch.testing.assert_close(row, control.logits[key], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["hash", "radix"])
@given(data=st.data())
def test_every_answer_is_the_same_with_a_cache(kind: str, data: st.DataObject) -> None:
    block_size, prompts = data.draw(workloads())
    num_blocks = small_pool(block_size, prompts, data.draw(st.integers(0, 3)))
    config = data.draw(settings_for(kind))
    run = serve(prompts, lambda events: cached(kind, num_blocks, block_size, events), config)
    assert_same(run, uncached(block_size, prompts))
    seen.update({f"{kind} {what}": count for what, count in run.seen.items()})


class Trouble:
    """In some steps the model fails, before it has computed anything or after; in some a request is aborted."""

    def __init__(self, choices: Iterator[str]) -> None:
        self.choices = choices
        self.aborted: set[str] = set()

    def __call__(self, scheduler: Scheduler, plan: StepPlan, when: str) -> None:
        choice = next(self.choices)
        if choice == "fail":
            raise ModelFailed
        if choice == "abort" and plan.scheduled:
            request = plan.scheduled[-1].request
            if not request.status.is_final:
                scheduler.abort(request.id)
                self.aborted.add(request.id)


@pytest.mark.parametrize("kind", ["hash", "radix"])
@given(data=st.data())
def test_nothing_uncomputed_is_found_after_aborts_and_failures(kind: str, data: st.DataObject) -> None:
    block_size, prompts = data.draw(workloads())
    num_blocks = small_pool(block_size, prompts, data.draw(st.integers(0, 3)))
    config = data.draw(settings_for(kind))
    troubles = data.draw(st.lists(st.sampled_from(["", "", "", "fail", "abort"]), max_size=20))
    trouble = Trouble(itertools.chain(troubles, itertools.repeat("")))
    run = serve(prompts, lambda events: cached(kind, num_blocks, block_size, events), config, trouble)
    assert_same(run, uncached(block_size, prompts), frozenset(trouble.aborted))
    seen.update({f"{kind} {what}": count for what, count in run.seen.items()})
    seen["aborts"] += len(trouble.aborted)


def test_the_properties_above_were_not_vacuous() -> None:
    """Runs after them: each cache was hit, evicted from and preempted under."""
    if not seen:
        pytest.skip("the properties did not run in this process; run the whole file")
    for what in ("hits", "evictions", "preemptions", "failures"):
        for kind in ("hash", "radix"):
            assert seen[f"{kind} {what}"], f"no {what} with {kind}: {dict(seen)}"
    assert seen["aborts"]
