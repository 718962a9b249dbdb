"""The KV cache: where the keys and values of all cached tokens lie, block by block.

Shapes: N blocks, B block size, Hkv key-value heads, D head size, T tokens of a step.
Which block belongs to whom is not known here: that is the prefix cache's business (`minicache.core`).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from minicache.core.errors import require_int
from minicache.engine.errors import PoolTooSmall
from minicache.engine.model_config import ModelConfig

Store = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], None]  # k, v, k_cache, v_cache, slots


class KVCache:
    """Keys and values, for each layer one tensor `(N, B, Hkv, D)` each. Block 0 is padding: no token lies there.

    In memory a Triton `store` wants just that order. Without one each head's keys lie together, as `(Hkv, N, B, D)`:
    torch's attention reads head after head, and the keys of consecutive blocks are then one run of memory.

    The memory is not initialised: whoever reads it must not let what was never written reach a result, not even with
    weight 0, for it may be NaN.
    """

    def __init__(
        self,
        config: ModelConfig,
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        store: Store | None = None,
    ) -> None:
        self.num_blocks = require_int("num_blocks", num_blocks, 2)
        self.block_size = require_int("block_size", block_size, 1)
        self._store = store or scatter
        shape = (num_blocks, block_size, config.num_kv_heads, config.head_dim)
        order = (0, 1, 2, 3) if store else (2, 0, 1, 3)

        def layers() -> list[Tensor]:
            return [torch.empty_permuted(shape, order, dtype=dtype, device=device) for _ in range(config.num_layers)]

        try:
            self.k, self.v = layers(), layers()
        except (RuntimeError, TypeError):  # no such memory here, or nowhere: torch's words for that fill several lines
            size = num_blocks * block_bytes(config, block_size, dtype)
            raise PoolTooSmall(
                f"a KV cache of {num_blocks:,} blocks needs {size:,} bytes, more than can be had on {device}: "
                "give fewer num_blocks, or a smaller memory_budget"
            ) from None

    def write(self, layer: int, k: Tensor, v: Tensor, slots: Tensor) -> None:
        """Store `k` and `v`, both `(T, Hkv, D)`, at `slots (T,)`; slot = block * B + offset."""
        self._store(k, v, self.k[layer], self.v[layer], slots)


def scatter(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """Store rows with torch's own kernel: what a `KVCache` does unless it is given another way."""
    k_cache.flatten(0, 1).index_copy_(0, slots, k)
    v_cache.flatten(0, 1).index_copy_(0, slots, v)


def block_bytes(config: ModelConfig, block_size: int, dtype: torch.dtype) -> int:
    """Bytes of one block: keys and values of `block_size` tokens in every layer."""
    return 2 * config.num_layers * block_size * config.num_kv_heads * config.head_dim * dtype.itemsize


def blocks_for_budget(
    config: ModelConfig, block_size: int, dtype: torch.dtype, memory_budget: int, min_tokens: int = 1
) -> int:
    """How many blocks fit `memory_budget` bytes, the null block included.

    Raises `PoolTooSmall`, saying how many tokens would fit, if `min_tokens` do not.
    """
    require_int("block_size", block_size, 1)
    require_int("memory_budget", memory_budget, 1)
    per_block = block_bytes(config, block_size, dtype)
    num_blocks = memory_budget // per_block
    usable = max(0, num_blocks - 1) * block_size  # block 0 holds no tokens
    if usable < min_tokens:
        needed = (-(-min_tokens // block_size) + 1) * per_block
        raise PoolTooSmall(
            f"memory_budget of {memory_budget:,} bytes holds {usable:,} tokens of KV "
            f"({per_block // block_size:,} bytes a token), but {min_tokens:,} are needed: give {needed:,} bytes"
        )
    return num_blocks
