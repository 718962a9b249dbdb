"""From logits to a token: the likeliest, or one drawn with a seed.

Shapes: R rows that want a token, V vocabulary.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import torch
from torch import Tensor

from minicache.core.errors import InvalidArgument, require_int


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How one request's tokens are chosen, and when it ends. Raises `InvalidArgument`, naming the field.

    `temperature` 0 is greedy. With the same `seed` a request draws the same tokens in any batch; None lets the engine
    pick one. `stop_tokens` end the output beside the model's own end tokens, which `ignore_eos` switches off.
    """

    max_tokens: int = 16
    temperature: float = 0.0
    seed: int | None = None
    stop_tokens: tuple[int, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        require_int("max_tokens", self.max_tokens, 1)
        if isinstance(self.temperature, bool) or not isinstance(self.temperature, int | float):
            raise InvalidArgument(f"temperature must be a number, not {self.temperature!r}")
        if not 0 <= self.temperature < math.inf:
            raise InvalidArgument(f"temperature must be 0 or more, not {self.temperature}")
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int)):
            raise InvalidArgument(f"seed must be an integer or None, not {self.seed!r}")
        if isinstance(self.stop_tokens, str | bytes) or not isinstance(self.stop_tokens, Iterable):
            raise InvalidArgument(f"stop_tokens must be a list of token ids, not {self.stop_tokens!r}")
        object.__setattr__(self, "stop_tokens", tuple(self.stop_tokens))
        for token in self.stop_tokens:
            require_int("each of stop_tokens", token, 0)

    def with_seed(self, seed: int) -> "SamplingParams":
        return replace(self, seed=seed)


@dataclass(frozen=True, slots=True)
class Draw:
    """One row's choice: its request's parameters, and the position the new token will have in the sequence."""

    params: SamplingParams
    position: int


def sample(logits: Tensor, draws: Sequence[Draw]) -> list[int]:
    """One token for each row of `logits (R, V)`. A row's token depends on nothing but the row and its `Draw`."""
    tokens: list[int] = logits.argmax(-1).tolist()
    for row, (params, position) in enumerate((draw.params, draw.position) for draw in draws):
        if params.temperature > 0:
            tokens[row] = draw_token(logits[row], params.temperature, uniform(params.seed or 0, position))
    return tokens


def draw_token(logits: Tensor, temperature: float, u: float) -> int:
    """The token at quantile `u` of softmax(`logits (V,)` / temperature), in float64 so that all devices agree."""
    scaled = logits.to("cpu", torch.float64)
    scaled = (scaled - scaled.max()) / temperature
    cumulative = scaled.exp().cumsum(0)
    token = int(torch.searchsorted(cumulative, u * cumulative[-1], right=True))
    return min(token, len(logits) - 1)


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) from a seed and a position alone: a hash needs no state that a batch could disturb."""
    digest = blake2b(f"{seed}:{position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53
