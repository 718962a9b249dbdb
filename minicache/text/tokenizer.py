"""Text to token ids and back.

    "Zoë" --encode--> [90, 111, 195, 171] --decode--> "Zoë"       (ByteTokenizer: one byte is one token)

`StreamDecoder` goes back one token at a time: 195 alone is half a character, so it gives nothing until 171 comes.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from minicache.text.errors import TokenizerFailed

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # what a decoder writes for bytes that are not, or not yet, a character


class Tokenizer(Protocol):
    """Control tokens (`<|im_start|>`, …) are recognised in the text that is encoded: templates write them as text."""

    @property
    def vocab_size(self) -> int:
        """Every id is in `range(vocab_size)`."""
        ...

    @property
    def eos_ids(self) -> frozenset[int]:
        """Ids that end an answer when they are sampled."""
        ...

    def encode(self, text: str) -> list[int]:
        """The token ids of `text`; nothing is added before or after."""
        ...

    def decode(self, tokens: Sequence[int], *, keep_control: bool = False) -> str:
        """The text of `tokens`, without control tokens unless `keep_control`.

        Bytes that form no character become U+FFFD. Raises `TokenizerFailed` on an id outside the vocabulary.
        """
        ...


class StreamDecoder:
    """Turns tokens into text as they come, in pieces that never split a character.

    The pieces of `push` and the rest from `finish` together are exactly `tokenizer.decode` of all tokens.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._context: list[int] = []  # tokens already given out, kept because some decoders look at what came before
        self._context_text = ""
        self._pending: list[int] = []  # tokens whose text is not complete

    def push(self, token: int) -> str:
        """The text that `token` completes: empty while a character is unfinished."""
        self._pending.append(token)
        return self._take(wait=True)

    def finish(self) -> str:
        """What is left, U+FFFD for a character that never became whole."""
        return self._take(wait=False)

    def _take(self, wait: bool) -> str:
        text = self._tokenizer.decode([*self._context, *self._pending])
        if wait and text.endswith(REPLACEMENT):
            return ""
        piece = text[len(self._context_text) :]
        if piece:  # a control token has no text: it stays pending, and the context stays the last token that had some
            self._context, self._pending = self._pending, []
            self._context_text = self._tokenizer.decode(self._context)
        return piece


class ByteTokenizer:
    """One byte of UTF-8 is one token, so that every example can be counted by hand; ids from 256 on are ChatML's."""

    CONTROL: Final = {"<|im_start|>": 256, "<|im_end|>": 257, "<|endoftext|>": 258}
    _SPLIT = re.compile("(" + "|".join(re.escape(name) for name in CONTROL) + ")")

    vocab_size = 256 + len(CONTROL)
    eos_ids = frozenset({CONTROL["<|im_end|>"], CONTROL["<|endoftext|>"]})

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = []
        for part in self._SPLIT.split(text):
            if part in self.CONTROL:
                tokens.append(self.CONTROL[part])
            else:
                tokens.extend(part.encode("utf-8", "surrogatepass"))
        return tokens

    def decode(self, tokens: Sequence[int], *, keep_control: bool = False) -> str:
        _check_range(tokens, self.vocab_size)
        names = {token: name.encode() if keep_control else b"" for name, token in self.CONTROL.items()}
        return b"".join(names[t] if t in names else bytes([t]) for t in tokens).decode("utf-8", "replace")


class HubTokenizer:
    """The tokenizer of a Hugging Face folder: `tokenizer.json`, and the ends named in the configs beside it."""

    def __init__(self, folder: str | Path) -> None:
        from tokenizers import Tokenizer as Backend

        path = Path(folder) / "tokenizer.json"
        if not path.is_file():
            raise TokenizerFailed(f"{path} does not exist: a model folder needs its tokenizer there")
        try:
            self._backend = Backend.from_file(str(path))
        except Exception as error:  # the library raises a bare Exception
            raise TokenizerFailed(f"{path} is not a tokenizer that the tokenizers library can read: {error}") from None
        self.vocab_size: int = self._backend.get_vocab_size(with_added_tokens=True)
        self.eos_ids: frozenset[int] = frozenset(self._end_ids(Path(folder)))

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, tokens: Sequence[int], *, keep_control: bool = False) -> str:
        _check_range(tokens, self.vocab_size)
        text: str = self._backend.decode(list(tokens), skip_special_tokens=not keep_control)
        return text

    def _end_ids(self, folder: Path) -> set[int]:
        """`eos_token_id` of generation_config.json and config.json, `eos_token` of tokenizer_config.json."""
        ends: set[int] = set()
        for name in ("generation_config.json", "config.json"):
            value = read_json_object(folder / name).get("eos_token_id")
            ends.update(id for id in (value if isinstance(value, list) else [value]) if isinstance(id, int))
        token = token_text(read_json_object(folder / "tokenizer_config.json").get("eos_token"))
        id = None if token is None else self._backend.token_to_id(token)
        return ends if id is None else ends | {id}


def token_text(value: Any) -> str | None:
    """A token as tokenizer_config.json writes it: plain text, or an object with a `content`."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def read_json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file, empty if there is no such file; raises `TokenizerFailed` if it holds anything else."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TokenizerFailed(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise TokenizerFailed(f"{path} must hold a JSON object, not {type(value).__name__}")
    return value


def _check_range(tokens: Sequence[int], vocab_size: int) -> None:
    for position, token in enumerate(tokens):
        if not 0 <= token < vocab_size:
            raise TokenizerFailed(f"token {token} at position {position} is outside the vocabulary of {vocab_size}")
