"""A dialog that asks for a line of text, says in a sentence what is wrong with it, and stays open until it is right."""

from collections.abc import Callable
from typing import Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from minicache.core.errors import MinicacheError

T = TypeVar("T")


class Ask(ModalScreen[T], Generic[T]):
    """Gives what `read` makes of the line, or None if the person leaves with escape.

    `read` gets the line as it was typed, spaces at its ends too, and raises a `MinicacheError` for one that it cannot
    take; its sentence is shown.
    """

    BINDINGS = [Binding("escape", "leave", "Leave")]  # noqa: RUF012 (Textual's type)

    def __init__(self, title: str, hint: str, read: Callable[[str], T], line: str = "") -> None:
        super().__init__()
        self._title, self._hint, self._read, self._line = title, hint, read, line

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._title, classes="dialog-title", markup=False)
            yield Static(self._hint, classes="dialog-hint", markup=False)
            yield Input(self._line, select_on_focus=False)
            yield Static("", classes="dialog-error", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            result = self._read(event.value)
        except MinicacheError as error:
            self.query_one(".dialog-error", Static).update(str(error))
        else:
            self.dismiss(result)

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one(".dialog-error", Static).update("")

    def action_leave(self) -> None:
        self.dismiss(None)
