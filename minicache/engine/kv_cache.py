"""The KV cache: memory for the keys and values of all cached tokens, block by block.

The prefix cache (`minicache.core`) knows which request holds which block; this file does not.

Shapes: N blocks, B block size, Hkv key-value heads, D head size.
"""

import torch
from torch import Tensor

from minicache.core.errors import require_int
from minicache.engine.attention import BY_BLOCK
from minicache.engine.errors import PoolTooSmall
from minicache.engine.model_config import ModelConfig


class KVCache:
    """Keys `k` and values `v`: one tensor `(N, B, Hkv, D)` each for every layer. Block 0 is padding and holds no token.

    `kv_order` is the order of these dimensions in memory, which the attention backend declares (`Attention.kv_order`);
    the backend also writes them (`Attention.store`). The memory is not initialised: slots never written may be NaN, so
    readers must keep them out of a result, not give them weight 0. Raises `PoolTooSmall` if there is too little memory.
    """

    def __init__(
        self,
        config: ModelConfig,
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        kv_order: tuple[int, int, int, int] = BY_BLOCK,
    ) -> None:
        self.num_blocks = require_int("num_blocks", num_blocks, 2)
        self.block_size = require_int("block_size", block_size, 1)
        shape = (num_blocks, block_size, config.num_kv_heads, config.head_dim)

        def layers() -> list[Tensor]:
            return [torch.empty_permuted(shape, kv_order, dtype=dtype, device=device) for _ in range(config.num_layers)]

        try:
            self.k, self.v = layers(), layers()
        except (RuntimeError, TypeError):  # too little memory, or a size no machine has: torch's message is many lines
            size = num_blocks * block_bytes(config, block_size, dtype)
            raise PoolTooSmall(
                f"a KV cache of {num_blocks:,} blocks needs {size:,} bytes, more than can be had on {device}: "
                "give fewer num_blocks, or a smaller memory_budget"
            ) from None


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
