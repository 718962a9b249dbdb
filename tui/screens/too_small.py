"""What a terminal that is too small shows, until it is larger again."""

from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.widgets import Static


class TooSmall(ModalScreen[None]):
    def compose(self) -> ComposeResult:
        yield Static("Too small: at least 60×20 characters are needed. Ctrl-C quits.", markup=False)
