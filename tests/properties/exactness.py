"""The parts of the tests of exact mode: small models, a workload, many ways to serve it, and a comparison of bits."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy

import torch

from minicache.core import EventStream, HashChainCache, NoCache, PrefixCache, RadixCache, SchedulerConfig
from minicache.engine import SamplingParams
from minicache.engine.attention import Attention, Batch
from minicache.engine.exact import TileAttention, TiledRows, can_stack
from minicache.engine.kv_cache import KVCache
from minicache.engine.model import Model
from minicache.engine.model_config import ModelConfig
from minicache.engine.models.loader import MemoryWeights, build_model
from tests.engine.random_weights import random_weights
from tests.properties.serving import CONFIG, FAMILIES, VOCABULARY, Prompt, Run, serve

# Odd sizes, so that nothing is a multiple of a vector register by luck.
SHAPE = {
    "hidden_size": 72,
    "intermediate_size": 104,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 12,
}
Make = Callable[[EventStream], PrefixCache]


def model(family: str, dtype: torch.dtype, **changes: int) -> Model:
    config = ModelConfig.from_hf({**CONFIG, **FAMILIES[family], **SHAPE, **changes})
    return build_model(config, MemoryWeights(random_weights(config, seed=5, dtype=torch.float64), dtype))


def exact_model(model: Model, stacked: bool | None = None) -> Model:
    """`model` in exact mode. `stacked=None`: tiles are stacked if this machine allows it."""
    found = copy(model)
    found.rows = TiledRows(16, can_stack(model) if stacked is None else stacked)
    return found


def prompts(cuts: Sequence[int] = (40, 32, 17, 40, 16, 33), max_tokens: int = 6) -> list[Prompt]:
    """Prompts with shared stems, cut at and next to multiples of the tile and of the block sizes; one prompt comes
    twice."""
    stem = [(3 * i * i + i) % VOCABULARY for i in range(40)]
    asked = SamplingParams(max_tokens=max_tokens)
    return [
        Prompt((*stem[:cut], *([turn % VOCABULARY] * (turn % 3))), asked, arrives=2 * turn)
        for turn, cut in enumerate(cuts)
    ]


def cold_run(model: Model, asked: list[Prompt], attention: Attention | None = None) -> Run:
    """One request after the other, each prompt in one piece, without a cache."""
    config = SchedulerConfig.vllm(max_num_seqs=1)
    return serve(asked, lambda events: NoCache(400, 16, events=events), config, model=model, attention=attention)


def ways(block_size: int, chunk: int, room: int) -> Iterator[tuple[Make, SchedulerConfig]]:
    """Each cache and publish time, in a pool of `room` blocks that forces evictions and preemptions."""
    eager = {"admission": "first_chunk", "max_num_batched_tokens": chunk}
    for kind, config in (
        (HashChainCache, SchedulerConfig.vllm(**eager)),
        (HashChainCache, SchedulerConfig.vllm(publish_at="compute", **eager)),
        (RadixCache, SchedulerConfig.sglang(**eager)),
    ):
        yield lambda events, kind=kind: kind(room, block_size, events=events), config


def assert_same_bits(ours: Run, cold: Run) -> None:
    assert ours.tokens == cold.tokens
    for key, rows in ours.logits.items():
        for row in rows:
            assert torch.equal(row, cold.logits[key][0]), key


def different_rows(ours: Run, cold: Run) -> int:
    return sum(not torch.equal(row, cold.logits[key][0]) for key, rows in ours.logits.items() for row in rows)


def keys_and_values(
    exact: Model,
    tokens: torch.Tensor,
    chunks: list[int],
    table: list[int],
    size: int,
    attention: Attention | None = None,
) -> list[torch.Tensor]:
    """The cached keys and values of each position, in every layer, after computing `tokens` in these chunks."""
    attention = attention or TileAttention()
    kv_cache = KVCache(exact.config, max(table) + 1, size, exact.dtype, kv_order=attention.kv_order)
    for layer in (*kv_cache.k, *kv_cache.v):
        layer.fill_(torch.nan)  # what was never written must never show
    start = 0
    for chunk in chunks:
        exact.forward(tokens[start : start + chunk], kv_cache, Batch.build([(start, chunk, table)], size), attention)
        start += chunk
    positions = torch.arange(len(tokens))
    slots = torch.tensor(table)[positions // size] * size + positions % size
    return [layer.flatten(0, 1)[slots] for layer in (*kv_cache.k, *kv_cache.v)]
