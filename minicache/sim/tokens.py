"""Tokens without a tokenizer: prompts of text or of named segments, and an output that a seed decides.

    0 ... 255            one byte of text
    256 ... 65791        a position of a named segment
    65792 ... 131327     a sampled token

So a token's number says where it comes from, text can be counted by hand, and every machine gets the same values: they
come from SHAKE-128, not from `random`.
"""

import hashlib
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from weakref import WeakKeyDictionary

from minicache.common.printable import printable, replace_unprintable
from minicache.core.request import Request

FIRST_SEGMENT_TOKEN = 256
FIRST_SAMPLED_TOKEN = FIRST_SEGMENT_TOKEN + (1 << 16)
FIRST_REDACTED_TOKEN = 1 << 40  # and 40 bits more: hashes in the place of tokens, see `redact.py`


def text_tokens(text: str) -> list[int]:
    """One token for each byte of the text in UTF-8."""
    return list(text.encode())


def segment_tokens(seed: int, name: str, count: int) -> list[int]:
    """`count` tokens that stand for a text of that name. The same name gives the same tokens, and a longer segment
    begins with the tokens of a shorter one."""
    return [FIRST_SEGMENT_TOKEN + value for value in _values(f"segment {seed} {name}".encode(), count)]


def _values(key: bytes, count: int) -> "array[int]":
    """`count` numbers below 2**16 that depend only on `key`."""
    values = array("H", hashlib.shake_128(key).digest(2 * count))
    if sys.byteorder == "big":
        values.byteswap()
    return values


