"""In exact mode a cache hit changes nothing, bit for bit.

Law: whatever was cached, however a prompt was cut into chunks, alone or in a batch, preempted and resumed: every logit
has the same bits as in a cold run without a cache, in float64, float32 and bfloat16, with a Llama-like and a Qwen3-like
model. Keys and values written by decode have the same bits as those written by prefill.

And the law is not empty: without exact mode, in float32, the bits do differ.
"""

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minicache.core import EventStream, HashChainCache, NoCache, PrefixCache, RadixCache, SchedulerConfig, StepPlan
from minicache.engine import SamplingParams
from minicache.engine.batch import Batch
from minicache.engine.exact import ExactModel
from minicache.engine.kv_cache import KVCache
from minicache.engine.loader import build_model
from minicache.engine.model import Model
from minicache.engine.model_config import ModelConfig
from minicache.engine.weights import MemoryWeights
from tests.properties.serving import CONFIG, FAMILIES, VOCABULARY, Prompt, Run, require, serve

DTYPES = (torch.float64, torch.float32, torch.bfloat16)
# Odd sizes, so that nothing is a multiple of a vector register by luck.
SHAPE = {
    "hidden_size": 72,
    "intermediate_size": 104,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 12,
}


def model(family: str, dtype: torch.dtype) -> Model:
    from minicache.engine.tiny import random_weights

    config = ModelConfig.from_hf({**CONFIG, **SHAPE, "architectures": [FAMILIES[family]]})
    return build_model(config, MemoryWeights(random_weights(config, seed=5, dtype=torch.float64), dtype))


@pytest.fixture(scope="module", params=[(f, d) for f in ("llama", "qwen3") for d in DTYPES], ids=str)
def plain(request: pytest.FixtureRequest) -> Model:
    return model(*request.param)


@pytest.fixture(scope="module", params=[True, False], ids=["stacked", "tile by tile"])
def exact(request: pytest.FixtureRequest, plain: Model) -> ExactModel:
    found = ExactModel(plain)
    if request.param:
        return found  # stacked or not, as this machine allows
    return ExactModel(plain, stacked=False)


def prompts() -> list[Prompt]:
    """Shared stems, cut at and beside multiples of the tile and of the block sizes, one prompt twice."""
    stem = [(3 * i * i + i) % VOCABULARY for i in range(40)]
    cuts = (40, 32, 17, 40, 16, 33)
    return [
        Prompt((*stem[:cut], *([turn % VOCABULARY] * (turn % 3))), SamplingParams(max_tokens=6), arrives=2 * turn)
        for turn, cut in enumerate(cuts)
    ]


def run(exact: Model, make: Callable[[EventStream], PrefixCache], config: SchedulerConfig) -> Run:
    return serve(prompts(), make, config, model=exact)


def assert_same_bits(ours: Run, cold: Run) -> None:
    assert ours.tokens == cold.tokens
    for key, rows in ours.logits.items():
        for row in rows:
            assert torch.equal(row, cold.logits[key][0]), key


def different_rows(ours: Run, cold: Run) -> int:
    return sum(not torch.equal(row, cold.logits[key][0]) for key, rows in ours.logits.items() for row in rows)


def test_every_way_to_the_same_logits(exact: ExactModel) -> None:
    cold = run(exact, lambda events: NoCache(400, 16, events=events), SchedulerConfig.vllm(max_num_seqs=1))
    seen: Counter[str] = Counter()
    for block_size in (1, 4, 16):
        room = -(-48 // block_size) + 3
        for chunk in (7, 64):
            eager = {"admission": "first_chunk", "max_num_batched_tokens": chunk}
            ways = [
                (HashChainCache, SchedulerConfig.vllm(**eager)),
                (HashChainCache, SchedulerConfig.vllm(publish_at="compute", **eager)),
                (RadixCache, SchedulerConfig.sglang(**eager)),
            ]
            for kind, config in ways:
                ours = run(exact, lambda events: kind(room, block_size, events=events), config)  # noqa: B023
                assert_same_bits(ours, cold)
                seen.update(ours.seen)
    require(seen, "hits", "evictions", "preemptions")


def keys_and_values(exact: ExactModel, tokens: torch.Tensor, chunks: list[int], table: list[int], size: int) -> list:
    """What is cached for each position after computing `tokens` in these chunks, in every layer."""
    kv_cache = KVCache(exact.config, max(table) + 1, size, exact.dtype)
    start = 0
    for chunk in chunks:
        exact.forward(tokens[start : start + chunk], kv_cache, Batch.build([(start, chunk, table)], size))
        start += chunk
    positions = torch.arange(len(tokens))
    slots = torch.tensor(table)[positions // size] * size + positions % size
    return [layer.flatten(0, 1)[slots] for layer in (*kv_cache.k, *kv_cache.v)]


@given(data=st.data())
def test_decode_writes_what_prefill_writes(exact: ExactModel, data: st.DataObject) -> None:
    tokens = torch.tensor(data.draw(st.lists(st.integers(0, VOCABULARY - 1), min_size=2, max_size=40)))
    chunks, left = [], len(tokens)
    while left:
        chunks.append(data.draw(st.integers(1, left)))
        left -= chunks[-1]
    size = data.draw(st.sampled_from([1, 4, 16]))
    table = data.draw(st.permutations(range(1, 2 + len(tokens) // size)))
    at_once = keys_and_values(exact, tokens, [len(tokens)], list(range(1, 2 + len(tokens) // 4)), 4)
    one_by_one = keys_and_values(exact, tokens, chunks, table, size)
    for a, b in zip(at_once, one_by_one, strict=True):
        assert torch.equal(a, b)


def test_without_exact_mode_the_bits_differ() -> None:
    """In float32 a hit, or another chunk size, changes the shapes of the products and with them the rounding."""
    fast = model("llama", torch.float32)
    cold = run(fast, lambda events: NoCache(400, 16, events=events), SchedulerConfig.vllm(max_num_seqs=1))
    warm = run(fast, lambda events: HashChainCache(400, 16, events=events), SchedulerConfig.vllm())
    assert different_rows(warm, cold)


@pytest.mark.model
def test_smollm2_answers_with_the_same_bits_after_a_hit() -> None:
    """The real model, short prompts: cold without a cache, warm with either."""
    from minicache.engine import Engine

    system = "You are the support bot of a shop for walking and cycling gear. Answer in one friendly sentence. "
    texts = [system + "Where is my parcel?", system + "Can I send it back?"]

    def answers(cache: str) -> list[torch.Tensor]:
        engine = Engine(model="smollm2", cache=cache, num_blocks=200, exact=True)
        seen: list[torch.Tensor] = []
        inner = engine.runner.logits

        def recorded(plan: StepPlan, hidden: torch.Tensor) -> torch.Tensor:
            seen.append(inner(plan, hidden))
            return seen[-1]

        engine.runner.logits = recorded  # type: ignore[method-assign]
        outputs = [engine.generate([text], SamplingParams(max_tokens=3))[0] for text in (*texts, *texts)]
        assert (sum(output.cached_tokens or 0 for output in outputs) > 0) == (cache != "none")
        return seen

    cold = answers("none")
    for cache in ("hash", "radix"):
        for ours, theirs in zip(answers(cache), cold, strict=True):
            assert torch.equal(ours, theirs)
