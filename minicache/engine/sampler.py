"""From logits to a token: the likeliest, or one drawn with a seed.

    logits ─ penalty, bans ─> scores ─ temperature ─> weights ─ filters ─> weights that are left ─ u ─> token

The order is vLLM's (0.33, `vllm/v1/sample/sampler.py`). Shapes: R rows that get a token, V vocabulary.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import torch
from torch import Tensor

from minicache.engine.answers import Logprob, TokenLogprobs
from minicache.engine.sampling_params import SamplingParams

FARTHEST = 1e300  # penalties move no score farther from 0: the difference of two infinite scores is NaN


@dataclass(frozen=True, slots=True)
class Draw:
    """One row's choice: its request's parameters, and the position the new token will have in the sequence.

    The repetition penalty applies to `seen` tokens; `banned` tokens are not allowed yet. Both are ids in the
    vocabulary; `seen` may hold one twice.
    """

    params: SamplingParams
    position: int
    seen: Sequence[int] = ()
    banned: Collection[int] = ()

    @property
    def takes_the_likeliest(self) -> bool:
        """Whether the token is simply the row's argmax."""
        return self.params.temperature == 0 and self.params.repetition_penalty == 1 and not self.banned


def sample(logits: Tensor, draws: Sequence[Draw]) -> list[int]:
    """One token for each row of `logits (R, V)`. A row's token depends only on the row and its `Draw`."""
    tokens: list[int] = logits.argmax(-1).tolist()
    for row, draw in enumerate(draws):
        if not draw.takes_the_likeliest:
            tokens[row] = choose(logits[row], draw)
    return tokens


def choose(logits: Tensor, draw: Draw) -> int:
    """The token of one row of logits `(V,)`, computed in float64 on the CPU so that all devices agree."""
    params = draw.params
    scores = penalised(logits.cpu().double(), draw.seen, float(params.repetition_penalty))
    scores[list(draw.banned)] = -torch.inf
    if params.temperature == 0:
        return int(scores.argmax())
    weights = ((scores - scores.max()) / float(params.temperature)).exp()  # (V,), the largest is 1
    if params.filters:
        weights = filtered(weights, params)
    return at_quantile(weights, uniform(params.seed or 0, draw.position))


def penalised(scores: Tensor, seen: Sequence[int], penalty: float) -> Tensor:
    """A copy of `scores (V,)` with the repetition penalty of CTRL (arXiv 1909.05858) on the tokens `seen`."""
    scores = scores.clone()
    if penalty != 1:
        ids = torch.tensor(seen, dtype=torch.int64)
        values = scores[ids]
        scores[ids] = torch.where(values > 0, values / penalty, values * penalty).clamp(-FARTHEST, FARTHEST)
    return scores


def filtered(weights: Tensor, params: SamplingParams) -> Tensor:
    """`weights (V,)` with 0 for the tokens that do not pass the filters.

    Of the tokens ranked from the likeliest down (equals by id), each filter keeps the first `keep`.
    """
    ranked, ids = weights.sort(descending=True, stable=True)
    keep = int((ranked >= params.min_p * ranked[0]).sum())
    if params.top_k:
        keep = min(keep, params.top_k)
    if params.top_p < 1:
        mass = ranked[:keep].cumsum(0)
        keep = 1 + int((mass < params.top_p * mass[-1]).sum())
    kept = torch.zeros_like(weights)
    kept[ids[:keep]] = ranked[:keep]
    return kept


def at_quantile(weights: Tensor, u: float) -> int:
    """The token at quantile `u` in [0, 1) of the distribution that `weights (V,)` are proportional to.

    Tokens are ordered by id, not by weight: another batch may change the last bits of two nearly equal weights, which
    then moves a boundary a little, but does not swap two tokens.
    """
    cumulative = weights.cumsum(0)
    token = int(torch.searchsorted(cumulative, u * cumulative[-1], right=True))
    return token if token < len(weights) else int(weights.nonzero()[-1])


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) from a seed and a position alone: a hash has no state that another request could change."""
    digest = blake2b(f"{seed}:{position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def token_logprobs(logits: Tensor, tokens: Sequence[int], k: int) -> list[TokenLogprobs]:
    """For each row of `logits (R, V)` the log-probability of its token, and of the `k` likeliest, in float64.

    As the model gives them: before temperature, penalty and filters.
    """
    scores = logits.cpu().double().log_softmax(-1)  # (R, V)
    chosen = scores[torch.arange(len(tokens)), torch.tensor(tokens, dtype=torch.int64)].tolist()
    top = scores.topk(k, dim=-1)  # (R, k)
    return [
        TokenLogprobs(Logprob(token, value), tuple(Logprob(*entry) for entry in zip(ids, values, strict=True)))
        for token, value, ids, values in zip(tokens, chosen, top.indices.tolist(), top.values.tolist(), strict=True)
    ]
