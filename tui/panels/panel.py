"""What all panels have in common: lines, a cursor, a selection, and drawing only what changed.

A panel reads its player in `read`, says how many lines it has in `count` and draws one of them in `line`. `sync` does
the first, compares the lines that can be seen with those that were drawn, and refreshes the ones that differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..signs import ASCII, UNICODE, Glyphs, Sign
from .line import Line, ascii_only, cut, printable, width_of

if TYPE_CHECKING:
    from ..player import Player, Selection

_NAMES = """
    text quiet line focus null empty findable used hit computed shared evicted generated preempted
    on-hit on-computed on-shared on-evicted on-generated on-preempted on-used strong cursor chosen faded
"""


NOTHING_MORE = nullcontext()
SIDEWAYS = [  # for panels whose cursor goes sideways too, once it is shown; else left and right go on stepping
    Binding("left", "move(-1, 0)", "Left", show=False),
    Binding("right", "move(1, 0)", "Right", show=False),
]


class Panel(ScrollView, can_focus=True, inherit_bindings=False):
    """One panel over one player. `moving` is the share of the motion that is done, 1 at rest."""

    BINDINGS: ClassVar = [
        Binding("up", "move(0, -1)", "Up", show=False),
        Binding("down", "move(0, 1)", "Down", show=False),
        Binding("enter", "choose", "Explain this", show=False),
        Binding("escape", "let_go", "Let go", show=False),
    ]
    COMPONENT_CLASSES: ClassVar = {f"panel--{name}" for name in _NAMES.split()}
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
        .panel--text { color: $mc-text; }
        .panel--quiet { color: $mc-quiet; }
        .panel--line { color: $mc-line; }
        .panel--focus { color: $mc-focus; }
        .panel--null { color: $mc-quiet; }
        .panel--empty { color: $mc-empty; }
        .panel--findable { color: $mc-findable; }
        .panel--used { color: $mc-used; }
        .panel--hit { color: $mc-hit; }
        .panel--computed { color: $mc-computed; }
        .panel--shared { color: $mc-shared; }
        .panel--evicted { color: $mc-evicted; }
        .panel--generated { color: $mc-generated; }
        .panel--preempted { color: $mc-preempted; }
        .panel--on-hit { background: $mc-hit-tint; }
        .panel--on-computed { background: $mc-computed-tint; }
        .panel--on-shared { background: $mc-shared-tint; }
        .panel--on-evicted { background: $mc-evicted-tint; }
        .panel--on-generated { background: $mc-generated-tint; }
        .panel--on-preempted { background: $mc-preempted-tint; }
        .panel--on-used { background: $mc-used-tint; }
        .panel--strong { text-style: bold; }
        .panel--cursor { text-style: reverse; }
        .panel--chosen { text-style: bold underline; }
        .panel--faded { text-style: dim; }
    }
    """

    class Selected(Message):
        """Something was chosen: explain it."""

        def __init__(self, panel: Panel, selection: Selection) -> None:
            super().__init__()
            self.panel = panel
            self.selection = selection

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
        self._ready = False  # whether the player was read
        self._titles = ("", "", "", "")
        self._asked: tuple[object, ...] = ()  # the titles with all that they depend on
        self._titled: tuple[object, ...] = ()
        self._drawn: dict[int, Line] = {}
        self._hold: tuple[Size, Glyphs] | None = None
        self._styles: dict[str, Style] = {}

    # What a panel must say

    def read(self) -> None:
        """Take from the player what `count` and `line` need; set titles. The size of the panel is known."""
        raise NotImplementedError

    def count(self) -> int:
        """How many lines there are, seen or not."""
        raise NotImplementedError

    def line(self, y: int) -> Line:
        """Line `y`, from 0. It changes nothing."""
        raise NotImplementedError

    @property
    def in_motion(self) -> bool:
        """Whether anything in it moves now."""
        return False

    # What a panel with a cursor says too

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

    # Drawing

    def _held(self) -> AbstractContextManager[object]:
        """What every cell asks for is looked up once: in here neither the size nor the glyphs change."""
        return NOTHING_MORE if self._hold is not None else self._holding()

    @contextmanager
    def _holding(self) -> Iterator[None]:
        self._hold = self.scrollable_content_region.size, self._find_glyphs()
        try:
            yield
        finally:
            self._hold = None

    @property
    def width(self) -> int:
        return (self._hold[0] if self._hold else self.scrollable_content_region).width

    @property
    def height(self) -> int:
        return (self._hold[0] if self._hold else self.scrollable_content_region).height

    @property
    def ascii(self) -> bool:
        return self.glyphs is ASCII

    def glyph(self, sign: Sign | str) -> str:
        """The sign as one cell."""
        return self.glyphs[Sign(sign)]

    @property
    def glyphs(self) -> Glyphs:
        return self._hold[1] if self._hold else self._find_glyphs()

    def _find_glyphs(self) -> Glyphs:
        return ASCII if self.app.has_class("-ascii") or self.screen.has_class("-ascii") else UNICODE

    def mark(self, sign: Sign | str, sharers: int = 0, width: int = 3) -> str:
        """The sign, and how many share the block, in at most `width` cells: `◉+` where they are too many to say."""
        mark = self.glyphs.mark(Sign(sign), sharers)
        return mark if len(mark) <= width else mark[: width - 1] + "+"

    def entitle(self, title: str, figures: str = "", below: str = "", brief: str = "") -> None:
        """The border's title on the left and figures on the right of the title's line, or the `brief` ones where there
        is no room for them; `below` at the bottom."""
        self._titles = title, figures, below, brief

    def show_titles(self) -> None:
        """Put the titles into the border, if they are others than before."""
        asked = self._titles, tuple(self.tabs), self.has_focus, self.outer_size, self.glyphs
        if asked == self._asked:
            return
        self._asked = asked
        room = self.outer_size.width - 6
        clean = ascii_only if self.ascii else str
        title, figures, below, brief = (clean(printable(text)) for text in self._titles)
        quiet, frame = "$mc-quiet not bold", "$mc-focus not bold" if self.has_focus else "$mc-line not bold"
        parts: list[str | tuple[str, str]] = [cut(title, room, clean("…"))]
        if self.tabs:
            title = "  ".join(name for name, _ in self.tabs)
            parts = [(f"{name}  ", "" if active else quiet) for name, active in self.tabs[:-1]]
            parts += [(name, "" if active else quiet) for name, active in self.tabs[-1:]]
        if width_of(title) + width_of(figures) + 3 > room:
            figures = brief
        fill = room - width_of(title) - width_of(figures) - 2
        if figures and fill >= 1:
            parts += [(f" {clean('━' if self.has_focus else '─') * fill} ", frame), (figures, quiet)]
        below = cut(below, room, clean("…"))
        if (parts, below) != self._titled:  # setting a title draws the whole panel
            self._titled = parts, below
            self.border_title = Content.assemble(*parts)  # Content: nothing is read as markup
            self.border_subtitle = Content(below)

    def sync(self) -> None:
        """Draw what the player says now, as far as it differs from what is drawn."""
        if not self.is_attached:
            return
        with self._held():
            if self.width < 1 or self.height < 1:
                return
            self.read()
            self._ready = True
            size = Size(self.width, self.count())
            if size != self.virtual_size:
                self.virtual_size = size
            self.redraw()

    def redraw(self) -> None:
        """Draw the titles and the lines that differ from what is drawn."""
        if not self._ready:
            return
        top = self.scroll_offset.y
        with self._held():
            self.show_titles()
            lines = {y: self.line(y) for y in range(top, min(top + self.height, self.count()))}
            for y in range(top, top + self.height):
                if lines.get(y) != self._drawn.get(y):
                    self.refresh(Region(0, y - top, self.width, 1))
        self._drawn = lines

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        line = self._drawn.get(y)
        if line is None:
            if not self._ready or not 0 <= y < self.count():
                return Strip.blank(self.width, self.rich_style)
            line = self.line(y)
        clean = ascii_only if self.ascii else str
        segments = [Segment(clean(text), self.style_named(name)) for text, name in line]
        return Strip(segments, line.end).adjust_cell_length(self.width, self.rich_style)

    def style_named(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            style = self.rich_style
            for word in name.split():
                style += self.get_component_rich_style(f"panel--{word}", partial=True)
            self._styles[name] = style
        return style

    def notify_style_update(self) -> None:
        self._styles = {}
        super().notify_style_update()

    def show_line(self, y: int) -> None:
        """Scroll as little as needed for line `y` to be seen, with a line of context where there is one."""
        top, height = self.scroll_offset.y, self.height
        margin = 1 if height > 4 else 0
        if y < top + margin:
            self.scroll_to(y=max(0, y - margin), animate=False, force=True)
        elif y >= top + height - margin:
            self.scroll_to(y=y - height + 1 + margin, animate=False, force=True)

    # Events

    def on_mount(self) -> None:
        super().on_mount()  # type: ignore[no-untyped-call]
        self.set_class(self.ascii, "-ascii")

    def on_resize(self, event: events.Resize) -> None:
        self._drawn = {}
        self.sync()

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
        """Without a cursor to move, left and right are the screen's."""
        return self.pointing if action == "move" and parameters[0] else super().check_action(action, parameters)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._drawn = {}
        self.scrolled()

    def scrolled(self) -> None:
        """Another part of the panel is seen now."""

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
            self.post_message(self.Selected(self, selection))

    def action_let_go(self) -> None:
        self.screen.set_focus(None)

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
