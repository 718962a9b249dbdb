"""Serving a workload with a real, tiny model, so that runs with different caches can be compared.

The model is random, float64, with asymmetric heads (4 query heads over 2 key-value heads): its logits depend on every
token and position before them. The KV cache is filled with NaN at first, so that whatever was never computed shows.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache as cached

import torch

from minicache.core import EventStream, PrefixCache, Request, Scheduler, SchedulerConfig, StepPlan
from minicache.core.events import BlocksEvicted, Event, NodesEvicted, RequestAdmitted, RequestPreempted
from minicache.engine.attention import TorchAttention
from minicache.engine.kv_cache import KVCache
from minicache.engine.loader import build_model
from minicache.engine.model import Model
from minicache.engine.model_config import ModelConfig
from minicache.engine.model_runner import ModelRunner
from minicache.engine.sampler import SamplingParams
from minicache.engine.tiny import random_weights
from minicache.engine.weights import MemoryWeights

VOCABULARY = 12
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
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


@dataclass(frozen=True)
class Prompt:
    """One request of a workload: it arrives before step `arrives`."""

    tokens: tuple[int, ...]
    max_tokens: int
    arrives: int = 0
    priority: int = 0
    temperature: float = 0.0


@dataclass
class Run:
    """What came out: tokens by request, logits by request and position, and what happened on the way."""

    tokens: dict[str, list[int]] = field(default_factory=dict)
    logits: dict[tuple[str, int], torch.Tensor] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)


class ModelFailed(Exception):
    """Raised on purpose in the middle of a step."""


# Called with the scheduler and the plan of a step: before the model runs, and after it. May abort requests, or raise.
Disturbance = Callable[[Scheduler, StepPlan, str], None]


@cached
def tiny_model() -> Model:
    config = ModelConfig.from_hf(CONFIG)
    return build_model(config, MemoryWeights(random_weights(config, seed=7, dtype=torch.float64), torch.float64))


class RecordingRunner(ModelRunner):
    """Keeps the logits from which each token was drawn; a position computed twice must give the same."""

    def __init__(self, cache: PrefixCache, run: Run) -> None:
        model = tiny_model()
        kv_cache = KVCache(model.config, cache.capacity + 1, cache.block_size, torch.float64, torch.device("cpu"))
        for layer in (*kv_cache.k, *kv_cache.v):
            layer.fill_(torch.nan)
        super().__init__(model, kv_cache, TorchAttention())
        self.recorded = run

    def logits(self, plan: StepPlan) -> torch.Tensor:
        logits = super().logits(plan)
        sampling = [item for item in plan.scheduled if item.samples]
        for item, row in zip(sampling, logits, strict=True):
            self.recorded.logits[item.request.id, item.request.num_tokens] = row
        return logits


def serve(
    prompts: Sequence[Prompt],
    make_cache: Callable[[EventStream], PrefixCache],
    config: SchedulerConfig,
    disturb: Disturbance = lambda *_: None,
) -> Run:
    """Serve all prompts to their ends, checking the cache after every call; every block is free in the end."""
    run = Run()
    events = EventStream(lambda event: _count(event, run.seen))
    cache = make_cache(events)
    scheduler = Scheduler(cache, config, events=events)
    runner = RecordingRunner(cache, run)
    params = {f"r{i}": SamplingParams(p.max_tokens, p.temperature, seed=i) for i, p in enumerate(prompts)}
    waiting = sorted(enumerate(prompts), key=lambda pair: pair[1].arrives)
    requests = []
    while waiting or scheduler.has_unfinished:
        while waiting and (waiting[0][1].arrives <= scheduler.step or not scheduler.has_unfinished):
            index, prompt = waiting.pop(0)
            request = Request(f"r{index}", prompt.tokens, prompt.max_tokens, priority=prompt.priority, arrival=index)
            scheduler.add(request)
            requests.append(request)
        plan = scheduler.schedule()
        cache.check()
        try:
            with scheduler.undo_on_error(plan):
                disturb(scheduler, plan, "before")
                sampled = runner.run(plan, params)
                disturb(scheduler, plan, "after")
        except ModelFailed:
            run.seen["failures"] += 1
        else:
            scheduler.update(plan, sampled)
        cache.check()
        assert scheduler.step < 5_000, "the workload never ends"
    assert cache.num_free == cache.capacity, "blocks leaked"
    assert cache.reset()
    run.tokens = {request.id: list(request.output) for request in requests}
    return run


def _count(event: Event, seen: Counter[str]) -> None:
    match event:
        case RequestAdmitted():
            seen["hits"] += event.num_cached_tokens > 0
        case BlocksEvicted() | NodesEvicted():
            seen["evictions"] += 1
        case RequestPreempted():
            seen["preemptions"] += 1
