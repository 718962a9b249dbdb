"""The parts of an engine, made from its settings."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from minicache.core import EventStream, HashChainCache, NoCache, PrefixCache, RadixCache, Scheduler, SchedulerConfig
from minicache.core.errors import InvalidArgument
from minicache.core.events import Event
from minicache.engine.backends import make_backend
from minicache.engine.engine_config import EngineConfig
from minicache.engine.errors import BackendUnavailable
from minicache.engine.kv_cache import KVCache, block_bytes, blocks_for_budget
from minicache.engine.model_config import ModelConfig
from minicache.engine.model_runner import ModelRunner
from minicache.engine.models.loader import load_config, load_eos_tokens, load_model
from minicache.engine.models.store import resolve
from minicache.text.tokenizer import HubTokenizer, Tokenizer

DEFAULT_BUDGET = 1 << 30  # bytes of KV, unless two contexts need less


@dataclass(slots=True)
class Parts:
    """The parts that an `Engine` drives."""

    runner: ModelRunner
    scheduler: Scheduler
    make_scheduler: Callable[[], Scheduler]  # another one over an empty cache, for `Engine.reset`
    tokenizer: Tokenizer | None
    eos_tokens: frozenset[int]  # the model's end tokens
    max_context: int  # tokens of prompt and output together


def build_parts(config: EngineConfig, sink: Callable[[Event], None] | None = None) -> Parts:
    """Load the model and size the pool. Cheap checks come before the weights are read."""
    folder = resolve(config.model)
    shape = load_config(folder)
    dtype, device = usable(config)
    max_context = context_limit(config, shape)
    exact_tile = config.exact_tile if config.exact else None
    backend = make_backend(config.effective_attention, device, dtype, shape.head_dim, exact_tile)
    num_blocks = pool_size(config, shape, dtype, max_context)
    tokenizer = load_tokenizer(folder)
    order = backend.attention.kv_order
    kv_cache = KVCache(shape, num_blocks, config.effective_block_size, dtype, device, order)  # before its bookkeeping

    def make_scheduler() -> Scheduler:
        events = EventStream(sink) if sink else None
        cache = build_cache(config, num_blocks, events)
        return Scheduler(cache, scheduler_config(config), events=events)

    scheduler = make_scheduler()  # before the weights are read: it refuses settings that contradict each other
    model = load_model(folder, dtype, device, backend.linear)
    model.rows = backend.rows(model)
    runner = ModelRunner(model, kv_cache, backend.attention)
    eos_tokens = load_eos_tokens(folder) or (tokenizer.eos_ids if tokenizer else frozenset())
    return Parts(runner, scheduler, make_scheduler, tokenizer, eos_tokens, max_context)


def build_cache(config: EngineConfig, num_blocks: int, events: EventStream | None) -> PrefixCache:
    """The prefix cache over a pool of `num_blocks` blocks, the null block included."""
    if config.cache == "radix":
        strategy = config.eviction_strategy or "lru"
        return RadixCache(num_blocks, config.effective_block_size, strategy, events=events)
    make = {"hash": HashChainCache, "none": NoCache}[config.cache]
    return make(num_blocks, config.effective_block_size, events=events)


def scheduler_config(config: EngineConfig) -> SchedulerConfig:
    """The profile's choices, with the config's changes."""
    make = {"vllm": SchedulerConfig.vllm, "sglang": SchedulerConfig.sglang}[config.effective_profile]
    policy = {} if config.queue_policy is None else {"queue_policy": config.queue_policy}
    return make(max_num_batched_tokens=config.max_num_batched_tokens, max_num_seqs=config.max_num_seqs, **policy)


def load_tokenizer(folder: Path) -> Tokenizer | None:
    """The folder's tokenizer; None if it has none: such a model takes and returns token ids."""
    return HubTokenizer(folder) if (folder / "tokenizer.json").is_file() else None


def usable(config: EngineConfig) -> tuple[torch.dtype, torch.device]:
    """Dtype and device, if this machine has them; raises `BackendUnavailable`."""
    kind = config.device.partition(":")[0]
    if kind == "cuda" and not torch.cuda.is_available():
        raise BackendUnavailable("device cuda is not available: torch sees no GPU here; use cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise BackendUnavailable("device mps is not available here; use cpu")
    if kind == "mps" and config.effective_dtype == "float64":
        raise BackendUnavailable("device mps has no float64; use float32, or cpu")
    try:
        return getattr(torch, config.effective_dtype), torch.device(config.device)
    except RuntimeError:
        raise InvalidArgument(f"device {config.device!r} is not one that torch knows") from None


def context_limit(config: EngineConfig, shape: ModelConfig) -> int:
    """The most tokens of prompt and output together; raises `InvalidArgument` if the model has fewer positions."""
    if config.max_context is not None and config.max_context > shape.max_positions:
        raise InvalidArgument(
            f"max_context {config.max_context:,} exceeds the model's context of {shape.max_positions:,}"
        )
    return config.max_context or shape.max_positions


def pool_size(config: EngineConfig, shape: ModelConfig, dtype: torch.dtype, max_context: int) -> int:
    """Blocks of the pool, the null block included; raises `PoolTooSmall`."""
    block_size = config.effective_block_size
    if config.num_blocks is not None:
        return config.num_blocks
    if config.memory_budget is not None:
        return blocks_for_budget(shape, block_size, dtype, config.memory_budget, config.max_context or 1)
    two_contexts = (2 * -(-max_context // block_size) + 1) * block_bytes(shape, block_size, dtype)
    return blocks_for_budget(shape, block_size, dtype, min(DEFAULT_BUDGET, two_contexts), min_tokens=block_size)
