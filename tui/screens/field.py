"""A field for a line of text that shows every character of it, also those that a terminal would obey."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text
from textual.events import Paste
from textual.widgets import Input

from ..model.token_text import visible
from ..panels.line import REPLACEMENT, ascii_only, printable

if TYPE_CHECKING:
    from ..app import MinicacheApp


class Field(Input):
    """Its `value` is what was typed or pasted, to the character. Several lines that are pasted are one text: `↵` stands
    for each of their ends, and only the key `enter` submits."""

    app: MinicacheApp

    def _on_paste(self, event: Paste) -> None:
        """In the place of Textual's, which keeps the first line."""
        event.stop()
        event.prevent_default()
        if event.text:
            self.replace(event.text.replace("\r\n", "\n").replace("\r", "\n"), *self.selection)

    # Textual draws `_value`, and asks `_position_to_cell` for the cell of a character.

    @property
    def _value(self) -> Text:
        return Text(self._shown(self.value), no_wrap=True, overflow="ignore", end="")

    def _position_to_cell(self, position: int) -> int:
        return cell_len(self._shown(self.value[:position]))

    def _cell_offset_to_index(self, offset: int) -> int:
        """The character at a cell that was clicked."""
        cells = offset + self.scroll_offset.x
        return max(0, bisect_right(range(len(self.value) + 1), cells, key=self._position_to_cell) - 1)

    def _shown(self, text: str) -> str:
        shown = seen(text)
        return "".join(ascii_only(char)[:1] or "." for char in shown) if self.app.ascii else shown


def seen(text: str) -> str:
    """The text in as many characters, each of which is seen; an accent stays on its letter."""
    if text.isascii() and text.isprintable():
        return text
    shown = ""
    for char in visible(text):
        if printable(shown[-1:] + char) == shown[-1:] + char:
            shown += char
        else:
            shown += printable(char)[:1] or REPLACEMENT
    return shown
