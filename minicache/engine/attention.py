"""Attention over block tables: one function, several ways to compute it.

Shapes: T tokens of the batch, Hq query heads, Hkv key-value heads, D head size, N blocks, B block size.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from minicache.core.errors import InvalidArgument
from minicache.engine.batch import Batch
from minicache.engine.kernels.reference import ReferenceAttention
from minicache.engine.torch_attention import TorchAttention
from minicache.engine.triton_support import load_triton_attention, require_triton


class Attention(Protocol):
    """Causal grouped-query attention of ragged queries over a paged KV cache."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, batch: Batch) -> Tensor:
        """Attend with `q (T, Hq, D)` over `k` and `v (N, B, Hkv, D)`; returns `(T, Hq, D)`.

        The row at position p of a sequence sees the sequence's positions 0 … p and nothing else; their KV must be in
        the cache, the batch's own included. Scores are scaled by D**-0.5. Does not change its arguments.
        """
        ...


BACKENDS: dict[str, Callable[[], Attention]] = {
    "torch": TorchAttention,
    "reference": ReferenceAttention,
    "triton": load_triton_attention,
}


def attention_backend(
    name: str, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32, head_dim: int = 1
) -> Attention:
    """A fresh backend by name, for tensors of this device, type and head size.

    Raises `InvalidArgument` for an unknown one, `BackendUnavailable` if it cannot compute with such tensors here.
    """
    if name not in tuple(BACKENDS):
        raise InvalidArgument(f"attention must be one of {', '.join(BACKENDS)}, not {name!r}")
    if name == "triton":
        require_triton(torch.device(device), dtype, head_dim)
    return BACKENDS[name]()
