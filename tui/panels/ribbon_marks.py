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
    """Runs of text with their styles, from a column of a row on."""

    row: int
    column: int
    runs: list[tuple[str, str]]

    @property
    def end(self) -> int:
        """The column behind it."""
        return self.column + sum(width_of(text) for text, _ in self.runs)


def put(labels: Iterable[Label], row: int, width: int) -> Line:
    """A line of the labels of a row, from left to right. One that does not fit is left out: half a number would be
    another number."""
    line = Line(width)
    for label in labels:
        if label.row == row and label.end <= width:
            line.to(label.column)
            for text, style in label.runs:
                line.add(text, style)
    return line


def put_between(labels: list[Label], others: Iterable[Label]) -> list[Label]:
    """The labels, and of the others those for which there is room between them, from left to right."""
    for other in others:
        beside = [label for label in labels if label.row == other.row]
        if all(other.end + 1 < label.column or label.end < other.column for label in beside):
            labels = [*labels, other]
    return sorted(labels, key=lambda label: label[:2])


def marks(layout: Layout, front: float) -> list[Label]:
    """How much was hit, where the first difference is (its mark drops when a motion has come past it), the answer."""
    model = layout.model
    difference = None if model.difference is None else layout.spot_of(model.difference)
    answer = _answer(layout)
    labels: list[Label] = []
    if model.hit_tokens:
        words = f"hit {model.hit_tokens:,}"
        row, end = layout.wall_behind(model.hit_tokens)
        if end >= len(words):
            labels.append(Label(row, end - len(words), [(words, "hit strong"), ("▏", "hit")]))
        elif difference is None or difference > (row, end + len(words) + 2):
            labels.append(Label(row, end, [("▏", "hit"), (words, "hit strong")]))
    if difference is not None:
        row, column = difference
        dropped = front > min(row * layout.width + column + layout.width / 3, layout.num_rows * layout.width)
        first = max([column, *(label.end + 1 for label in labels if label.row == row)])
        before = min([layout.width, *(label.column - 1 for label in answer[:1] if label.row == row)])
        labels.append(_difference(layout, row, first, dropped, before))
    return put_between(labels, answer)


def _difference(layout: Layout, row: int, column: int, dropped: bool, before: int) -> Label:
    """The mark above the token, and on its right what it says, in fewer words where there is less room, if possible
    `before` a column; on its left only if there is room for none of them."""
    model = layout.model
    where = f"token {model.difference:,}"
    first = f"first difference: {where}"
    against = f"{first} (against {printable(model.against)})" if model.against else first
    lost = f"{against} · {model.num_lost:,} of the {model.num_after:,} blocks after it hold the same text"
    mark = ("▼" if dropped else "╷", "evicted strong")
    for end in (before, layout.width):
        for words in (lost, against, first, where)[not model.num_lost or bool(model.drawn) :]:
            if column + 2 + width_of(words) <= end:
                return Label(row, column, [mark, (f" {words}", "evicted")])
    return Label(row, max(0, column - width_of(where) - 1), [(f"{where} ", "evicted"), mark])


def _answer(layout: Layout) -> list[Label]:
    """The ways to say where the answer begins, the better one first: `▏answer`, `answer▏`; with a `…` where it goes on
    behind a gap."""
    found = layout.answer()
    if found is None:
        return []
    (row, column), begins = found
    runs = [("▏" if begins else "…", "generated"), ("answer", "generated strong")]
    ways = Label(row, column, runs), Label(row, column - len("answer"), runs[::-1])
    return [way for way in ways if way.column >= 0 and way.end <= layout.width]


def block_signs(layout: Layout, front: float, mark: Callable[[Sign], str]) -> Iterator[Label]:
    """The sign and the number of every block that is shown, as far as a motion has come."""
    for row, column, end, piece in layout.places:
        if row * layout.width + column >= front or isinstance(piece, range):
            continue
        block = layout.first(piece)
        runs = [(f"{mark(block.sign)} ", str(block.sign))] if block.sign is not None else []
        if block.block is not None:
            runs.append((block.held if len(block.held) <= end - column - 3 else f"b{block.block}", "quiet"))
        yield Label(row, column + 1, runs)
