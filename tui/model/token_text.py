"""Tokens as people read them, cut into pieces: text whole, named segments by their name, sampled tokens by number."""

from collections.abc import Callable, Iterable, Sequence

from minicache.sim.prompt import Run
from minicache.sim.tokens import FIRST_REDACTED_TOKEN, FIRST_SAMPLED_TOKEN, FIRST_SEGMENT_TOKEN

Decoder = Callable[[Sequence[int]], str]

_VISIBLE = {code: 0x2400 + code for code in range(32)} | {ord("\n"): "↵", ord("\t"): "→", 127: "␡"}
INSIDE = "·"  # a token in the middle of a character
LIMIT = 64  # characters of one piece
LONGEST_CHARACTER = 4  # bytes, and tokens at most
BROKEN = "\N{REPLACEMENT CHARACTER}"  # what a decoder gives for a part of a character


def visible(text: str) -> str:
    """The text with control characters made visible."""
    return text.translate(_VISIBLE)


class TokenText:
    """The text of pieces of one run of tokens. `runs` says which segment tokens come from which part of the prompt;
    `decode` gives the text of an engine's tokens. Built for one sequence; pieces may be asked for in any order, and
    `pieces` keeps them for the same sequence when it has grown.
    """

    def __init__(
        self,
        tokens: Sequence[int],
        runs: Iterable[Run] = (),
        decode: Decoder | None = None,
        pieces: dict[tuple[int, int], str] | None = None,
    ) -> None:
        self.tokens = tokens
        self.runs = list(runs)
        self.decode = decode
        self._pieces = {} if pieces is None else pieces
        self._chars: dict[int, str] = {}  # position of the first byte of a character -> the character

    def piece(self, start: int, end: int) -> str:
        """The text of tokens `[start, end)`. A character belongs to the piece in which it begins."""
        text = self._pieces.get((start, end))
        if text is None:
            text = self._piece(start, end)
            if end + LONGEST_CHARACTER <= len(self.tokens):  # what comes later does not change it
                self._pieces[start, end] = text
        return text

    def _piece(self, start: int, end: int) -> str:
        if self.decode is not None:
            return visible(self._decoded(self.decode, start, end))
        parts: list[str] = []
        at = start
        while at < end and sum(map(len, parts)) < LIMIT:
            token = self.tokens[at]
            stop = self._stretch(at, end)
            if token < FIRST_SEGMENT_TOKEN:
                self._read_text(at)
                parts.append("".join(self._chars.get(i, "") for i in range(at, min(stop, at + LIMIT))) or INSIDE)
            elif token < FIRST_SAMPLED_TOKEN:
                parts.append(self._segment(at, stop))
            elif token < FIRST_REDACTED_TOKEN:
                parts.append(" ".join(f"#{t - FIRST_SAMPLED_TOKEN}" for t in self.tokens[at : min(stop, at + 12)]))
            else:
                parts.append("redacted")
            at = stop
        return " ".join(part for part in parts if part)

    def _decoded(self, decode: Decoder, start: int, end: int) -> str:
        """What a decoder makes of tokens `[start, end)`, among the tokens around them where they cut a character."""
        text = decode(list(self.tokens[start:end]))
        if BROKEN not in text:
            return text
        before = max(0, start - LONGEST_CHARACTER + 1)  # a character that goes on at `start` begins here or later
        behind = list(self.tokens[before : end + LONGEST_CHARACTER - 1])
        text = decode(behind)

        def begun(stop: int) -> int:
            """How many characters of the text begin before token `stop`."""
            alone = decode(behind[: stop - before])
            for index, (char, whole) in enumerate(zip(alone, text, strict=False)):
                if char != whole:  # it is whole only with what is behind it
                    return index + 1
            return min(len(alone), len(text))

        return text[begun(start) : begun(end)] or INSIDE

    def whole(self) -> str:
        """All of the text, in one piece."""
        if self.decode is not None:
            return visible(self.decode(list(self.tokens)))
        parts = []
        at = 0
        while at < len(self.tokens):
            stop = self._stretch(at, len(self.tokens))
            if self.tokens[at] < FIRST_SEGMENT_TOKEN:
                parts.append(visible(bytes(self.tokens[at:stop]).decode("utf-8", "replace")))
            else:
                parts.append(self.piece(at, stop))
            at = stop
        return " ".join(parts)

    def _stretch(self, start: int, end: int) -> int:
        """Where the tokens that are of one kind, and of one part of the prompt, end."""
        kind = _kind(self.tokens[start])
        if kind == 1:
            for run in self.runs:
                if run.start <= start < run.end:
                    return min(run.end, end)
        return next((i for i in range(start + 1, end) if _kind(self.tokens[i]) != kind), end)

    def _segment(self, start: int, end: int) -> str:
        """`rules and tools 48–63`: the name of the part and which of its tokens."""
        run = next((run for run in self.runs if run.start <= start < run.end), None)
        if run is None:
            first, last = self.tokens[start], self.tokens[end - 1]
            return f"#{first}" if end - start == 1 else f"#{first}…#{last}"
        first, last = start - run.start, end - 1 - run.start
        return f"{run.label} {first}" if first == last else f"{run.label} {first}–{last}"

    def _read_text(self, at: int) -> None:
        """Decode the bytes around `at`, so that characters are whole."""
        start = at
        while start and at - start < 4 and self.tokens[start - 1] < FIRST_SEGMENT_TOKEN:
            if self.tokens[start] & 0xC0 != 0x80:  # the first byte of a character
                break
            start -= 1
        position = start
        end = min(len(self.tokens), at + LIMIT + 4)
        while position < end and self.tokens[position] < FIRST_SEGMENT_TOKEN:
            length = self._char(position)
            position += length

    def _char(self, at: int) -> int:
        """Remember the character that begins at `at`; returns how many bytes it has."""
        first = self.tokens[at]
        size = 1 if first < 0x80 else 2 if first >> 5 == 0b110 else 3 if first >> 4 == 0b1110 else 4
        data = [token for token in self.tokens[at : at + size] if token < FIRST_SEGMENT_TOKEN]
        try:
            self._chars[at] = visible(bytes(data).decode()) if len(data) == size else "�"
        except UnicodeDecodeError:
            self._chars[at] = "�"
            return 1
        return len(data)


def _kind(token: int) -> int:
    """0 is text, 1 of a segment, 2 sampled, 3 redacted."""
    return (token >= FIRST_SEGMENT_TOKEN) + (token >= FIRST_SAMPLED_TOKEN) + (token >= FIRST_REDACTED_TOKEN)
