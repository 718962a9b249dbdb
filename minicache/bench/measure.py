"""What experiments share: prompts as a model is asked them, an engine with room for them, one timed request."""

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from minicache.bench.three_forms_result import Answer
from minicache.common.suggest import not_one_of
from minicache.core.errors import InvalidArgument, RequestTooLong
from minicache.text.chat import Message
from minicache.text.template import ChatTemplate
from minicache.text.tokenizer import HubTokenizer

if TYPE_CHECKING:
    from minicache.engine import Engine

BLOCK_SIZES = {"hash": 16, "radix": 1, "none": 16}

Tokens = tuple[int, ...]
Progress = Callable[[str, int, int], None]  # what is being done, requests done, requests in all


class Chat:
    """A model's chat template, tokenizer and context. Raises as the model store does, but loads no weights.

    Prompts and lengths raise `InvalidArgument` if the template does not show each message's content as it is.
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
        """Tokens of a prompt from its beginning to the end of the system content, the template's words included."""
        text = self._rendered(messages(system, user))
        return len(self.tokenizer.encode(text[: text.index(system) + len(system)]))

    def turn_length(self, system: str, user: str) -> int:
        """Tokens of a prompt after the system content: the user's turn, and what asks for the answer."""
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


def require_caches(caches: Iterable[str]) -> None:
    """Raises `InvalidArgument` for what is not the name of a prefix cache."""
    for cache in caches:
        if cache not in ("hash", "radix"):
            raise InvalidArgument(f"cache {not_one_of(cache, ('hash', 'radix'))}")


def engine_for(model: str, cache: str, prompts: Iterable[Tokens], max_tokens: int) -> "Engine":
    """An engine with room for all `prompts` and their answers, without anything in common: nothing is evicted."""
    from minicache.engine import Engine, EngineConfig

    block_size = BLOCK_SIZES[cache]
    blocks = sum(-(-(len(prompt) + max_tokens) // block_size) for prompt in prompts)
    return Engine(EngineConfig(model=model, cache=cache, block_size=block_size, num_blocks=blocks + 1, dtype="float32"))


def ask(engine: "Engine", prompt: Tokens, max_tokens: int) -> Answer:
    """`max_tokens` tokens, past the model's end token too, so that there is as much to compare with every model."""
    from minicache.engine import SamplingParams

    [output] = engine.generate([prompt], SamplingParams(max_tokens=max_tokens, ignore_eos=True))
    said = list(takewhile(lambda token: token not in engine.eos_tokens, output.token_ids))
    text = engine.tokenizer.decode(said) if engine.tokenizer else ""
    ttft, rate = output.timings.ttft or 0.0, output.timings.decode_rate(len(output.token_ids))
    return Answer(tuple(output.token_ids), text, output.cached_tokens or 0, 1000 * ttft, rate)


class Counter:
    """Tells `progress` of each request as it begins."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._done, self._total = progress, 0, total

    def next(self, what: str) -> None:
        self._progress(what, self._done, self._total)
        self._done += 1
