"""Lines in styles that have names, of which only those are drawn that changed.

A view takes what it shows in `read`, says how many lines it has in `count` and draws one of them in `line`. `sync` does
the first, compares the lines that can be seen with those that were drawn, and refreshes the ones that differ.
"""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..signs import ASCII, UNICODE, Sign
from .line import Line, ascii_only
from .styles import style_of


class LineView(ScrollView):
    """`width`, `height` and `glyphs` are looked up once before anything is drawn: every cell asks for them."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.width = self.height = 0  # of what can be seen, in cells
        self.glyphs = UNICODE
        self._ready = False  # whether it was read
        self._drawn: dict[int, Line] = {}
        self._styles: dict[str, Style] = {}

    # What a view must say

    def read(self) -> None:
        """Take what `count` and `line` need. The size is known."""
        raise NotImplementedError

    def count(self) -> int:
        """How many lines there are, seen or not."""
        raise NotImplementedError

    def line(self, y: int) -> Line:
        """Line `y`, from 0. It changes nothing."""
        raise NotImplementedError

    # Drawing

    def sync(self) -> None:
        """Draw what there is now, as far as it differs from what is drawn."""
        if not self.is_attached:
            return
        self._look_up()
        if self.width < 1 or self.height < 1:
            return
        self.read()
        self._ready = True
        size = Size(self.width, self.count())
        if size != self.virtual_size:
            self.virtual_size = size
        self.redraw()

    def redraw(self) -> None:
        """Draw the lines that differ from what is drawn."""
        if not self._ready:
            return
        self._look_up()
        top = self.scroll_offset.y
        lines = {y: self.line(y) for y in range(top, min(top + self.height, self.count()))}
        for y in range(top, top + self.height):
            if lines.get(y) != self._drawn.get(y):
                self.refresh(Region(0, y - top, self.width, 1))
        self._drawn = lines

    def render_line(self, y: int) -> Strip:
        self._look_up()
        y += self.scroll_offset.y
        line = self._drawn.get(y)
        if line is None:
            if not self._ready or not 0 <= y < self.count():
                return Strip.blank(self.width, self.rich_style)
            line = self.line(y)
        clean = ascii_only if self.ascii else str
        segments = [Segment(clean(text), self.style_named(name)) for text, name in line]
        return Strip(segments, line.end).adjust_cell_length(self.width, self.rich_style)

    def _look_up(self) -> None:
        self.width, self.height = self.scrollable_content_region.size
        self.glyphs = ASCII if self.app.has_class("-ascii") else UNICODE

    @property
    def ascii(self) -> bool:
        return self.glyphs is ASCII

    def glyph(self, sign: Sign | str) -> str:
        """The sign as one cell."""
        return self.glyphs[Sign(sign)]

    def mark(self, sign: Sign | str, sharers: int = 0, width: int = 3) -> str:
        """The sign, and how many share the block, in at most `width` cells: `◉+` where they are too many to say."""
        mark = self.glyphs.mark(Sign(sign), sharers)
        return mark if len(mark) <= width else mark[: width - 1] + "+"

    def style_named(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            style = self.rich_style
            for word in name.split():
                style += style_of(word, self.app.theme_variables)
            self._styles[name] = style
        return style

    def notify_style_update(self) -> None:
        self._styles = {}
        super().notify_style_update()

    # Scrolling, and another size

    def show_line(self, y: int) -> None:
        """Scroll as little as needed for line `y` to be seen, with a line of context where there is one."""
        top, height = self.scroll_offset.y, self.height
        margin = 1 if height > 4 else 0
        if y < top + margin:
            self.scroll_to(y=max(0, y - margin), animate=False, force=True)
        elif y >= top + height - margin:
            self.scroll_to(y=y - height + 1 + margin, animate=False, force=True)

    def scrolled(self) -> None:
        """Another part of it is seen now."""

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._drawn = {}
        self.scrolled()

    def on_mount(self) -> None:
        self._look_up()
        self.set_class(self.ascii, "-ascii")

    def on_resize(self, event: events.Resize) -> None:
        self._drawn = {}
        self.sync()
