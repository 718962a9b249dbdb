"""The marks above and below the ribbon's text: where the hit ends, the first difference, the answer, signs of blocks.

         hit 16▏         ▼ first difference: token 25           ▏answer
◆ b1             ▲ b44                            ▲ b193
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..signs import Sign
from .line import Line, printable, width_of
from .ribbon_layout import Layout


class Label(NamedTuple):
    """Runs of text with their styles, from a column on."""

    column: int
    runs: list[tuple[str, str]]

    @property
    def end(self) -> int:
        """The column behind it."""
        return self.column + sum(width_of(text) for text, _ in self.runs)


def put(labels: Iterable[Label], width: int) -> Line:
    """A line of labels, from left to right."""
    line = Line(width)
    for column, runs in labels:
        line.to(column)
        for text, style in runs:
            line.add(text, style)
    return line


def put_between(labels: list[Label], others: Iterable[Label]) -> list[Label]:
    """The labels, and of the others those for which there is room between them, from left to right."""
    for other in others:
        if all(other.end + 1 < label.column or label.end < other.column for label in labels):
            labels = [*labels, other]
    return sorted(labels, key=lambda label: label.column)


def marks(layout: Layout, front: float) -> list[Label]:
    """How much was hit, where the first difference is (its mark drops when a motion has come past it), the answer."""
    model = layout.model
    difference = None if model.difference is None else layout.column_of(model.difference)
    answer = _answer(layout)
    labels: list[Label] = []
    if model.hit_tokens:
        words, end = f"hit {model.hit_tokens:,}", layout.wall_before(model.hit_tokens)
        if end >= len(words):
            labels.append(Label(end - len(words), [(words, "hit strong"), ("▏", "hit")]))
        elif difference is None or difference > end + len(words) + 2:
            labels.append(Label(end, [("▏", "hit"), (words, "hit strong")]))
    if difference is not None:
        dropped = front > min(difference + layout.width / 3, layout.width)
        first = labels[-1].end + 1 if labels else 0
        before = answer[0].column - 1 if answer else layout.width
        labels.append(_difference(layout, difference, dropped, first, before))
    return put_between(labels, answer)


def _difference(layout: Layout, column: int, dropped: bool, first: int, before: int) -> Label:
    """The mark above the token, and on its right what it says, in fewer words where there is less room, if possible
    `before` a column; on its left only if there is room for none of them. It begins at column `first` or later."""
    model = layout.model
    where = f"token {model.difference:,}"
    against = printable(f" (against {model.against})") if model.against else ""
    mark = ("▼" if dropped else "╷", "evicted strong")
    begin = max(first, column)
    for end in (before, layout.width):
        for words in (f"first difference: {where}{against}", f"first difference: {where}", where):
            if begin + 2 + width_of(words) <= end:
                return Label(begin, [mark, (f" {words}", "evicted")])
    return Label(max(first, column - width_of(where) - 1), [(f"{where} ", "evicted"), mark])


def _answer(layout: Layout) -> list[Label]:
    """The ways to say where the answer begins, the better one first: `▏answer`, `answer▏`; with a `…` where it goes on
    behind a gap."""
    column, begins = layout.answer()
    runs = [("▏" if begins else "…", "generated"), ("answer", "generated strong")]
    ways = Label(column, runs), Label(column - len("answer"), runs[::-1])
    return [way for way in ways if way.column >= 0 and way.end <= layout.width and column < layout.end]


def block_signs(layout: Layout, front: float, mark: Callable[[Sign], str]) -> Iterator[Label]:
    """The sign and the number of every block that is shown, as far as a motion has come."""
    for column, piece in layout.columns:
        if column >= front or isinstance(piece, range):
            continue
        block = layout.first(piece)
        runs = [(f"{mark(block.sign)} ", str(block.sign))] if block.sign is not None else []
        if block.block is not None:
            room = width_of(layout.texts[piece]) - 2
            runs.append((block.held if len(block.held) <= room else f"b{block.block}", "quiet"))
        yield Label(column + 1, runs)
