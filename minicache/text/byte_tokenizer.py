"""Tokenizers for which one byte is one token, so that every example can be counted by hand."""

import re
from array import array
from collections.abc import Sequence
from typing import Final

from minicache.text.tokenizer import Spans, check_range


class PlainByteTokenizer:
    """One byte of UTF-8 is one token, also in control strings, so that token counts depend on the text alone."""

    vocab_size = 256
    eos_ids: frozenset[int] = frozenset()
    normalizer = None

    def encode(self, text: str) -> list[int]:
        return list(self.encode_to_bytes(text))

    def encode_to_bytes(self, text: str) -> bytes:
        """The same ids as bytes: an eighth of the memory of a list, and a hundred times faster to compare."""
        return text.encode("utf-8", "surrogatepass")

    def encode_with_offsets(self, text: str) -> tuple[list[int], Spans]:
        starts, ends = array("q"), array("q")
        _add_spans_of_bytes(text, 0, starts, ends)
        return self.encode(text), Spans(starts, ends)

    def decode(self, tokens: Sequence[int], *, keep_control: bool = False) -> str:
        check_range(tokens, self.vocab_size)
        return bytes(tokens).decode("utf-8", "replace")


class ByteTokenizer:
    """One byte of UTF-8 is one token, so that every example can be counted by hand. Ids from 256 on are ChatML's
    control tokens."""

    CONTROL: Final = {"<|im_start|>": 256, "<|im_end|>": 257, "<|endoftext|>": 258}
    _SPLIT = re.compile("(" + "|".join(re.escape(name) for name in CONTROL) + ")")

    vocab_size = 256 + len(CONTROL)
    eos_ids = frozenset({CONTROL["<|im_end|>"], CONTROL["<|endoftext|>"]})
    normalizer = None

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = []
        for part in self._SPLIT.split(text):
            if part in self.CONTROL:
                tokens.append(self.CONTROL[part])
            else:
                tokens.extend(part.encode("utf-8", "surrogatepass"))
        return tokens

    def encode_with_offsets(self, text: str) -> tuple[list[int], Spans]:
        starts, ends, start = array("q"), array("q"), 0
        for part in self._SPLIT.split(text):
            if part in self.CONTROL:
                starts.append(start)
                ends.append(start + len(part))
            else:
                _add_spans_of_bytes(part, start, starts, ends)
            start += len(part)
        return self.encode(text), Spans(starts, ends)

    def decode(self, tokens: Sequence[int], *, keep_control: bool = False) -> str:
        check_range(tokens, self.vocab_size)
        names = {token: name.encode() if keep_control else b"" for name, token in self.CONTROL.items()}
        return b"".join(names[t] if t in names else bytes([t]) for t in tokens).decode("utf-8", "replace")


def _add_spans_of_bytes(text: str, start: int, starts: "array[int]", ends: "array[int]") -> None:
    """Add the span of each byte of `text`, whose first character is character number `start`."""
    if text.isascii():
        starts.extend(range(start, start + len(text)))
        ends.extend(range(start + 1, start + len(text) + 1))
        return
    for index, character in enumerate(text, start):
        for _ in character.encode("utf-8", "surrogatepass"):
            starts.append(index)
            ends.append(index + 1)
