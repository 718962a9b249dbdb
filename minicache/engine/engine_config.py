"""What an engine is made of: model, cache, memory, device. Checked here, before anything is loaded."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from minicache.core.errors import InvalidArgument, require_int

CACHE_KINDS = ("hash", "radix", "none")
DTYPES = ("float32", "float64", "bfloat16", "float16")
DEVICES = ("cpu", "cuda", "mps")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Settings of an `Engine`. Raises `InvalidArgument`, naming the field.

    `model` is a name of the store or the path of a model folder. `max_context` limits prompt and output together (None:
    the model's context). The KV pool has `num_blocks` blocks, or as many as fit `memory_budget` bytes, into which
    `max_context` tokens must go; with neither, enough for two contexts, 1 GiB at most. `block_size` None is the cache's
    own: 16, and 1 for "radix". `profile` says when KV becomes findable and who is preempted: "vllm" or "sglang" (None:
    "sglang" for "radix", else "vllm"). `max_num_batched_tokens` bounds the tokens of one step, `max_num_seqs` the
    requests in it. `attention` None is "triton" on a GPU and "torch" elsewhere, and for float64. `exact` makes answers
    bit for bit independent of what was cached, at a price (see `exact.py`), in tiles of `exact_tile` positions; its
    attention is "torch" or "triton".
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
    device: str = "cpu"
    dtype: str | None = None
    attention: str | None = None
    exact: bool = False
    exact_tile: int = 16

    def __post_init__(self) -> None:
        require_one_of("cache", self.cache, CACHE_KINDS)
        require_one_of("profile", self.profile, (None, "vllm", "sglang"))
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
        if self.exact and self.attention not in (None, "torch", "triton"):
            raise InvalidArgument(f"exact mode runs on attention torch or triton, not {self.attention!r}")
        if self.cache == "radix" and self.profile == "vllm":
            raise InvalidArgument(
                "profile vllm publishes KV when it is scheduled, which a radix cache cannot: use sglang"
            )
        if self.num_blocks is not None and self.memory_budget is not None:
            raise InvalidArgument("give num_blocks or memory_budget, not both: each fixes the size of the KV pool")

    @property
    def effective_block_size(self) -> int:
        return self.block_size or (1 if self.cache == "radix" else 16)

    @property
    def effective_profile(self) -> str:
        return self.profile or ("sglang" if self.cache == "radix" else "vllm")

    @property
    def effective_dtype(self) -> str:
        """float32 on a CPU and on mps, bfloat16 on a GPU, unless the config says otherwise."""
        return self.dtype or ("bfloat16" if self.device.startswith("cuda") else "float32")

    @property
    def effective_attention(self) -> str:
        """The backend: the config's, or the fastest for this device, type and mode."""
        if self.attention is not None:
            return self.attention
        if self.device.startswith("cuda") and self.effective_dtype != "float64" and find_spec("triton"):
            return "triton"
        return "fast_cpu" if self.device.startswith("cpu") and not self.exact else "torch"


def require_one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if value not in allowed:
        choices = ", ".join(str(choice) for choice in allowed if choice is not None)
        raise InvalidArgument(f"{name} must be one of {choices}, not {value!r}")
