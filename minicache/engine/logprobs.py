"""Log-probabilities of tokens, as the model has them: before temperature, penalty and filters.

Shapes: R rows, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Logprob:
    """One token and the natural logarithm of its probability; `text` is None if the engine has no tokenizer."""

    token_id: int
    logprob: float
    text: str | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """What the model thought of one position: the token that stands there, and the likeliest, best first.

    The token itself may be among `top`.
    """

    chosen: Logprob
    top: tuple[Logprob, ...] = ()

    def with_text(self, text_of: Callable[[int], str]) -> "TokenLogprobs":
        """The same with each token's text."""
        chosen, *top = (replace(entry, text=text_of(entry.token_id)) for entry in (self.chosen, *self.top))
        return TokenLogprobs(chosen, tuple(top))


def token_logprobs(logits: Tensor, tokens: Sequence[int], k: int) -> list[TokenLogprobs]:
    """For each row of `logits (R, V)` the log-probability of its token, and the `k` likeliest. In float64."""
    scores = logits.cpu().double().log_softmax(-1)  # (R, V)
    chosen = scores[torch.arange(len(tokens)), torch.tensor(tokens, dtype=torch.int64)].tolist()
    top = scores.topk(k, dim=-1)  # (R, k)
    return [
        TokenLogprobs(Logprob(token, value), tuple(Logprob(*entry) for entry in zip(ids, values, strict=True)))
        for token, value, ids, values in zip(tokens, chosen, top.indices.tolist(), top.values.tolist(), strict=True)
    ]
