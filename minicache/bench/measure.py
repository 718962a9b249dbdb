"""Helpers of all experiments: prompts in a model's chat template, an engine with a large enough pool, one timed
request.

Times are in milliseconds, tokens as the model's tokenizer counts them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from statistics import median, median_low
from typing import TYPE_CHECKING, Any

from minicache.core.errors import InvalidArgument, RequestTooLong
from minicache.text.chat import Message
from minicache.text.template import ChatTemplate
from minicache.text.tokenizer import HubTokenizer

if TYPE_CHECKING:
    from minicache.engine import Engine

BLOCK_SIZES = {"hash": 16, "radix": 1, "none": 16}

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Answer:
    """The result of one request. `ttft_ms` is the time from its submission to its first token, `decode_rate` the tokens
    per second after that."""

    token_ids: tuple[int, ...]
    text: str
    cached_tokens: int
    ttft_ms: float
    decode_rate: float | None = None


@dataclass
class Row:
    """The answers to one form of a prompt with one cache."""

    form: str
    prompt_tokens: int
    answers: list[Answer] = field(default_factory=list)

    @property
    def cached_tokens(self) -> list[int]:
        return [answer.cached_tokens for answer in self.answers]

    @property
    def median_cached_tokens(self) -> int:
        return median_low(self.cached_tokens)

    @property
    def ttft_ms(self) -> list[float]:
        return [answer.ttft_ms for answer in self.answers]

    @property
    def median_ttft_ms(self) -> float:
        return median(self.ttft_ms)

    def to_json(self) -> dict[str, Any]:
        samples = [round(sample, 3) for sample in self.ttft_ms]
        return {
            "form": self.form,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "median_cached_tokens": self.median_cached_tokens,
            "ttft_ms": {
                "median": round(self.median_ttft_ms, 3),
                "min": min(samples),
                "max": max(samples),
                "samples": samples,
            },
        }


@dataclass(frozen=True)
class Arm:
    """One engine's rows; `cache` is "hash", "radix" or, for the control arm, "none"."""

    cache: str
    block_size: int
    rows: list[Row]

    def row(self, form: str) -> Row:
        return next(row for row in self.rows if row.form == form)

    def to_json(self) -> dict[str, Any]:
        return {"cache": self.cache, "block_size": self.block_size, "rows": [row.to_json() for row in self.rows]}


def difference(where: str, cached: Answer, plain: Answer) -> list[str]:
    """A line about an answer that differs from the control arm's; no line if they are equal."""
    if cached.token_ids == plain.token_ids:
        return []
    return [f"{where}: {list(cached.token_ids)} with the cache, {list(plain.token_ids)} without"]


class Chat:
    """A model's chat template, tokenizer and context. Raises as the model store does, but loads no weights.

    Prompts and lengths raise `InvalidArgument` if the template does not show each message's content unchanged.
    """

    def __init__(self, model: str) -> None:
        from minicache.engine.models import store as model_store
        from minicache.engine.models.loader import load_config

        folder = model_store.resolve(model)
        self.model, self.context = model, load_config(folder).max_positions
        self.tokenizer, self.template = HubTokenizer(folder), ChatTemplate.from_folder(folder)

    def prompt(self, messages: Sequence[Message]) -> Tokens:
        return tuple(self.tokenizer.encode(self._rendered(messages)))

    def _rendered(self, messages: Sequence[Message]) -> str:
        text = self.template.render(messages)
        for message in messages:
            if str(message["content"]) not in text:
                raise InvalidArgument(
                    f"the chat template of {self.model} leaves out or changes what the {message['role']} says, which "
                    "would make these figures those of another prompt: name another model"
                )
        return text

    def system_length(self, system: str, user: str = "Hello") -> int:
        """The tokens of a prompt from its beginning to the end of the system content, with the template's own text."""
        text = self._rendered(messages(system, user))
        return len(self.tokenizer.encode(text[: text.index(system) + len(system)]))

    def turn_length(self, system: str, user: str) -> int:
        """The tokens of a prompt after the system content: the user's turn and the generation prompt."""
        return len(self.prompt(messages(system, user))) - self.system_length(system, user)

    def require_room(self, prompts: Iterable[Tokens], max_tokens: int) -> None:
        """Raises `RequestTooLong` if a prompt and its answer exceed the model's context."""
        needed = max(map(len, prompts)) + max_tokens
        if needed > self.context:
            raise RequestTooLong(
                f"this needs a context of {needed:,} tokens, and {self.model} has {self.context:,}: name another model"
            )


def messages(system: str, user: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def engine_for(model: str, cache: str, max_tokens: int, *streams: Sequence[Tokens]) -> "Engine":
    """An engine whose pool can hold everything that one of these streams of requests caches, so it never evicts."""
    from minicache.engine import Engine, EngineConfig

    block_size = BLOCK_SIZES[cache]
    tokens = max(_room(cache, stream, max_tokens + 2 * block_size) for stream in streams)
    num_blocks = -(-tokens // block_size) + 1  # block 0 is the null block
    return Engine(EngineConfig(model=model, cache=cache, block_size=block_size, num_blocks=num_blocks, dtype="float32"))


def _room(cache: str, stream: Sequence[Tokens], each: int) -> int:
    """The tokens of KV of a stream of requests, one after the other. `each` is added per request, for its answer and
    for the two blocks that its own tokens fill only partly."""
    if cache == "none":
        return max(map(len, stream)) + each
    distinct = sorted(set(stream))  # the neighbour is then one with the longest common beginning
    return sum(len(prompt) - _shared(prompt, before) for before, prompt in pairwise([(), *distinct])) + each * len(
        stream
    )


def _shared(one: Tokens, other: Tokens) -> int:
    """The number of tokens with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def ask(engine: "Engine", prompt: Tokens, max_tokens: int) -> Answer:
    """Ask for exactly `max_tokens` tokens, even after the model's end token, so that all models' answers are equally
    long."""
    from minicache.engine import SamplingParams

    [output] = engine.generate([prompt], SamplingParams(max_tokens=max_tokens, ignore_eos=True))
    said = list(takewhile(lambda token: token not in engine.eos_tokens, output.token_ids))
    text = engine.tokenizer.decode(said) if engine.tokenizer else ""
    ttft, rate = output.timings.ttft or 0.0, output.timings.decode_rate(len(output.token_ids))
    return Answer(tuple(output.token_ids), text, output.cached_tokens or 0, 1000 * ttft, rate)
