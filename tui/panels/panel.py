"""What all panels have in common: a player, titles in the border, and a cursor with which something is selected.

A panel reads its player in `read` and draws lines, as `line_view.py` says. One that has a cursor says in `move` and
`point` where it goes, and in `under_cursor` what `enter` or a click selects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.message import Message

from .line import printable
from .line_view import LineView
from .titles import Titles, fitted

if TYPE_CHECKING:
    from ..player import Player, Selection

SIDEWAYS = [  # for panels whose cursor goes sideways too, once it is shown; else left and right go on stepping
    Binding("left", "move(-1, 0)", "Left", show=False),
    Binding("right", "move(1, 0)", "Right", show=False),
]


class Panel(LineView, can_focus=True, inherit_bindings=False):
    """One panel over one player. `moving` is the share of the motion that is done, 1 at rest."""

    BINDINGS: ClassVar = [
        Binding("up", "move(0, -1)", "Up", show=False),
        Binding("down", "move(0, 1)", "Down", show=False),
        Binding("enter", "choose", "Explain this", show=False),
        Binding("escape", "let_go", "Let go", show=False),
    ]
    DEFAULT_CSS = """
    Panel {
        height: 1fr;
        background: $background;
        border: round $mc-line;
        border-title-color: $mc-text;
        border-title-style: bold;
        border-subtitle-color: $mc-quiet;
        padding: 0 1;
        scrollbar-size: 0 0;
        overflow-x: hidden;
        overflow-y: auto;
        pointer: default;

        &:focus {
            border: heavy $mc-focus;
            border-title-color: $mc-focus;
        }
        &.-ascii { border: ascii $mc-line; }
        &.-ascii:focus { border: ascii $mc-focus; border-title-style: bold reverse; }
    }
    """

    class Selected(Message):
        """Something was chosen: explain it."""

        def __init__(self, panel: Panel, selection: Selection, player: Player | None = None) -> None:
            super().__init__()
            self.panel = panel
            self.selection = selection
            self.player = player or panel.player  # whose it is

    class Moved(Message):
        """The player should go to a place."""

        def __init__(self, panel: Panel, place: int) -> None:
            super().__init__()
            self.panel = panel
            self.place = place

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.player = player
        self.moving = 1.0
        self.pointing = False  # whether it shows a cursor that goes sideways
        self.label = ""  # which of two players this is
        self.tabs: list[tuple[str, bool]] = []  # names of the panels in this place, and which of them this is
        self._titles = Titles()
        self._titled: object = None  # the titles as they stand in the border

    @property
    def in_motion(self) -> bool:
        """Whether anything in it moves now."""
        return False

    # Titles

    def entitle(self, title: str, figures: str = "", below: str = "", brief: str = "") -> None:
        """What stands in the border from the next time it is drawn, as `Titles` says. For `read`."""
        self._titles = Titles(title, figures, below, brief)

    def show_titles(self) -> None:
        """Put the titles into the border, if they are others than before."""
        words = fitted(self._titles, tuple(self.tabs), self.outer_size.width, self.has_focus, self.ascii)
        if words != self._titled:  # setting a title draws the whole panel
            self._titled, (above, below) = words, words
            self.border_title = Content.assemble(*above)  # Content: nothing is read as markup
            self.border_subtitle = Content(below)

    def redraw(self) -> None:
        """Draw the titles and the lines that differ from what is drawn."""
        self.show_titles()
        super().redraw()

    # What a panel with a cursor says

    def move(self, dx: int, dy: int) -> bool:
        """Move the cursor; False if there is nowhere to go or no cursor."""
        return False

    def point(self, x: int, y: int) -> bool:
        """Put the cursor to column `x` of line `y`; False if nothing is there."""
        return False

    def under_cursor(self) -> Selection | None:
        """What `enter` selects."""
        return None

    def describe(self, x: int, y: int) -> str:
        """What a pointer over column `x` of line `y` is told."""
        return ""

    # Keys

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self.pointing = self.pointing and has_focus
        self.sync()

    def _begin_pointing(self) -> bool:
        """Show a cursor that goes sideways, at the first `up`, `down`, `enter` or click; whether it was hidden."""
        if self.pointing or "left" not in self._bindings.key_to_bindings:
            return False
        self.pointing = True
        self.refresh_bindings()
        return True

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a cursor to move, left and right are the screen's; and so is escape, while something is selected."""
        if action == "let_go":
            return self.player.selection.kind == "nothing"
        return self.pointing if action == "move" and parameters[0] else super().check_action(action, parameters)

    def action_move(self, dx: int, dy: int) -> None:
        begun = self._begin_pointing()
        if not self.move(dx, dy) and begun:
            self.move(dy, 0)
        self.redraw()

    def action_choose(self) -> None:
        if self._begin_pointing():
            self.redraw()
            return
        selection = self.under_cursor()
        if selection is not None:
            self.choose(selection)

    def choose(self, selection: Selection) -> None:
        """Explain it."""
        self.post_message(self.Selected(self, selection))

    def action_let_go(self) -> None:
        self.screen.set_focus(None)

    # Mouse

    def _content_place(self, event: events.MouseEvent) -> tuple[int, int] | None:
        offset = event.get_content_offset(self)
        return None if offset is None else (offset.x + self.scroll_offset.x, offset.y + self.scroll_offset.y)

    def on_click(self, event: events.Click) -> None:
        place = self._content_place(event)
        if place is not None and self.point(*place):
            self._begin_pointing()
            self.redraw()
            self.action_choose()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        place = self._content_place(event)
        words = self.describe(*place) if place is not None else ""
        self.tooltip = Content(printable(words)) if words else None

    def on_leave(self, event: events.Leave) -> None:
        self.tooltip = None
