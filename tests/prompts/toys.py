"""Tokenizers small enough to follow by hand."""

import unicodedata
from array import array
from collections.abc import Sequence

from minicache.text.byte_tokenizer import PlainByteTokenizer
from minicache.text.tokenizer import Spans


class ToyPairs:
    """Letters and merges of two neighbours, the merge of the lowest rank first. `|` is a special token: nothing merges
    across it, and `<bos>` begins a text."""

    eos_ids: frozenset[int] = frozenset()
    normalizer = None

    def __init__(self, letters: str = "abc", merges: Sequence[str] = ("bc", "ab"), *, add_bos: bool = False) -> None:
        # Case 7: a0 b1 c2, merges of rank 1 b+c -> 4 and of rank 2 a+b -> 3.
        ids = range(len(letters) + len(merges) - 1, len(letters) - 1, -1)
        self.merges = list(merges)
        self.pieces = {letter: i for i, letter in enumerate(letters)} | dict(zip(merges, ids, strict=True))
        self.pieces |= {"|": len(self.pieces), "<bos>": len(self.pieces) + 1}
        self.add_bos = add_bos
        self.vocab_size = len(self.pieces)

    def _split(self, text: str) -> list[str]:
        pieces = ["<bos>"] if self.add_bos else []
        while text:
            special = next((name for name in ("|", "<bos>") if text.startswith(name)), None)
            if special:
                pieces.append(special)
                text = text[len(special) :]
                continue
            end = min((at for at in (text.find("|"), text.find("<bos>")) if at >= 0), default=len(text))
            pieces += self._merge(list(text[:end]))
            text = text[end:]
        return pieces

    def _merge(self, word: list[str]) -> list[str]:
        for merge in self.merges:
            i = 0
            while i < len(word) - 1:
                if word[i] + word[i + 1] == merge:
                    word[i : i + 2] = [merge]
                i += 1
        return word

    def encode(self, text: str) -> list[int]:
        return [self.pieces[piece] for piece in self._split(text)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], Spans]:
        starts, ends, at = array("q"), array("q"), 0
        for number, piece in enumerate(self._split(text)):
            added = self.add_bos and number == 0
            starts.append(at)
            at += 0 if added else len(piece)
            ends.append(at)
        return self.encode(text), Spans(starts, ends)

    def decode(self, tokens: Sequence[int], *, keep_control: bool = False) -> str:
        names = {id: piece for piece, id in self.pieces.items()}
        return "".join(names[token] for token in tokens if keep_control or names[token] not in ("|", "<bos>"))


class ComposedBytes(PlainByteTokenizer):
    """The bytes of a text in Unicode's composed form, as a tokenizer with an NFC normaliser encodes it."""

    normalizer = "NFC"

    def encode_to_bytes(self, text: str) -> bytes:
        return super().encode_to_bytes(unicodedata.normalize("NFC", text))

    def encode_with_offsets(self, text: str) -> tuple[list[int], Spans]:
        """Characters are composed one by one: a letter and the mark after it share the tokens of the letter."""
        starts, ends = array("q"), array("q")
        at = 0
        while at < len(text):
            length = 2 if unicodedata.combining(text[at + 1 : at + 2] or "a") else 1
            size = len(unicodedata.normalize("NFC", text[at : at + length]).encode())
            starts.extend([at] * size)
            ends.extend([at + length] * size)
            at += length
        return self.encode(text), Spans(starts, ends)
