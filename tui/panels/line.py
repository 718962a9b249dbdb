"""A line of a panel, as runs of text with the name of a style each; and the one door through which text gets in.

Prompts are anybody's text. Whatever is added to a line goes through `printable`, so nothing in a prompt can move the
cursor, set a title, change a colour, turn the direction of writing or disturb what stands beside it.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from rich.cells import cell_len

REPLACEMENT = "·"
_DROPPED = {0x200D, *range(0xFE00, 0xFE10), *range(0x1F3FB, 0x1F400)}  # they change the width of their neighbours
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def printable(text: str) -> str:
    """The text with every character that is not drawn, or that acts on others, replaced: one cell or two for each.

    Accents stay if they have a letter to stand on. An emoji that is put together from several is drawn as several, for
    terminals do not agree how wide it is.
    """
    return text if text.isascii() and text.isprintable() else _replaced(text)


@lru_cache(maxsize=4096)
def _replaced(text: str) -> str:
    if all(map(_stays, set(text))):
        return text
    shown: list[str] = []
    for char in text:
        code = ord(char)
        if code in _DROPPED:
            continue
        if code in _FLAG_LETTERS:
            shown.append(chr(code - _FLAG_LETTERS.start + ord("A")))
        elif not char.isprintable():  # control, format, surrogate, private use, unassigned, and spaces but " "
            shown.append(" " if unicodedata.category(char) == "Zs" else REPLACEMENT)
        elif cell_len(char) == 0:
            shown.append(char if shown and cell_len(shown[-1][0]) == 1 and shown[-1] != REPLACEMENT else REPLACEMENT)
        else:
            shown.append(char)
    return "".join(shown)


@lru_cache(maxsize=4096)
def _stays(char: str) -> bool:
    """Whether it is drawn as it is, whatever stands beside it."""
    code = ord(char)
    return code not in _DROPPED and code not in _FLAG_LETTERS and char.isprintable() and cell_len(char) > 0


def width_of(text: str) -> int:
    """Cells that a printable text takes: that of its characters, one by one."""
    return len(text) if text.isascii() else _width_of(text)


@lru_cache(maxsize=4096)
def _width_of(text: str) -> int:
    others = _NOT_ASCII.findall(text)
    return len(text) - len(others) + sum(map(cell_len, others))


def cut(text: str, width: int, sign: str = "…") -> str:
    """The printable text in at most `width` cells; `sign` stands for what is left out. No character is halved."""
    if width_of(text) <= width:
        return text
    room = width - width_of(sign)
    if room < 0:
        return ""
    return head(text, room) + sign


def head(text: str, width: int) -> str:
    """The first characters of a printable text that fit into `width` cells, and the accents on them."""
    if text.isascii():
        return text[: max(width, 0)]
    taken = 0
    for index, char in enumerate(text):
        taken += cell_len(char)
        if taken > width:
            return text[:index]
    return text


def _measured(text: str) -> tuple[str, int]:
    """The printable text and its width."""
    return (text, len(text)) if text.isascii() and text.isprintable() else _measured_slowly(text)


@lru_cache(maxsize=4096)
def _measured_slowly(text: str) -> tuple[str, int]:
    text = _replaced(text)
    return text, width_of(text)


class Line:
    """Runs of text from left to right, up to `width` cells: what does not fit is cut. Style names are words with
    spaces between, of which later ones go over earlier ones: `hit cursor`."""

    __slots__ = ("_runs", "end", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.end = 0  # cells so far
        self._runs: list[tuple[str, str]] = []

    def add(self, text: str, style: str = "", width: int | None = None, right: bool = False) -> "Line":
        """Append the text; with `width`, cut it to so many cells (with a `…`) and fill these up."""
        text, cells = _measured(text)
        room = self.width - self.end
        if width is not None:
            if cells > min(width, room):
                text = cut(text, min(width, room))
                cells = width_of(text)
            space = " " * (width - cells)
            text = space + text if right else text + space
            cells += len(space)
        if cells > room:
            text = head(text, room)
            text += " " * (room - width_of(text))  # half of a wide character
            cells = room
        if text:
            if self._runs and self._runs[-1][1] == style:
                self._runs[-1] = (self._runs[-1][0] + text, style)
            else:
                self._runs.append((text, style))
            self.end += cells
        return self

    def to(self, column: int, style: str = "", fill: str = " ") -> "Line":
        """Fill up to a column."""
        return self.add(fill * (min(column, self.width) - self.end), style)

    @property
    def room(self) -> int:
        return self.width - self.end

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self._runs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._runs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and self._runs == other._runs and self.width == other.width

    __hash__ = None  # type: ignore[assignment] # it changes


_PAIRS = """
    │| ┃| ─- ━- ├( └` ┤) ┬+ ┴+ ╷| ╵| ▏| ▌] ▼V ▶> ◀< →> ←< ↑^ ↓v ‹< ›> ×x …~ –- —- ‘' ’' “" ”" ✓D ‖P █# ▓+ ░.
    †T ▷w ◇p ·. ○o ●# ◉& ◆= ▲+ ▴^ ▾v ✕x ∅N ■B •* ▁_ ▂, ▃; ▄: ▅" ▆* ▇% ½h ¼q ⅛e ↵$
"""
_ASCII = str.maketrans({pair[0]: pair[1] for pair in _PAIRS.split()})


@lru_cache(maxsize=4096)
def ascii_only(text: str) -> str:
    """The printable text for a terminal that has ASCII alone, in as many cells."""
    if text.isascii():
        return text
    text = text.translate(_ASCII)
    return text if text.isascii() else "".join(char if char.isascii() else "?" * cell_len(char) for char in text)


def wrapped(text: str, width: int) -> list[str]:
    """The printable text in lines of at most `width` cells, broken between words; a word that is longer is broken."""
    return list(_wrapped(text, width))


@lru_cache(maxsize=1024)
def _wrapped(text: str, width: int) -> tuple[str, ...]:
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in printable(paragraph).split():
            while width_of(word) > width:  # as much of it as there is room for
                begun = f"{line} " if line and width_of(line) + 2 <= width else ""
                if line and not begun:
                    lines.append(line)
                taken = head(word, width - width_of(begun)) or word[0]
                lines.append(begun + taken)
                line, word = "", word[len(taken) :]
            if line and width_of(line) + 1 + width_of(word) > width:
                lines.append(line)
                line = ""
            line = f"{line} {word}" if line and word else line or word
        lines.append(line)
    return tuple(lines)
