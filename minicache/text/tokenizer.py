"""From text to token ids and back.

    "Zoë" --encode--> [90, 111, 195, 171] --decode--> "Zoë"       (with a token for each byte: `byte_tokenizer.py`)

`StreamDecoder` decodes one token at a time: 195 alone is half a character, so it returns no text until 171 follows.
"""

import json
import re
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, overload

from minicache.common.files import require_end
from minicache.common.json_reader import read_json
from minicache.text.errors import TokenizerFailed
from minicache.text.tokenizers_library import Backend

_JOINED = re.compile(r"\S*")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # a decoder writes this for bytes that are not, or not yet, a character


class Tokenizer(Protocol):
    """The interface of all tokenizers. `encode` recognises control tokens (`<|im_start|>`, …) in the text, because
    templates write them as text."""

    @property
    def vocab_size(self) -> int:
        """Every id is in `range(vocab_size)`."""
        ...

    @property
    def eos_ids(self) -> frozenset[int]:
        """Ids that end an answer when one of them is sampled."""
        ...

    def encode(self, text: str) -> list[int]:
        """The token ids of `text`; nothing is added before or after."""
        ...

    def encode_with_offsets(self, text: str) -> tuple[list[int], "Spans"]:
        """The same ids, and for each token the characters of `text` that it stands for."""
        ...

    @property
    def normalizer(self) -> str | None:
        """The normaliser that changes a text before it is cut into tokens, such as "NFC", or `None`. With a normaliser
        different texts can have equal ids."""
        ...

    def decode(self, tokens: Sequence[int], *, keep_control: bool = False) -> str:
        """The text of `tokens`, without control tokens unless `keep_control`.

        Bytes that form no character become U+FFFD. Raises `TokenizerFailed` on an id outside the vocabulary.
        """
        ...


class Spans(Sequence[tuple[int, int]]):
    """For each token the characters [start, end) that it stands for, in order and without gaps.

    Tokens that share a character, such as the two bytes of one "é", have equal or overlapping spans.
    """

    def __init__(self, starts: "array[int]", ends: "array[int]") -> None:
        self._starts, self._ends = starts, ends

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, int]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, int] | list[tuple[int, int]]:
        if isinstance(index, slice):
            return list(zip(self._starts[index], self._ends[index], strict=True))
        return self._starts[index], self._ends[index]


class StreamDecoder:
    """Decodes tokens one by one into pieces of text that never split a character.

    All pieces from `push`, then the rest from `finish`, are exactly `tokenizer.decode` of all tokens.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._context: list[int] = []  # tokens already decoded, kept because some decoders depend on earlier tokens
        self._context_text = ""
        self._pending: list[int] = []  # tokens whose text is not complete yet

    def push(self, token: int) -> str:
        """The text that `token` completes; empty while a character is incomplete."""
        self._pending.append(token)
        return self._take(wait=True)

    def finish(self) -> str:
        """The rest of the text, with U+FFFD for a character that is still incomplete."""
        return self._take(wait=False)

    def _take(self, wait: bool) -> str:
        text = self._tokenizer.decode([*self._context, *self._pending])
        if wait and text.endswith(REPLACEMENT):
            return ""
        piece = text[len(self._context_text) :]
        if piece:  # a control token has no text: it stays pending, and the context stays as it is
            self._context, self._pending = self._pending, []
            self._context_text = self._tokenizer.decode(self._context)
        return piece


class HubTokenizer:
    """The tokenizer of a Hugging Face folder: its `tokenizer.json`, and the end tokens named in its configs.

    `folder` may also be the path of the tokenizer.json itself. With `special_tokens`, `encode` adds the tokens that
    this tokenizer puts around every text, such as a first token. Most chat templates write this token too; then it is
    there twice. `patient` is as for `tokenizers_library.Backend`. Every method raises `TokenizerFailed` if the
    `tokenizers` package or a readable file is missing, or if the library fails on the text.
    """

    def __init__(self, folder: str | Path, *, special_tokens: bool = False, patient: bool = True) -> None:
        path = Path(folder)
        if path.is_dir() or path.suffix != ".json":
            path = path / "tokenizer.json"
        folder = path.parent
        if not path.is_file():
            raise TokenizerFailed(f"{path} does not exist: a model folder needs its tokenizer there")
        self._backend = Backend(path, patient=patient)
        self.vocab_size: int = self._backend.vocab_size
        self.eos_ids: frozenset[int] = frozenset(self._end_ids(folder))
        self.special_tokens = special_tokens

    @property
    def normalizer(self) -> str | None:
        normalizer = self._backend.normalizer()
        return None if normalizer is None else _normalizer_name(json.loads(normalizer)) or None

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._backend.encode(text, special_tokens=self.special_tokens).ids
        return ids

    def encode_with_offsets(self, text: str) -> tuple[list[int], Spans]:
        encoding = self._backend.encode(text, special_tokens=self.special_tokens)
        starts, ends, last, added = array("q"), array("q"), 0, 0  # the last `added` tokens stand for no character
        for (start, end), special in zip(encoding.offsets, encoding.special_tokens_mask, strict=True):
            if special:
                start = end = last
            elif start > last:
                # Characters in no span: a mark that the normaliser joined to the character before it belongs to the
                # token before, and a space that the tokenizer left out of the span of its word belongs to the word.
                joined = _JOINED.match(text, last, start).end()  # type: ignore[union-attr]
                if ends:
                    ends[-1] = joined
                start = joined
            last, added = max(last, end), added + 1 if special else 0
            starts.append(start)
            ends.append(last)
        final = len(ends) - added
        if final and last < len(text):
            ends[final - 1] = len(text)
            for index in range(final, len(ends)):
                starts[index] = ends[index] = len(text)
        return encoding.ids, Spans(starts, ends)

    def decode(self, tokens: Sequence[int], *, keep_control: bool = False) -> str:
        check_range(tokens, self.vocab_size)
        return self._backend.decode(list(tokens), skip_special_tokens=not keep_control)

    def _end_ids(self, folder: Path) -> set[int]:
        """`eos_token_id` of generation_config.json and config.json, `eos_token` of tokenizer_config.json."""
        ends: set[int] = set()
        for name in ("generation_config.json", "config.json"):
            value = read_json_object(folder / name).get("eos_token_id")
            ends.update(id for id in (value if isinstance(value, list) else [value]) if type(id) is int)
        token = token_text(read_json_object(folder / "tokenizer_config.json").get("eos_token"))
        id = None if token is None else self._backend.id_of(token)
        return ends if id is None else ends | {id}


def token_text(value: Any) -> str | None:
    """The text of a token in tokenizer_config.json, which is a text or an object with a `content`; else `None`."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def read_json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if the file does not exist. Raises `TokenizerFailed` if it holds anything
    else."""
    if not path.is_file():
        return {}
    try:
        value = read_json(require_end(path).read_bytes())
    except OSError as error:
        raise TokenizerFailed(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise TokenizerFailed(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise TokenizerFailed(f"{path} must hold a JSON object, not {type(value).__name__}")
    return value


def _normalizer_name(state: dict[str, Any]) -> str:
    """The type of a normaliser in tokenizer.json; of a sequence, all types joined by " + "."""
    inner = state.get("normalizers")
    return state["type"] if inner is None else " + ".join(map(_normalizer_name, inner))


def check_range(tokens: Sequence[int], vocab_size: int) -> None:
    """Raises `TokenizerFailed` if an id is outside the vocabulary."""
    for position, token in enumerate(tokens):
        if not 0 <= token < vocab_size:
            raise TokenizerFailed(f"token {token} at position {position} is outside the vocabulary of {vocab_size}")
