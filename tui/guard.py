"""The last door before the terminal: whatever widget a line comes from, only what can be printed goes out.

Panels, dialogs and notes make their words printable where these come in (`panels.line.printable`,
`MinicacheApp.plain`), and show there what they replace. A line that somebody forgot, or that a widget of Textual's
drew, goes through here too, in as many cells as it had: what has no width is left out.
"""

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from minicache.common.printable import replace_unprintable

from .panels.line import REPLACEMENT, ascii_only


class Guard(LineFilter):
    """With `ascii`, for a terminal that has nothing else."""

    def __init__(self, ascii: bool = False) -> None:
        super().__init__()
        self._ascii = ascii

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if all(map(self._may_pass, segments)):
            return segments
        return [segment if self._may_pass(segment) else self._cleaned(segment) for segment in segments]

    def _may_pass(self, segment: Segment) -> bool:
        return segment.text.isprintable() and (not self._ascii or segment.text.isascii())

    def _cleaned(self, segment: Segment) -> Segment:
        # In as many cells: a control character, one that turns the writing or a lone surrogate cannot stand for itself.
        text = replace_unprintable(segment.text, lambda char: REPLACEMENT * cell_len(char))
        text = ascii_only(text) if self._ascii else text
        return Segment(set_cell_size(text, segment.cell_length), segment.style)
