"""The parameters of a request: how its tokens are chosen, which log-probabilities it gets, and when it ends."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from minicache.core.errors import InvalidArgument, require_int, require_text

MOST_ANSWERS = 1024


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Raises `InvalidArgument`, naming the field.

    Length. The answer has at most `max_tokens` tokens, and at least `min_tokens` before anything else may end it.

    Choice. With `temperature` 0 the likeliest token is taken; filters and seed then have no effect. Otherwise a token
    is drawn from those that pass all filters: first the `top_k` likeliest (0: all) and those at least `min_p` times as
    likely as the likeliest, then the likeliest of these that together have `top_p` of their probability.
    `repetition_penalty` makes tokens of prompt and output less likely (above 1) or more likely (below 1). With the same
    `seed` (64 bits) a request draws the same tokens in any batch; None lets the engine pick a seed.

    End. `stop` strings end the answer and are not part of its text. `stop_tokens` end it too; name control tokens here,
    because they have no text. So do the model's own end tokens, unless `ignore_eos` is set.

    Answers. `n` answers, at most 1,024, share one prompt; the first is the answer that n=1 gives with this seed.

    Log-probabilities. `logprobs=k` gives each token's log-probability and those of the k likeliest (0: only its own),
    as the model computes them: before temperature, penalty and filters. `prompt_logprobs=k` gives the same for the
    prompt from position `prompt_logprobs_start` on. These positions must be computed, so such a request reads less from
    the cache: nothing from a hash chain (vLLM's rule), the first `prompt_logprobs_start` tokens from a radix cache
    (SGLang's `logprob_start_len`). It publishes like any other request.
    """

    max_tokens: int = 16
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    n: int = 1
    min_tokens: int = 0
    stop: str | Iterable[str] = ()
    stop_tokens: Iterable[int] = ()
    ignore_eos: bool = False
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    prompt_logprobs_start: int = 0

    def __post_init__(self) -> None:
        for name, minimum in (("max_tokens", 1), ("top_k", 0), ("n", 1), ("min_tokens", 0)):
            require_int(name, getattr(self, name), minimum)
        if self.n > MOST_ANSWERS:
            raise InvalidArgument(f"n must be at most {MOST_ANSWERS:,}: ask for more in several requests")
        temperature, penalty = self.temperature, self.repetition_penalty
        _require_number("temperature", temperature, "finite and at least 0", 0 <= _number(temperature) < math.inf)
        _require_number("top_p", self.top_p, "above 0 and at most 1", 0 < _number(self.top_p) <= 1)
        _require_number("min_p", self.min_p, "between 0 and 1", 0 <= _number(self.min_p) <= 1)
        _require_number("repetition_penalty", penalty, "finite and above 0", 0 < _number(penalty) < math.inf)
        if self.seed is not None:
            require_int("seed", self.seed)
            if not -(2**63) <= self.seed < 2**64:
                raise InvalidArgument("seed must fit into 64 bits")
        if not isinstance(self.ignore_eos, bool):
            raise InvalidArgument(f"ignore_eos must be True or False, not {self.ignore_eos!r}")
        for name in ("logprobs", "prompt_logprobs"):
            if getattr(self, name) is not None:
                require_int(name, getattr(self, name), 0)
        require_int("prompt_logprobs_start", self.prompt_logprobs_start, 0)
        self._set("stop", [self.stop] if isinstance(self.stop, str) else _listed("stop", self.stop, "texts"))
        self._set("stop_tokens", _listed("stop_tokens", self.stop_tokens, "token ids"))
        for text in self.stop:
            if not require_text("each of stop", text):
                raise InvalidArgument("each of stop must have at least one character, because every text ends with ''")
        for token in self.stop_tokens:
            require_int("each of stop_tokens", token, 0)
        self._refuse_contradictions()

    def _refuse_contradictions(self) -> None:
        if self.min_tokens > self.max_tokens:
            raise InvalidArgument(f"min_tokens {self.min_tokens} is more than max_tokens {self.max_tokens}")
        if self.n > 1 and self.temperature == 0:
            raise InvalidArgument(f"n {self.n} with temperature 0 gives the same answer {self.n} times: ask for one")
        if self.prompt_logprobs_start and self.prompt_logprobs is None:
            raise InvalidArgument("prompt_logprobs_start needs prompt_logprobs: how many to give at each position")

    def _set(self, name: str, values: Iterable[Any]) -> None:
        object.__setattr__(self, name, tuple(values))

    @property
    def filters(self) -> bool:
        """Whether some tokens are never drawn."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0

    def with_seed(self, seed: int) -> "SamplingParams":
        """A copy with this seed."""
        return replace(self, seed=seed)

    def of_sample(self, index: int) -> "SamplingParams":
        """The parameters of the answer with this index: 0 has the seed itself, the others seeds derived from it."""
        if index == 0:
            return self
        digest = blake2b(f"{self.seed}/{index}".encode(), digest_size=8).digest()
        return self.with_seed(int.from_bytes(digest, "big"))


def _number(value: Any) -> float:
    """The value as a float: NaN, which lies in no range, if it is no number; infinity if it is too large."""
    try:
        return math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:
        return math.inf


def _require_number(name: str, value: Any, expected: str, holds: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgument(f"{name} must be a number, not {value!r}")
    if not holds:
        raise InvalidArgument(f"{name} must be {expected}, not {value}")


def _listed(name: str, values: Any, of_what: str) -> Iterable[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidArgument(f"{name} must be a list of {of_what}, not {values!r}")
    return values
