"""The event strip: the whole run in one line, with a mark for where we are. Click or drag it to go somewhere."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, ClassVar

from textual import events

from ..model.rows import Selection, StripCell
from ..model.strip import event_shown
from ..stops import stopping_places
from .line import Line
from .panel import SIDEWAYS, Panel

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..player import Player


BREAKPOINT = "■"


class Strip(Panel):
    """The cursor is a cell; it goes with the player until it is moved. Of `both`, if there are two in lock-step, a cell
    stands for some frames, else for some events."""

    HELP = """\
# Event strip

The whole run from left to right, a sign for each stretch of it: what is rare in a stretch is shown before what is
common, so no eviction and no preemption is lost. The reversed cell is where you are; what lies ahead is fainter. `■`
is where a breakpoint stops (`{add_breakpoint}` sets one, `{resume}` goes on to it). Of two runs in lock-step it shows
what is rare on either side, to the end of the longer one; a `■` is then where either of them stops.

**Click** it or **drag** along it to go there. With the keyboard: `down` shows a cursor, `left` and `right` then move
it and the run stays where it is; `enter` explains the event that the sign under it stands for, `{run_to_cursor}` goes
there.
"""
    BINDINGS: ClassVar = [*SIDEWAYS]
    DEFAULT_CSS = """
    Strip, Strip.-ascii { height: 1; border: none; padding: 0 1; }
    Strip:focus, Strip.-ascii:focus { border: none; background: $mc-used-tint; }
    """

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(player, id=id, classes=classes)
        self.both: Comparison | None = None
        self.cursor: int | None = None  # a cell; None: the one where the player is
        self._cells: list[StripCell] = []
        self._read: tuple[object, ...] = ()
        self._marked: tuple[object, ...] = ()
        self._stops: list[int] = []  # places at which a breakpoint stops, of the events searched so far
        self._searched = 0
        self._dragging = False

    def read(self) -> None:
        run = self.both or self.player
        key = (id(run), run.position, len(self.player.timeline), self.width)
        if key != self._read:
            self._read = key
            self._cells = run.strip(self._room)
            self.cursor = None
        timeline, breakpoints = self.player.timeline, self.player.breakpoints
        if (timeline, breakpoints) != self._marked:
            self._marked, self._stops, self._searched = (timeline, list(breakpoints)), [], 0
        if self._searched < len(timeline):  # it may grow
            if self.both is None:
                self._stops += stopping_places(timeline, breakpoints, self._searched - 1)
            else:
                self._stops = self.both.stopping_places(breakpoints)
            self._searched = len(timeline)

    def _stops_in(self, cell: StripCell) -> bool:
        """Whether a breakpoint stops at one of the cell's events."""
        return self._stop_in(cell) is not None

    def _stop_in(self, cell: StripCell) -> int | None:
        """The first of the cell's events at which a breakpoint stops."""
        index = bisect_left(self._stops, cell.first)
        return self._stops[index] if index < len(self._stops) and self._stops[index] <= cell.last else None

    def count(self) -> int:
        return 1

    def line(self, y: int) -> Line:
        line = Line(self.width).add(*(("▶", "focus") if self.has_focus else ("├", "line")))
        here = self._here
        for index, cell in enumerate(self._cells):
            style = (cell.kind or "line") + (" faded" if here is None or index > here else "")
            glyph = cell.glyph
            if self._stops_in(cell):
                glyph, style = BREAKPOINT, "preempted strong"
            if self.pointing and index == self._pointed:
                glyph, style = "▼", "focus strong cursor"
            elif index == here:
                style = ("preempted" if glyph == BREAKPOINT else "focus") + " strong cursor"
            line.add(glyph, style)
            line.to(1 + self._column(index + 1), "line" + (" faded" if here is None or index >= here else ""), "─")
        return line.to(1 + self._room, "line", "─").add(*(("◀", "focus") if self.has_focus else ("┤", "line")))

    @property
    def _room(self) -> int:
        return max(1, self.width - 2)

    def _column(self, index: int) -> int:
        """Where a cell begins: where there are fewer of them than columns, they are stretched."""
        return index * self._room // max(1, len(self._cells))

    def _cell_at(self, x: int) -> StripCell | None:
        """The cell at column `x`, or the nearest."""
        if not self._cells:
            return None
        column = max(0, min(x - 1, self._room - 1))
        return self._cells[((column + 1) * len(self._cells) - 1) // self._room]

    @property
    def _here(self) -> int | None:
        return next((i for i, cell in enumerate(self._cells) if cell.contains_place), None)

    @property
    def _pointed(self) -> int:
        """The cell under the cursor."""
        return (self._here or 0) if self.cursor is None else self.cursor

    def move(self, dx: int, dy: int) -> bool:
        if dy:
            return True  # up and down only show the cursor, where it is
        target = self._pointed + dx
        if not 0 <= target < len(self._cells):
            return False
        self.cursor = target
        self.tooltip = None
        return True

    def point(self, x: int, y: int) -> bool:
        cell = self._cell_at(x)
        if cell is None:
            return False
        self.cursor = self._cells.index(cell)
        return True

    @property
    def pointed(self) -> int | None:
        """What is under the cursor, while it shows one, as a place of the run or a position of both: where a breakpoint
        stops, else that of which the sign is seen."""
        if not self.pointing or not self._cells:
            return None
        cell = self._cells[self._pointed]
        stop = self._stop_in(cell)
        if stop is not None:
            return stop
        return self.both.shown_in(cell) if self.both is not None else event_shown(self.player.timeline, cell)

    def under_cursor(self) -> Selection | None:
        place = self.pointed
        return None if place is None else Selection("event", place)

    def choose(self, selection: Selection) -> None:
        """Of both, it is an event of the side that comes to one there."""
        if self.both is not None and isinstance(selection.id, int):
            player, place = self.both.event_at(selection.id)
            self.post_message(self.Selected(self, Selection("event", place), player))
        else:
            super().choose(selection)

    def describe(self, x: int, y: int) -> str:
        cell = self._cell_at(x)
        if cell is None:
            return ""
        return f"{cell.what}; a breakpoint stops here" if self._stops_in(cell) else cell.what

    # Scrubbing

    def on_click(self, event: events.Click) -> None:
        event.stop()
        event.prevent_default()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self.capture_mouse()
        self._dragging = True
        self._scrub(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            event.prevent_default()
            self._scrub(event)

    def _scrub(self, event: events.MouseEvent) -> None:
        cell = self._cell_at(event.x - self.gutter.left)
        if cell is not None and cell is self._cells[-1]:
            self.post_message(self.Moved(self, cell.last))  # the end
        elif cell is not None and not cell.contains_place:
            self.post_message(self.Moved(self, cell.first))
