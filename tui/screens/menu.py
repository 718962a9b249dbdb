"""A dialog that offers a few things to choose from, each with a line that says what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ..model.token_text import visible

if TYPE_CHECKING:
    from ..app import MinicacheApp


class Menu(ModalScreen[int | None]):
    """Gives the index of what was chosen, None if the person leaves with escape."""

    app: MinicacheApp
    HELP = """\
# A choice

`up` and `down` choose, `enter` takes what is highlighted, `escape` leaves all as it is. The run waits meanwhile.
"""
    BINDINGS: ClassVar = [Binding("escape", "leave", "Leave"), Binding("question_mark,f1", "help", "Help")]

    def __init__(self, title: str, hint: str, choices: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._title, self._hint, self._choices = title, hint, choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_subtitle = self.app.plain("↑ ↓ choose · enter takes it · esc leaves · ? help")
            plain = self.app.plain
            yield Static(plain(self._title), classes="dialog-title", markup=False)
            yield Static(plain(self._hint), classes="dialog-hint", markup=False)
            yield OptionList(*(Option(self._shown(name, what)) for name, what in self._choices))

    def _shown(self, name: str, what: str) -> Content:
        name, what = (self.app.plain(visible(text)) for text in (name, what))
        return Content.assemble((name, "bold"), "\n  ", (what, "dim")) if what else Content.styled(name, "bold")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_index)

    def action_help(self) -> None:
        self.app.open_help()

    def action_leave(self) -> None:
        self.dismiss(None)
