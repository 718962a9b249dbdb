"""What a terminal that is too small shows, until it is larger again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.widgets import Static

if TYPE_CHECKING:
    from ..app import MinicacheApp


class TooSmall(ModalScreen[None]):
    """Whatever may have opened over it: when it is seen again and the terminal is large enough, it is gone."""

    app: MinicacheApp

    def compose(self) -> ComposeResult:
        words = "Too small: at least 60×20 characters are needed. Ctrl-C quits."
        yield Static(self.app.plain(words), markup=False)

    def on_screen_resume(self) -> None:
        if not self.app.too_small:
            self.dismiss()
