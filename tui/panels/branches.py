"""What the hash chain and the radix tree have in common when they are drawn: branches, and rows that come and go.

root
├ 9c1f b1   ◉3 "You are a careful"
│ └ 07aa b2 ◉3 " coding helper. F"
│   └ …  37 blocks
└ e51b b40  ▲  "It is 14:03. You"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.rows import Selection, TreeRow
from .line import Line
from .rows import Rows

if TYPE_CHECKING:
    from ..player import Player

TEXT_ROOM = 24  # columns that a row keeps for what it says, however deep it is
NEWS = ("hit", "computed", "generated", "evicted", "preempted")


class Branches(Rows):
    """The cursor is a row, and stays on it when others come and go."""

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(player, id=id, classes=classes)
        self._rows: list[TreeRow] = []
        self._before: list[TreeRow] = []
        self._new: frozenset[object] = frozenset()
        self._gone: frozenset[object] = frozenset()
        self._chosen: frozenset[int] = frozenset()
        self._read = (-1, 0)  # version and width
        self._indent = 2  # columns of a level
        self._left_out = 0  # levels

    def rows_and_focus(self) -> tuple[list[TreeRow], int | None]:
        """The rows of the model, and the one that the current event touched."""
        raise NotImplementedError

    def read(self) -> None:
        player = self.player
        if (player.version, self.width) == self._read:
            return
        self._read = player.version, self.width
        key = self._rows[self.cursor].key if self.cursor < len(self._rows) else None
        self._before = self._rows
        self._rows, focus = self.rows_and_focus()
        old, new = {row.key for row in self._before}, {row.key for row in self._rows}
        self._new, self._gone = frozenset(new - old), frozenset(old - new)
        self.cursor = next((i for i, row in enumerate(self._rows) if row.key == key), 0)
        self._chosen = player.chosen_blocks()
        deepest = max((len(row.branches) for row in self._rows), default=0)
        room = max(2, self.width - TEXT_ROOM)
        self._indent = 2 if deepest * 2 <= room else 1
        self._left_out = max(0, deepest * self._indent - room)
        if focus is not None:
            self.show_line(focus + 1)

    @property
    def _shown(self) -> list[TreeRow]:
        """What was pruned goes first; what is new grows after it."""
        return self._before if self._gone and self.moving < 0.5 else self._rows

    @property
    def in_motion(self) -> bool:
        return bool(self._new or self._gone)

    def count(self) -> int:
        return len(self._rows) + 1

    def line(self, y: int) -> Line:
        line = Line(self.width)
        if y == 0:
            return line.add("root", "quiet")
        rows = self._shown
        if y > len(rows):
            return line
        row = rows[y - 1]
        self._add_branches(line, row)
        here = " cursor" if self.has_focus and y - 1 == self.cursor else ""
        if row.folded:
            return line.add(f"… {row.folded:,} blocks", "quiet" + here)
        gone = self.moving < 0.5 and row.key in self._gone
        sign = "evicted" if gone else str(row.sign)
        style = sign + (f" strong on-{sign}" if sign in NEWS else "")
        chosen = " chosen" if not self._chosen.isdisjoint(row.blocks) else ""
        room = line.room
        if not gone and self.moving < 1 and row.key in self._new:
            room = max(2, int(room * self.moving))
        inner = Line(room)
        inner.add(f"{row.label} ", "quiet" + here + chosen).add(f"{_blocks(row.blocks)} ", "text" + here + chosen)
        inner.add(self.mark(sign, row.sharers), style + here).add(" ", "text" + here)
        if row.locked:
            inner.add("locked ", "shared" + here)
        if row.orphan:
            inner.add("cut off ", "evicted" + here)
        text = f'"{row.text}"' if row.text else ""
        inner.add(text, ("quiet" if sign == "findable" else "text") + here, width=inner.room)
        for text, name in inner:
            line.add(text, name)
        return line

    def _add_branches(self, line: Line, row: TreeRow) -> None:
        """The lines from the ancestors. In a deep tree each takes one column, and those far up are left out."""
        *above, own = row.branches
        if self._left_out:
            line.add("‹" if len(above) >= self._left_out else " ", "line")
        space = " " * (self._indent - 1)
        for more in above[self._left_out :]:
            line.add(("│" if more else " ") + space, "line")
        line.add(("├" if own else "└") + space, "line")

    def under_cursor(self) -> Selection | None:
        return self._rows[self.cursor].selection if self._rows else None

    def describe(self, x: int, y: int) -> str:
        if not 1 <= y <= len(self._rows):
            return ""
        row = self._rows[y - 1]
        return f"{row.label}: {_blocks(row.blocks)} {row.text}"


def _blocks(blocks: tuple[int, ...]) -> str:
    """`b7`, `b7–9`, or, where they are not in a row, the first and how many there are."""
    if not blocks:
        return ""
    if len(blocks) == 1:
        return f"b{blocks[0]}"
    if blocks[-1] - blocks[0] == len(blocks) - 1:
        return f"b{blocks[0]}–{blocks[-1]}"
    return f"b{blocks[0]}… ×{len(blocks)}"
