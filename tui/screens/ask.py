"""A dialog that asks for a line of text, says in a sentence what is wrong with it, and stays open until it is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.widgets import Input, Static

from minicache.core.errors import MinicacheError, require_text

from .field import Field

if TYPE_CHECKING:
    from ..app import MinicacheApp

T = TypeVar("T")


class Ask(ModalScreen[T], Generic[T]):
    """Gives what `read` makes of the line, or None if the person leaves with escape. `line` stands there at first, to
    be edited or else to be typed over.

    `read` gets the line as it was typed, spaces at its ends too, and raises a `MinicacheError` for one that it cannot
    take; its sentence is shown. `help` is what the help says of this line.
    """

    app: MinicacheApp
    HELP = """\
# A line to type

`enter` takes the line, `escape` leaves all as it is; what is wrong with a line is said below it. Several lines that you
paste are one text: `↵` stands for the end of each. The run waits meanwhile.
"""
    BINDINGS: ClassVar = [Binding("escape", "leave", "Leave"), Binding("f1", "help", "Help")]

    def __init__(
        self,
        title: str,
        hint: str,
        read: Callable[[str], T],
        line: str = "",
        edit: bool = False,
        suggester: Suggester | None = None,
        help: str = "",
    ) -> None:
        super().__init__()
        self.HELP = f"{type(self).HELP}\n{help}"  # type: ignore[misc] # what Textual and our help ask of any widget
        self._edit, self._suggester = edit, suggester
        self._title, self._hint, self._read, self._line = title, hint, read, line

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog", can_focus=False) as dialog:
            dialog.border_subtitle = self.app.plain("enter takes it · esc leaves · f1 help")
            yield Static(self.app.plain(self._title), classes="dialog-title", markup=False)
            yield Static(self.app.plain(self._hint), classes="dialog-hint", markup=False)
            yield Field(self._line, select_on_focus=not self._edit, suggester=self._suggester)
            yield Static("", classes="dialog-error", markup=False)

    def on_mount(self) -> None:
        if self._edit:  # its end is seen, where the cursor is
            self.call_after_refresh(self._show_end)

    def _show_end(self) -> None:
        field = self.query_one(Field)
        field.cursor_position = 0
        field.cursor_position = len(field.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            result = self._read(require_text("the line", event.value))
        except MinicacheError as error:
            self.query_one(".dialog-error", Static).update(self.app.plain(str(error)))
            scroll_end = self.query_one(".dialog").scroll_end
            self.call_after_refresh(scroll_end, animate=False)  # a long complaint, in a small terminal
        else:
            self.dismiss(result)

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one(".dialog-error", Static).update("")

    def action_help(self) -> None:
        self.app.open_help()

    def action_leave(self) -> None:
        self.dismiss(None)
