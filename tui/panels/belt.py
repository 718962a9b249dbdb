"""The eviction order as a belt: what leaves first stands in front, on the left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from ..model.rows import BeltItem, Selection
from ..signs import Sign
from .line import Line, width_of
from .panel import SIDEWAYS, Panel

if TYPE_CHECKING:
    from ..player import Player

GAP = " "


class Belt(Panel):
    """The cursor is a place on the belt."""

    HELP = """\
# Eviction order

The free queue: the **empty** and the **cached** blocks in the order in which they will be handed out, the next one on
the left. `·` is empty; `○b28` is block b28, cached: when its turn comes, what it holds is **evicted**. Blocks that are
given back go to the end, last block of a prompt first, so that a prompt loses its tail before its head. In a radix
tree the belt holds the **leaves** that nobody locks, in the order of the strategy.

`down` shows a cursor, `left` and `right` then move it, `enter` explains.
"""

    BINDINGS: ClassVar = [*SIDEWAYS]

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(player, id=id, classes=classes)
        self.cursor = 0
        self._items: list[BeltItem] = []
        self._before: list[BeltItem] = []
        self._gone: list[BeltItem] = []
        self._lines: list[Line] = []
        self._places: list[list[tuple[int, int]]] = []  # of each line: (column behind an item, its index)
        self._version = -1

    def read(self) -> None:
        player = self.player
        if player.version != self._version:
            self._version = player.version
            self._before = self._items
            self._items = list(self._fitting(player.belt()))
            now = {item.label for item in self._items}
            self._gone = [item for item in self._before if item.label not in now and item.sign is not Sign.EMPTY]
        self.cursor = max(0, min(self.cursor, len(self._items) - 1))
        self.entitle("Eviction order", "the left end goes first")

    def _fitting(self, items: Iterator[BeltItem]) -> Iterator[BeltItem]:
        """As many as there is room for, and one more."""
        room = self.width * self.height
        for item in items:
            yield item
            room -= width_of(_shown(item, self)) + len(GAP)
            if room < 0:
                return

    def redraw(self) -> None:
        self._lines, self._places = self._lay_out()
        super().redraw()

    @property
    def in_motion(self) -> bool:
        return bool(self._gone)

    def count(self) -> int:
        return self.height

    def line(self, y: int) -> Line:
        return self._lines[y] if y < len(self._lines) else Line(self.width)

    def _lay_out(self) -> tuple[list[Line], list[list[tuple[int, int]]]]:
        """The items in lines. In motion those that left are crossed out first, then everything moves up."""
        skip = 0
        items = self._items
        leaving = 0
        if self.moving < 1 and self._gone:
            items = self._gone + items
            leaving = len(self._gone)
            if self.moving >= 0.5:
                whole = sum(width_of(_shown(item, self)) + 1 for item in self._gone)
                skip = int(whole * (self.moving - 0.5) * 2)
        lines, places = [Line(self.width)], [[]]  # type: ignore[var-annotated]
        for index, item in enumerate(items):
            text = _shown(item, self)
            width = width_of(text) + len(GAP)
            if skip >= width:
                skip -= width
                continue
            if skip:
                text, skip = text[skip:], 0
            if lines[-1].room < width_of(text) + 2:
                if len(lines) == self.height:
                    lines[-1].add("…", "quiet")
                    break
                lines.append(Line(self.width))
                places.append([])
            style = "evicted strong on-evicted" if index < leaving else str(item.sign)
            style += " faded" if item.later else ""
            if self.pointing and index - leaving == self.cursor:
                style += " cursor"
            lines[-1].add(text, style).add(GAP)
            places[-1].append((lines[-1].end, index - leaving))
        if not items:
            lines[-1].add("empty: nothing is free and nothing can be evicted", "quiet")
        return lines, places

    @property
    def _last_seen(self) -> int:
        """The last item that is drawn."""
        return max((index for line in self._places for _, index in line), default=-1)

    def items_at(self, x: int, y: int) -> Iterator[int]:
        for end, index in self._places[y] if 0 <= y < len(self._places) else ():
            if x < end:
                yield index
                return

    def move(self, dx: int, dy: int) -> bool:
        if dy:
            return False
        target = self.cursor + dx
        if not 0 <= target <= self._last_seen:
            return False
        self.cursor = target
        return True

    def point(self, x: int, y: int) -> bool:
        for index in self.items_at(x, y):
            self.cursor = max(0, index)
            return True
        return False

    def under_cursor(self) -> Selection | None:
        return self._items[self.cursor].selection if self._items else None

    def describe(self, x: int, y: int) -> str:
        for index in self.items_at(x, y):
            return self._items[max(0, index)].text
        return ""


def _shown(item: BeltItem, panel: Panel) -> str:
    if item.sign is Sign.EMPTY:
        return panel.glyph(item.sign) + (f" ×{item.num_blocks:,}" if item.num_blocks > 1 else "")
    return panel.glyph(item.sign) + item.label
