"""Intake: prompts and parameters, checked before anything is queued."""

import secrets
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from minicache.core.errors import InvalidArgument, RequestTooLong, require_text
from minicache.engine.errors import NoTokenizer
from minicache.engine.sampling_params import SamplingParams
from minicache.text.tokenizer import Tokenizer

Prompt = str | Sequence[int]


@dataclass(frozen=True, slots=True)
class Intake:
    """The limits of one engine. Each check raises one sentence that names the field, and changes nothing."""

    tokenizer: Tokenizer | None
    vocab_size: int
    max_context: int
    eos_tokens: frozenset[int]

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt, each in the model's vocabulary."""
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise NoTokenizer("the model has no tokenizer: give the prompt as token ids")
            tokens = self.tokenizer.encode(require_text("prompt", prompt))
        elif isinstance(prompt, Iterable) and not isinstance(prompt, bytes | Mapping | Set):
            tokens = list(prompt)
        else:
            raise InvalidArgument(f"prompt must be text or token ids in a list, not {prompt!r}")
        for position, token in enumerate(tokens):
            if isinstance(token, bool) or not isinstance(token, int):
                raise InvalidArgument(f"token {token!r} at position {position} must be an integer")
            if not 0 <= token < self.vocab_size:
                raise InvalidArgument(
                    f"token {token!r} at position {position} is not in the vocabulary of {self.vocab_size:,}"
                )
        return tokens

    def params(self, params: SamplingParams | None) -> SamplingParams:
        """The parameters, with a random seed if they name none."""
        params = SamplingParams() if params is None else params
        if not isinstance(params, SamplingParams):
            raise InvalidArgument(f"params must be SamplingParams, not {params!r}")
        return params if params.seed is not None else params.with_seed(secrets.randbits(63))

    def end_tokens(self, params: SamplingParams) -> frozenset[int]:
        """The tokens that end an answer when they are sampled."""
        model = () if params.ignore_eos else (token for token in self.eos_tokens if token < self.vocab_size)
        return frozenset([*params.stop_tokens, *model])

    def check(self, params: SamplingParams, num_prompt_tokens: int) -> None:
        """Refuse parameters that this model cannot serve. The scheduler refuses what the pool cannot hold."""
        if num_prompt_tokens + params.max_tokens > self.max_context:
            raise RequestTooLong(
                f"a prompt of {num_prompt_tokens:,} tokens and max_tokens {params.max_tokens:,} exceed the context of "
                f"{self.max_context:,}: shorten the prompt or lower max_tokens"
            )
        if params.stop and self.tokenizer is None:
            raise NoTokenizer("stop: the model has no tokenizer, so its answers have no text: use stop_tokens")
        for token in params.stop_tokens:
            if token >= self.vocab_size:
                raise InvalidArgument(f"stop_tokens: {token} is not in the vocabulary of {self.vocab_size:,}")
        if params.min_tokens and len(self.end_tokens(params)) >= self.vocab_size:
            raise InvalidArgument("min_tokens: every token of the vocabulary ends the answer, so none could come first")
        for name in ("logprobs", "prompt_logprobs"):
            count = getattr(params, name)
            if count is not None and count > self.vocab_size:
                raise InvalidArgument(f"{name} must be at most {self.vocab_size:,}, the vocabulary, not {count:,}")
        if num_prompt_tokens and params.prompt_logprobs_start >= num_prompt_tokens:
            raise InvalidArgument(
                f"prompt_logprobs_start {params.prompt_logprobs_start:,} is not a position of a prompt of "
                f"{num_prompt_tokens:,} tokens"
            )
