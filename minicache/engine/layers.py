"""The building blocks of a decoder layer, each a few lines over torch tensors.

Shapes: T tokens, E hidden size, H heads, D head size.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from minicache.engine.model_config import ModelConfig, RopeScaling

FEW_ROWS = range(2, 17)


class Linear:
    """`x (T, in) -> (T, out)` with `weight (out, in)` and perhaps `bias (out,)`.

    For the few rows of a decode batch, float32 on a CPU, the plain kernels are at their worst: up to twice as slow as
    oneDNN's on a weight laid out for them. The first such batch makes that copy; it costs as much memory again.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight = weight
        self.bias = bias
        self._packed: Tensor | None = None
        self._packs = weight.device.type == "cpu" and weight.dtype == torch.float32 and can_pack()

    def __call__(self, x: Tensor) -> Tensor:
        if self._packs and len(x) in FEW_ROWS:
            if self._packed is None:
                self._packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, 8)  # laid out for about 8 rows
            few: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._packed, self.bias, "none", [], "")
            return few
        return F.linear(x, self.weight, self.bias)


def can_pack() -> bool:
    """Whether this build of torch has oneDNN."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class RMSNorm:
    """Scale each vector `x (…, E)` to a root mean square of 1, then by `weight`, which broadcasts against it."""

    def __init__(self, weight: Tensor, eps: float) -> None:
        self.weight = weight
        self.eps = eps

    def __call__(self, x: Tensor) -> Tensor:
        wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
        scale = (wide * wide).mean(-1, keepdim=True).add_(self.eps).rsqrt_()
        return self.weight * (wide * scale).to(x.dtype)


class Rotary:
    """Rotary position embedding from one table, so that a position is rotated the same in every batch.

    The table is float64 for a float64 model and float32 for all others, as the models were trained.
    """

    def __init__(self, config: ModelConfig, max_positions: int, dtype: torch.dtype, device: torch.device) -> None:
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        exponents = torch.arange(0, config.head_dim, 2, dtype=wide) / config.head_dim
        frequencies = 1.0 / config.rope_theta**exponents  # (D/2,)
        if config.rope_scaling:
            frequencies = stretch(frequencies, config.rope_scaling)
        angles = torch.outer(torch.arange(max_positions, dtype=wide), frequencies)  # (P, D/2)
        self.cos = angles.cos().to(device, dtype)
        self.sin = angles.sin().to(device, dtype)

    def at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine at `positions (T,)`, each `(T, 1, D/2)`."""
        return self.cos[positions].unsqueeze(1), self.sin[positions].unsqueeze(1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair `(x[i], x[i + D/2])` of `x (T, H, D)` by its position's angle."""
    left, right = x.chunk(2, dim=-1)  # (T, H, D/2) each
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)


def stretch(frequencies: Tensor, scaling: RopeScaling) -> Tensor:
    """Llama 3's scaling: wavelengths beyond the original context are stretched, short ones kept, a ramp between."""
    wavelengths = 2 * math.pi / frequencies
    turns = scaling.original_max_positions / wavelengths  # full turns within the original context
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * keep + frequencies / scaling.factor * (1 - keep)
