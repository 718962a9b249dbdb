"""The settings of an engine: model, cache, scheduler, memory, device. Checked before anything is loaded."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from minicache.common.suggest import not_one_of
from minicache.core.errors import InvalidArgument, require_int
from minicache.core.eviction import STRATEGIES
from minicache.core.queue_policy import POLICIES

CACHE_KINDS = ("hash", "radix", "none")
DTYPES = ("float32", "float64", "bfloat16", "float16")
DEVICES = ("cpu", "cuda", "mps")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Settings of an `Engine`. Raises `InvalidArgument`, naming the field.

    Model. `model` is a name of the store or the path of a model folder. `max_context` limits prompt and output
    together, in tokens (None: the model's context).

    Cache. `cache` is "hash" (vLLM's hash chain), "radix" (SGLang's radix tree) or "none". `block_size` is in tokens;
    None is 1 for "radix", else 16. The KV pool has `num_blocks` blocks, or as many as fit `memory_budget` bytes, which
    must hold `max_context` tokens; with neither, enough for two contexts, 1 GiB at most. `eviction_strategy` chooses
    the leaf that a radix cache evicts first (`core/eviction.py`; None: "lru"); a hash chain evicts in the order of its
    free queue, so it has no such setting.

    Scheduler. `profile` "vllm" or "sglang" sets when KV becomes findable and which request is preempted (None: "sglang"
    for "radix", else "vllm"). `queue_policy` orders the waiting requests (`core/queue_policy.py`; None: the profile's).
    `max_num_batched_tokens` limits the tokens of one step, `max_num_seqs` its requests.

    Computing. `dtype` None is "bfloat16" on a GPU, else "float32". `attention` is a backend of `backends.py`; None is
    "triton" on a GPU that can run it, else "fast_cpu". `exact` makes answers bit for bit independent of what was
    cached, but slower (see `exact.py`), in tiles of `exact_tile` positions; it runs on attention "triton" or "torch".
    """

    model: str | Path = "tiny"
    cache: str = "hash"
    block_size: int | None = None
    num_blocks: int | None = None
    memory_budget: int | None = None
    max_context: int | None = None
    max_num_batched_tokens: int = 4096
    max_num_seqs: int = 256
    profile: str | None = None
    queue_policy: str | None = None
    eviction_strategy: str | None = None
    device: str = "cpu"
    dtype: str | None = None
    attention: str | None = None
    exact: bool = False
    exact_tile: int = 16

    def __post_init__(self) -> None:
        require_one_of("cache", self.cache, CACHE_KINDS)
        require_one_of("profile", self.profile, (None, "vllm", "sglang"))
        require_one_of("queue_policy", self.queue_policy, (None, *POLICIES))
        require_one_of("eviction_strategy", self.eviction_strategy, (None, *STRATEGIES))
        require_one_of("dtype", self.dtype, (None, *DTYPES))
        if not isinstance(self.device, str) or self.device.partition(":")[0] not in DEVICES:
            raise InvalidArgument(f"device must be one of {', '.join(DEVICES)}, not {self.device!r}")
        for field, minimum in (("block_size", 1), ("num_blocks", 2), ("memory_budget", 1), ("max_context", 1)):
            if getattr(self, field) is not None:
                require_int(field, getattr(self, field), minimum)
        require_int("max_num_batched_tokens", self.max_num_batched_tokens, 1)
        require_int("max_num_seqs", self.max_num_seqs, 1)
        require_int("exact_tile", self.exact_tile, 1)
        require_one_of("exact", self.exact, (True, False))
        if self.num_blocks is not None and self.memory_budget is not None:
            raise InvalidArgument("give num_blocks or memory_budget, not both: each fixes the size of the KV pool")
        self._require_possible_with_cache()

    def _require_possible_with_cache(self) -> None:
        if self.cache == "radix" and self.profile == "vllm":
            raise InvalidArgument(
                "profile vllm publishes KV when it is scheduled, which a radix cache cannot: use sglang"
            )
        if self.eviction_strategy is not None and self.cache != "radix":
            raise InvalidArgument(
                f"eviction_strategy is a setting of cache radix, not of {self.cache}: leave it out or use cache='radix'"
            )
        if self.queue_policy == "fcfs-retouch" and self.cache != "radix":
            raise InvalidArgument(
                f"queue_policy fcfs-retouch keeps waiting prefixes recent in cache radix, not in {self.cache}: use fcfs"
            )
        if self.queue_policy == "lpm" and self.cache == "none":
            raise InvalidArgument("queue_policy lpm needs a cache that finds prefixes, and cache is none: use fcfs")

    @property
    def effective_block_size(self) -> int:
        """Tokens of a block: the config's, or the cache's own."""
        return self.block_size or (1 if self.cache == "radix" else 16)

    @property
    def effective_profile(self) -> str:
        """The profile: the config's, or the one of the engine that has such a cache."""
        return self.profile or ("sglang" if self.cache == "radix" else "vllm")

    @property
    def effective_dtype(self) -> str:
        """The type of weights and KV: the config's, or bfloat16 on a GPU and float32 elsewhere."""
        return self.dtype or ("bfloat16" if self.device.startswith("cuda") else "float32")

    @property
    def effective_attention(self) -> str:
        """The backend: the config's, or the fastest for this device, type and mode."""
        if self.attention is not None:
            return self.attention
        if self.device.startswith("cuda") and self.effective_dtype != "float64" and find_spec("triton"):
            return "triton"
        return "torch" if self.exact else "fast_cpu"


def require_one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Raise `InvalidArgument`, listing the choices, unless `value` is one of `allowed`."""
    if value not in allowed:
        raise InvalidArgument(f"{name} {not_one_of(value, (str(choice) for choice in allowed if choice is not None))}")