class Sampler:
    """A model with fixed answers: as in greedy decoding, equal prompts get equal answers.

    Another adapter is another model and answers differently; a salt changes nothing.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._outputs: WeakKeyDictionary[Request, array[int]] = WeakKeyDictionary()

    def __call__(self, request: Request) -> int:
        """The next token of `request`."""
        output = self._outputs.get(request)
        if output is None:
            key = f"output {self.seed} {request.namespace.adapter} ".encode() + request.prompt.tobytes()
            output = self._outputs[request] = _values(key, request.max_tokens)
        return FIRST_SAMPLED_TOKEN + output[request.num_output_tokens]


class RecordedSampler:
    """Gives the answers of a recorded run: request id -> its output."""

    def __init__(self, outputs: Mapping[str, Sequence[int]]) -> None:
        self.outputs = outputs

    def __call__(self, request: Request) -> int:
        """The next token of `request`; token 0 after the end of the recorded output."""
        output = self.outputs.get(request.id, ())
        return output[request.num_output_tokens] if request.num_output_tokens < len(output) else 0


def show_token(token: int) -> str:
    """A token for people to read: `"a"` for a byte of text, `#300` for one of a segment, `generated #7`."""
    if token < FIRST_SEGMENT_TOKEN:
        return f'"{chr(token)}"' if 32 <= token < 127 and token != ord('"') else f"byte {token:#04x}"
    if token < FIRST_SAMPLED_TOKEN:
        return f"#{token}"
    if token >= FIRST_REDACTED_TOKEN:
        return f"a redacted token ({token - FIRST_REDACTED_TOKEN:010x})"
    return f"generated #{token - FIRST_SAMPLED_TOKEN}"


def show_tokens(tokens: Sequence[int], limit: int = 40) -> str:
    """A short form of a run of tokens: the text at its beginning, at most `limit` characters; else its first and last
    token."""
    text = bytes(takewhile(lambda token: int(token) < FIRST_SEGMENT_TOKEN, tokens))
    if text:
        shown = replace_unprintable(text.decode("utf-8", "replace"), lambda _: "·")
        cut = len(shown) > limit or len(text) < len(tokens)
        return f'"{shown[: limit - 1] if len(shown) > limit else shown}{"…" if cut else ""}"'
    if len(tokens) <= 1:
        return show_token(tokens[0]) if tokens else "nothing"
    return f"{show_token(tokens[0])} … {show_token(tokens[-1])}"


class TokenWords:
    """How sentences name the tokens of a run; this class names the simulator's. Tokens of text stand for themselves;
    tokens of named `segments` (name -> tokens, called when they are needed) are named by their place in them."""

    simulated = True
    unit = (
        "A token is one byte of text here, or one of the numbered tokens of a part that has only a name. Its KV is "
        "what the model computes for it and reads again for every later token."
    )

    def __init__(self, segments: Callable[[], Mapping[str, Sequence[int]]] = dict) -> None:
        self.segments = segments

    @cached_property
    def _segments(self) -> Mapping[str, Sequence[int]]:
        return self.segments()

    @cached_property
    def _places(self) -> dict[int, list[tuple[str, int]]]:
        """Token -> its places in the segments."""
        places: dict[int, list[tuple[str, int]]] = {}
        for name, tokens in self._segments.items():
            for number, token in enumerate(tokens):
                places.setdefault(token, []).append((name, number))
        return places

    def prepare(self) -> None:
        """Read the segments now, so that the first sentence about a token need not wait for it."""
        self._places  # noqa: B018

    def one(self, token: int, after: Sequence[int] = ()) -> str:
        """A token for people to read: `"a"`, `token 3 of "rules"`. If it stands at several places of the segments, the
        tokens `after` it decide between them."""
        stretches = sorted(self._stretches([token, *after]), key=_length, reverse=True)
        if not stretches or (len(stretches) > 1 and _length(stretches[0]) == _length(stretches[1])):
            return show_token(token)
        name, first, _ = stretches[0]
        return f'token {first:,} of "{name}"'

    def generated(self, token: int) -> str:
        """A token that a request has just generated: `#7`."""
        sampled = FIRST_SAMPLED_TOKEN <= token < FIRST_REDACTED_TOKEN
        return f"#{token - FIRST_SAMPLED_TOKEN}" if sampled else self.one(token)

    def run(self, tokens: Sequence[int], limit: int = 40) -> str:
        """The beginning of a run of tokens, in at most `limit` characters and the name of a segment."""
        if len(tokens) and tokens[0] in self._places:
            name, first, last = stretch = max(self._stretches(tokens), key=_length)
            which = f"token {first:,}" if first == last else f"tokens {first:,} to {last:,}"
            return f'{which} of "{name}"{" …" if _length(stretch) < len(tokens) else ""}'
        return show_tokens(tokens, limit)

    def _stretches(self, tokens: Sequence[int]) -> Iterator[tuple[str, int, int]]:
        """The segments that a run begins with: their names, and the first and last of their tokens that it has."""
        for name, first in self._places.get(tokens[0], ()):
            segment = self._segments[name]
            length = min(len(tokens), len(segment) - first)
            yield name, first, next((i for i in range(length) if segment[first + i] != tokens[i]), length) + first - 1


class EngineTokenWords(TokenWords):
    """Names the tokens of an engine: by their text if `decode` gives it, else by their numbers."""

    simulated = False
    unit = ""

    def __init__(self, decode: Callable[[Sequence[int]], str] | None = None) -> None:
        super().__init__()
        self.decode = decode

    def one(self, token: int, after: Sequence[int] = ()) -> str:
        text = self.decode([token]) if self.decode else ""
        whole = text and "\N{REPLACEMENT CHARACTER}" not in text  # a token may be a part of a character
        return f'"{printable(text)}"' if whole else f"#{token}"

    def generated(self, token: int) -> str:
        return self.one(token)

    def run(self, tokens: Sequence[int], limit: int = 40) -> str:
        if not len(tokens):
            return "nothing"
        if self.decode is None:
            return f"#{tokens[0]}" if len(tokens) == 1 else f"#{tokens[0]} … #{tokens[-1]}"
        text = printable(self.decode(list(tokens[: limit + 1])))  # a token is a character or more, as a rule
        cut = len(text) > limit or len(tokens) > limit + 1
        return f'"{text[: limit - 1] if len(text) > limit else text}{"…" if cut else ""}"'


def _length(stretch: tuple[str, int, int]) -> int:
    return stretch[2] - stretch[1] + 1


SIMULATED = TokenWords()
