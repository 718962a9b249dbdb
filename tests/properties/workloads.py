"""Workloads, and the schedulers and pools that serve them, for the laws of this folder."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from minicache.core import EventStream, HashChainCache, NoCache, PrefixCache, RadixCache, SchedulerConfig
from minicache.engine import SamplingParams
from tests.properties.serving import VOCABULARY, Prompt, Run, serve

BLOCK_SIZES = (1, 4, 16)
CACHES = {"hash": HashChainCache, "radix": RadixCache}

tokens = st.integers(0, VOCABULARY - 1)


@st.composite
def sampling(draw: st.DrawFn, max_tokens: int, prompt_length: int, answers: Sequence[int] = (1, 1, 2, 3)):
    """Any sampling parameters: half of them greedy, most without prompt log-probabilities."""
    temperature = draw(st.sampled_from([0.0, 0.0, 0.7, 1.5]))
    told = draw(st.sampled_from([None, None, None, 0, 2]))
    return SamplingParams(
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=draw(st.sampled_from([0, 0, 4])),
        top_p=draw(st.sampled_from([1.0, 1.0, 0.8])),
        min_p=draw(st.sampled_from([0.0, 0.0, 0.05])),
        repetition_penalty=draw(st.sampled_from([1.0, 1.0, 1.3, 0.8])),
        seed=draw(st.integers(0, 999)),
        n=draw(st.sampled_from(answers)) if temperature else 1,
        min_tokens=draw(st.integers(0, min(2, max_tokens))),
        stop=draw(st.lists(st.text(st.sampled_from("\1\2\3"), min_size=1, max_size=2), max_size=1)),
        stop_tokens=draw(st.lists(tokens, max_size=1)),
        ignore_eos=draw(st.booleans()),
        logprobs=draw(st.sampled_from([None, 0, 3])),
        prompt_logprobs=told,
        prompt_logprobs_start=0 if told is None else draw(st.integers(0, prompt_length - 1)),
    )


Asked = Callable[[int, int], st.SearchStrategy[SamplingParams]]  # of max_tokens and the prompt's length


@st.composite
def workloads(draw: st.DrawFn, asked: Asked = sampling) -> tuple[int, list[Prompt]]:
    """Prompts that begin with parts of two stems, some cut at a multiple of the block size, some complete
    repetitions."""
    block_size = draw(st.sampled_from(BLOCK_SIZES))
    stems = [draw(st.lists(tokens, min_size=3 * block_size, max_size=3 * block_size + 4)) for _ in range(2)]
    prompts: list[Prompt] = []
    for _ in range(draw(st.integers(3, 7))):
        stem = draw(st.sampled_from(stems))
        cut = draw(st.one_of(st.sampled_from([block_size, 2 * block_size, 3 * block_size]), st.integers(1, len(stem))))
        tail = draw(st.lists(tokens, max_size=3))
        repeated = draw(st.sampled_from(prompts)).tokens if prompts and draw(st.booleans()) else None
        prompt = repeated or (*stem[:cut], *tail)
        params = draw(asked(draw(st.integers(1, 2 + block_size)), len(prompt)))
        prompts.append(Prompt(prompt, params, arrives=draw(st.integers(0, 8)), priority=draw(st.integers(0, 2))))
    return block_size, prompts


@st.composite
def settings_for(draw: st.DrawFn, kind: str) -> SchedulerConfig:
    """Any settings that the cache allows; one time in three the profile of an engine."""
    chunks = draw(st.sampled_from([3, 8, 64]))
    if draw(st.sampled_from([True, False, False])):
        profiles = [SchedulerConfig.sglang] if kind == "radix" else [SchedulerConfig.vllm, SchedulerConfig.sglang]
        return draw(st.sampled_from(profiles))(max_num_batched_tokens=chunks)
    return SchedulerConfig(
        max_num_batched_tokens=chunks,
        publish_at="compute" if kind == "radix" else draw(st.sampled_from(["schedule", "compute"])),
        publish_outputs=draw(st.sampled_from(["as_filled", "at_finish"])),
        queue_policy=draw(st.sampled_from(["fcfs", "lpm", "priority", "fcfs-retouch"])),
        admission=draw(st.sampled_from(["first_chunk", "full_sequence", "output_reserve"])),
        victim=draw(st.sampled_from(["last", "lowest_priority", "least_output"])),
        preempted_to=draw(st.sampled_from(["front", "back"])),
    )


def profile_for(kind: str) -> SchedulerConfig:
    """The profile of the engine that has this kind of cache."""
    return SchedulerConfig.sglang() if kind == "radix" else SchedulerConfig.vllm()


def eager_profile_for(kind: str) -> SchedulerConfig:
    """The same, but a request is admitted if its first chunk fits, so that others must be preempted later."""
    return replace(profile_for(kind), admission="first_chunk")


def eventful() -> tuple[int, list[Prompt]]:
    """A workload that is known to cause hits, evictions and preemptions in a small pool (with the eager profile)."""
    stem = [(3 * i * i + i) % VOCABULARY for i in range(12)]
    params = [
        SamplingParams(max_tokens=6 + i % 3, temperature=float(i % 2), seed=i, n=1 + i % 2, logprobs=2, ignore_eos=True)
        for i in range(6)
    ]
    return 4, [Prompt((*stem[: 12 - i % 3], i % VOCABULARY), params[i], arrives=i // 3) for i in range(6)]


def small_pool(block_size: int, prompts: list[Prompt], spare: int) -> int:
    """A pool with blocks for the largest request alone, and `spare` more: nearly the smallest that can serve all."""
    largest = max(len(prompt.tokens) + prompt.params.max_tokens for prompt in prompts)
    return -(-largest // block_size) + 1 + spare


def make_cache(kind: str, num_blocks: int, block_size: int) -> Callable[[EventStream], PrefixCache]:
    return lambda events: CACHES[kind](num_blocks, block_size, events=events)


def uncached(block_size: int, prompts: list[Prompt], family: str = "llama") -> Run:
    """The same requests without a cache, in a pool that is large enough for all."""
    return serve(
        prompts, lambda events: NoCache(2_000, block_size, events=events), SchedulerConfig.vllm(), family=family
    )
