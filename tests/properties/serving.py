"""Serving a workload with a real, tiny model, so that runs with different caches can be compared.

The models are random, in float64, with grouped heads (4 query heads, 2 key-value heads), so their logits depend on
every token and position before them. The KV cache is first filled with NaN, so that a read of uncomputed KV shows. A
token is a byte, so that stop strings can be made of tokens.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache as cached
from typing import Any

import torch

from minicache.core import EventStream, PrefixCache, Scheduler, SchedulerConfig, StepPlan
from minicache.core.events import BlocksEvicted, Event, NodesEvicted, RequestAdmitted, RequestPreempted
from minicache.engine import Engine, RequestOutput, SamplingParams
from minicache.engine.answers import TokenLogprobs
from minicache.engine.attention import Attention
from minicache.engine.backends import make_backend
from minicache.engine.build import Parts
from minicache.engine.kv_cache import KVCache
from minicache.engine.model import Model
from minicache.engine.model_config import ModelConfig
from minicache.engine.model_runner import ModelRunner, StepResult
from minicache.engine.models.loader import MemoryWeights, build_model
from minicache.text.byte_tokenizer import ByteTokenizer
from tests.engine.random_weights import random_weights

VOCABULARY = 12
CONFIG = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}
ROPE = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"architectures": ["LlamaForCausalLM"]},
    "llama3": {  # scaled positions, an output matrix of its own
        "architectures": ["LlamaForCausalLM"],
        "tie_word_embeddings": False,
        "rope_scaling": ROPE | {"original_max_position_embeddings": 32},
    },
    "qwen2": {"architectures": ["Qwen2ForCausalLM"]},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"]},
}
EOS = VOCABULARY - 1


@dataclass(frozen=True)
class Prompt:
    """One request of a workload, which arrives before step `arrives`. Its seed is in `params`."""

    tokens: tuple[int, ...]
    params: SamplingParams
    arrives: int = 0
    priority: int = 0


@dataclass
class Run:
    """The output of a run. Tokens are by core request: `r0` is prompt 0, `r0/1` its second answer. Logits are by core
    request and the position of the token drawn from them, with one entry for each time they were computed."""

    outputs: dict[str, RequestOutput] = field(default_factory=dict)
    tokens: dict[str, list[int]] = field(default_factory=dict)
    aborted: set[str] = field(default_factory=set)
    logits: dict[tuple[str, int], list[torch.Tensor]] = field(default_factory=lambda: defaultdict(list))
    events: list[Event] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)


class ModelFailed(Exception):
    """Raised on purpose in the middle of a step."""


# Called in each step: before the model runs, and after it (both in the middle of the step, with its plan: may raise
# `ModelFailed`, or abort at the scheduler), and between two steps (without a plan: may call the engine).
Disturbance = Callable[[Engine, StepPlan | None, str], None]


@cached
def weights(family: str, seed: int = 7) -> dict[str, torch.Tensor]:
    return random_weights(shape(family), seed, dtype=torch.float64)


@cached
def tiny_model(family: str = "llama", seed: int = 7) -> Model:
    return build_model(shape(family), MemoryWeights(weights(family, seed), torch.float64))


def shape(family: str) -> ModelConfig:
    return ModelConfig.from_hf({**CONFIG, **FAMILIES[family]})


class RecordingRunner(ModelRunner):
    """A runner that keeps the logits from which each token was drawn, and causes the troubles of the run."""

    def __init__(
        self,
        model: Model,
        cache: PrefixCache,
        run: Run,
        disturb: Callable[[StepPlan, str], None],
        attention: Attention,
    ) -> None:
        kv_cache = KVCache(model.config, cache.capacity + 1, cache.block_size, model.dtype, kv_order=attention.kv_order)
        for layer in (*kv_cache.k, *kv_cache.v):
            layer.fill_(torch.nan)
        super().__init__(model, kv_cache, attention)
        self.recorded = run
        self.disturb = disturb

    def run(self, plan: StepPlan, params: Mapping[str, SamplingParams]) -> StepResult:
        self.disturb(plan, "before")
        result = super().run(plan, params)
        self.disturb(plan, "after")
        return result

    def logits(self, plan: StepPlan, hidden: torch.Tensor) -> torch.Tensor:
        logits = super().logits(plan, hidden)
        sampling = [item for item in plan.scheduled if item.samples]
        for item, row in zip(sampling, logits, strict=True):
            self.recorded.logits[item.request.id, item.request.num_tokens].append(row)
        return logits


def serve(
    prompts: Sequence[Prompt],
    make_cache: Callable[[EventStream], PrefixCache],
    config: SchedulerConfig,
    disturb: Disturbance = lambda *_: None,
    family: str = "llama",
    run: Run | None = None,
    model: Model | None = None,
    attention: Attention | None = None,
) -> Run:
    """Serve all prompts to their ends, and check the cache in and after every step. At the end every block is free.

    The output is written to `run`, if given, as it comes, so that it is there if serving fails.
    `model` replaces the float64 model of the `family`, `attention` the default one of a CPU.
    """
    run = Run() if run is None else run
    events = EventStream(lambda event: _record(event, run))
    cache = make_cache(events)
    scheduler = Scheduler(cache, config, events=events)

    def within_a_step(plan: StepPlan, when: str) -> None:
        cache.check()
        run.seen["shared blocks"] += shared_blocks(plan)
        disturb(engine, plan, when)

    attention = attention or make_backend("fast_cpu").attention
    runner = RecordingRunner(model or tiny_model(family), cache, run, within_a_step, attention)
    engine = Engine.from_parts(
        Parts(runner, scheduler, lambda: scheduler, ByteTokenizer(), frozenset([EOS]), CONFIG_CONTEXT)
    )
    waiting = sorted(enumerate(prompts), key=lambda pair: pair[1].arrives)
    while waiting or engine.has_unfinished:
        while waiting and (waiting[0][1].arrives <= scheduler.step or not engine.has_unfinished):
            index, prompt = waiting.pop(0)
            engine.submit(prompt.tokens, prompt.params, request_id=f"r{index}", priority=prompt.priority)
            run.outputs[f"r{index}"] = engine._samples[f"r{index}"].output
        try:
            engine.step()
        except ModelFailed:
            run.seen["failures"] += 1
        for request_id in [id for id, samples in engine._samples.items() if lost(samples.answers)]:
            engine.abort(request_id)
        disturb(engine, None, "between")
        cache.check()
        assert scheduler.step < 5_000, "the workload never ends"
    assert cache.num_free == cache.capacity, "blocks leaked"
    assert cache.reset()
    assert not engine._answers
    assert not engine._params
    for request_id, output in run.outputs.items():
        for choice in output.choices:
            name = request_id if choice.index == 0 else f"{request_id}/{choice.index}"
            run.tokens[name] = choice.token_ids
            run.seen["stops"] += choice.finish_reason == "stop"
            if choice.finish_reason == "abort":
                run.aborted.add(name)
    run.seen["aborts"] = len(run.aborted)
    return run


CONFIG_CONTEXT = CONFIG["max_position_embeddings"]


def lost(streams: Sequence[object]) -> bool:
    """Whether the scheduler has dropped one of these requests without the engine."""
    return any(s.request.finish_reason == "abort" and not s.output.finished for s in streams)


def shared_blocks(plan: StepPlan) -> int:
    """The blocks that more than one block table of a step names."""
    return sum(count > 1 for count in Counter(block for item in plan.scheduled for block in item.block_table).values())


def assert_same(run: Run, control: Run) -> None:
    """Assert the same tokens from the same logits, and the same report about them; for an aborted answer, up to its
    end."""
    for request, output in control.tokens.items():
        got = run.tokens[request]
        assert got == (output[: len(got)] if request in run.aborted else output), request
    for key, computed in run.logits.items():
        for row in computed:
            assert not row.isnan().any(), f"{key} has read KV that was never computed"
            torch.testing.assert_close(row, control.logits[key][0], rtol=0, atol=1e-9)
    for request_id, output in run.outputs.items():
        for ours, theirs in zip(output.choices, control.outputs[request_id].choices, strict=True):
            whole = ours.finish_reason != "abort"
            if whole:
                assert (ours.text, ours.finish_reason) == (theirs.text, theirs.finish_reason)
                assert ours.stop_reason == theirs.stop_reason
            assert_same_logprobs(ours.logprobs, theirs.logprobs, whole)
            assert_same_logprobs(ours.prompt_logprobs, theirs.prompt_logprobs, whole)


Told = Sequence[TokenLogprobs | None] | None


def assert_same_logprobs(ours: Told, theirs: Told, whole: bool = True) -> None:
    if ours is None or theirs is None:
        assert ours is theirs
        return
    assert not whole or len(ours) == len(theirs)
    for one, other in zip(ours, theirs[: len(ours)], strict=True):
        if one is None or other is None:
            assert one is other
            continue
        for a, b in zip((one.chosen, *one.top), (other.chosen, *other.top), strict=True):
            assert a.token_id == b.token_id
            assert abs(a.logprob - b.logprob) < 1e-9


def require(seen: Counter[str], *what: str) -> None:
    """Assert that every event in `what` was seen, because a law about events that never happened means nothing."""
    print(dict(sorted(seen.items())))
    missing = [kind for kind in what if not seen[kind]]
    assert not missing, f"no {', '.join(missing)}: {dict(seen)}"


def _record(event: Event, run: Run) -> None:
    run.events.append(event)
    seen = run.seen
    match event:
        case RequestAdmitted():
            seen["hits"] += event.num_cached_tokens > 0
        case BlocksEvicted() | NodesEvicted():
            seen["evictions"] += 1
        case RequestPreempted():
            seen["preemptions"] += 1
