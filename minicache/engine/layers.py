"""The building blocks of a decoder layer, each a few lines over torch tensors.

Shapes: T tokens, E hidden size, H heads, D head size.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from minicache.engine.model_config import ModelConfig, RopeScaling


class Linear:
    """`x (T, in) -> (T, out)` with `weight (out, in)` and perhaps `bias (out,)`."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight = weight
        self.bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class RMSNorm:
    """Scale each vector `x (…, E)` to a root mean square of 1, then by `weight`, which broadcasts against it."""

    def __init__(self, weight: Tensor, eps: float) -> None:
        self.weight = weight
        self.eps = eps

    def __call__(self, x: Tensor) -> Tensor:
        wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
        scale = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + self.eps)
        return self.weight * (wide * scale).to(x.dtype)


class Rotary:
    """Rotary position embedding (arXiv 2104.09864) from one table: a position is rotated the same in every batch.

    The table is float64 for a float64 model and float32 for all others, as the models were trained.
    """

    def __init__(self, config: ModelConfig, max_positions: int, dtype: torch.dtype, device: torch.device) -> None:
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        exponents = torch.arange(0, config.head_dim, 2, dtype=wide) / config.head_dim
        frequencies = 1.0 / config.rope_theta**exponents  # (D/2,)
        if config.rope_scaling:
            frequencies = stretch(frequencies, config.rope_scaling)
        angles = torch.outer(torch.arange(max_positions, dtype=wide), frequencies)  # (P, D/2)
        cos, sin = angles.cos(), angles.sin()
        self.cos = torch.cat((cos, cos), dim=-1).to(device, dtype)  # (P, D)
        self.sin = torch.cat((-sin, sin), dim=-1).to(device, dtype)  # (P, D): with the signs that `rotate` needs

    def at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and signed sine at `positions (T,)`, each `(T, 1, D)`."""
        return self.cos[positions].unsqueeze(1), self.sin[positions].unsqueeze(1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair `(x[i], x[i + D/2])` of `x (T, H, D)` by its position's angle.

    x = (a, b):    (a, b) cos + (b, a) (-sin, sin)  =  (a cos - b sin, b cos + a sin)
    """
    swapped = x.roll(x.shape[-1] // 2, dims=-1)  # (b, a)
    return x * cos + swapped * sin


def stretch(frequencies: Tensor, scaling: RopeScaling) -> Tensor:
    """Llama 3's scaling: stretches wavelengths beyond the original context, keeps short ones, and ramps in between."""
    wavelengths = 2 * math.pi / frequencies
    turns = scaling.original_max_positions / wavelengths  # full turns within the original context
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * keep + frequencies / scaling.factor * (1 - keep)
