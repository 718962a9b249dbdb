"""The help: what has the focus, the legend of signs, words, all keys. It fills the screen and needs no mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from ..help_text import Row, about, glossary, key_table, legend, sheet
from ..keys import FIXED, key_of

if TYPE_CHECKING:
    from ..app import MinicacheApp

PAGE = 1_000_000  # lines: more than there are


class Help(ModalScreen[None]):
    """`subject` is the name of what the help is about, `words` are its own."""

    app: MinicacheApp
    BINDINGS: ClassVar = [
        Binding("question_mark,f1", "leave", "Close", id="help"),
        Binding("escape", "leave", "Close", id="leave"),
        Binding("q", "leave", "Close", id="quit"),
        Binding("down,j", "scroll(1)", "Down"),
        Binding("up,k", "scroll(-1)", "Up"),
        Binding("pagedown,space", "page(1)", "A page down"),
        Binding("pageup,b", "page(-1)", "A page up"),
        Binding("home,g", f"scroll(-{PAGE})", "To the top"),
        Binding("end,G", f"scroll({PAGE})", "To the bottom"),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 (Textual's type)
    DEFAULT_CSS = """
    Help {
        background: $background;
        #page {
            width: 100%; height: 100%; border: round $mc-focus; padding: 0 1; scrollbar-size: 0 0;
            border-title-color: $mc-text; border-title-style: bold; border-subtitle-color: $mc-text;
        }
        #columns { height: auto; layout: vertical; }
        #columns Static { width: 1fr; height: auto; }
        &.-wide #columns { layout: horizontal; }
        &.-wide #what { margin: 0 4 0 0; }
    }
    """

    def __init__(self, words: str) -> None:
        super().__init__()
        first, _, self._words = words.strip().partition("\n")
        self._subject = first.removeprefix("# ")

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page", can_focus=False), Container(id="columns"):
            yield Static(id="what")
            yield Static(id="keys")

    def on_mount(self) -> None:
        for what in ("scroll_y", "virtual_size"):
            self.watch(self._page, what, self._entitle, init=False)

    @property
    def _page(self) -> VerticalScroll:
        return self.query_one("#page", VerticalScroll)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._write)

    def _write(self) -> None:
        """The text in the columns that there are."""
        ascii, plain = self.app.ascii, self.app.plain
        keys = {action: tuple(map(plain, names)) for action, names in self.app.keys_in_use.items()}
        wide = self.has_class("-wide")
        width = self._page.scrollable_content_region.width
        left = (width - 4) // 2 if wide else width
        what: list[Row] = [*about(self._words, keys, left), *legend(ascii, left), *glossary(left)]
        self.query_one("#what", Static).update(sheet(what[1:], ascii))
        fixed = [(plain(names), plain(what)) for names, what in FIXED]
        all_keys: list[Row] = list(key_table(keys, fixed, width - left - 4 if wide else width))
        self.query_one("#keys", Static).update(sheet(all_keys[1 if wide else 0 :], ascii))
        self._page.border_title = f"Help: {self._subject}"

    def _entitle(self) -> None:
        """How much there is to scroll, and how to leave."""
        page = self._page
        below = page.virtual_size.height - round(page.scroll_y) - page.scrollable_content_region.height
        close = " ".join(key_of(self.app, action) for action in ("help", "leave", "quit"))
        scroll = "↑ ↓ pgup pgdn · " if below > 0 or page.scroll_y else ""
        more = f"{below} more lines · " if below > 0 else ""
        page.border_subtitle = self.app.plain(f"{more}{scroll}{close} close")

    def action_scroll(self, lines: int) -> None:
        self._page.scroll_to(y=self._page.scroll_y + lines, animate=False, force=True)

    def action_page(self, direction: int) -> None:
        self.action_scroll(direction * max(1, self._page.scrollable_content_region.height - 2))

    def action_leave(self) -> None:
        self.dismiss()
