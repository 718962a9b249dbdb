"""A: the text and the tokens that the earlier request left in the cache.

    |<------------------- prompt ------------------->|<--- generated --->|
    |<--- conversation --->|<-- generation prompt -->|
    0              generation_start             answer_start         len(text)

The generation prompt is the end that a template adds to let the model answer, such as `<|im_start|>assistant\\n`.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from minicache.core.errors import MinicacheError
from minicache.prompts.prompt import Prompt, Source
from minicache.prompts.reuse import joined
from minicache.prompts.values import saying
from minicache.text.origin import Field, Path, Run
from minicache.text.tokenizer import REPLACEMENT, Tokenizer

MANY_PIECES = 64  # tokens without one that ends at a character: they are no text in UTF-8


class Earlier:
    """A's prompt and the answer generated after it, as text, and as token ids if the log has them."""

    def __init__(self, prompt: Prompt, generated: str = "", generated_ids: Sequence[int] | None = None) -> None:
        self.prompt, self.generated, self.logged = prompt, generated, generated_ids
        self._numbers: dict[Any, int] = {}  # `saying` of a message -> its number
        self._numbered: dict[int, tuple[Any, int]] = {}  # `id` of a message -> the message, kept alive, and its number

    @property
    def source(self) -> Source:
        return self.prompt.source

    @cached_property
    def text(self) -> str:
        return self.prompt.text + self.generated

    @property
    def answer_start(self) -> int:
        return len(self.prompt.text)

    @cached_property
    def generated_tokens(self) -> Sequence[int]:
        return self.prompt.encode(self.generated) if self.logged is None else self.logged

    @cached_property
    def tokens(self) -> Sequence[int]:
        return joined(self.prompt.tokens, self.generated_tokens) if self.generated_tokens else self.prompt.tokens

    @cached_property
    def generation_start(self) -> int:
        """The character at which the generation prompt begins. If the template fails without one, the end of the last
        text of the request."""
        payload = self.source.payload
        if "prompt" in payload:
            return self.answer_start
        source = replace(self.source, payload={**payload, "add_generation_prompt": False})
        with suppress(MinicacheError):  # a template can refuse any conversation
            without = self.prompt.means.text(source)
            if self.prompt.text.startswith(without):
                return len(without)
        return max((run.end for run in self.prompt.rendered.runs if isinstance(run.origin, Field)), default=0)

    def number_of(self, message: Any) -> int:
        """A number that is equal for two messages, of A or B, if `saying` of both is equal."""
        if id(message) not in self._numbered:
            number = self._numbers.setdefault(saying(message), len(self._numbers))
            self._numbered[id(message)] = message, number
        return self._numbered[id(message)][1]

    @cached_property
    def runs_of_path(self) -> dict[Path, list[Run]]:
        """For each field, the runs of A's prompt that it wrote, in the order of the text."""
        found: defaultdict[Path, list[Run]] = defaultdict(list)
        for run in self.prompt.rendered.runs:
            if isinstance(run.origin, Field):
                found[run.origin.path].append(run)
        return found

    @cached_property
    def _starts(self) -> tuple[Sequence[int], Sequence[int]]:
        """The first character of each token: of the prompt, and of the generated text, counted from its beginning."""
        prompt = self.prompt
        return self._starts_of(prompt.text, prompt.logged, len(prompt.lead)), self._starts_of(
            self.generated, self.logged, 0
        )

    def _starts_of(self, text: str, logged: Sequence[int] | None, lead: int) -> Sequence[int]:
        tokenizer = self.prompt.means.tokenizer
        if logged is not None:
            return [0] * lead + starts_of_ids(tokenizer, logged[lead:], len(text))
        return [0] * lead + [start for start, _ in tokenizer.encode_with_offsets(text)[1]]

    @property
    def has_logged_tokens(self) -> bool:
        return self.logged is not None or self.prompt.logged is not None

    def differs_from_text(self, token: int) -> bool:
        """Whether the logged token number `token` is in the answer and is not the one that the tokenizer chooses
        there."""
        head = len(self.prompt.tokens)
        if token < head or self.logged is None:
            return False
        ours, theirs = (list(ids[token - head :][:1]) for ids in (self.logged, self._encoded_answer))
        return ours != theirs

    @cached_property
    def _encoded_answer(self) -> Sequence[int]:
        return self.prompt.encode(self.generated)

    def start_of(self, token: int) -> int:
        """The character of `text` at which token number `token` begins."""
        head, tail = self._starts
        if token < len(head):
            return head[token]
        token -= len(head)
        return self.answer_start + (tail[token] if token < len(tail) else len(self.generated))

    def tokens_before(self, character: int) -> int | None:
        """The number of tokens in `text[:character]`; `None` if a token has characters on both sides."""
        head, tail = self._starts
        if character < self.answer_start:
            index = bisect_left(head, character)
            return index if index < len(head) and head[index] == character else None
        if character == len(self.text):
            return len(self.tokens)
        index = bisect_left(tail, character - self.answer_start)
        return len(head) + index if index < len(tail) and tail[index] == character - self.answer_start else None


def starts_of_ids(tokenizer: Tokenizer, ids: Sequence[int], limit: int) -> list[int]:
    """The first character of each token of `ids` in their decoded text. Tokens that share a character have its
    start."""
    starts: list[int] = []
    # The first `whole` tokens end at a character; those from `context` on are decoded again with the next token.
    length = context = whole = 0
    for index in range(len(ids)):
        starts.append(min(length, limit))
        before = tokenizer.decode(ids[context:whole], keep_control=True)
        after = tokenizer.decode(ids[context : index + 1], keep_control=True)
        if not after.endswith(REPLACEMENT) or index - whole > MANY_PIECES:
            length += len(after) - len(before)
            context, whole = index, index + 1
    return starts
