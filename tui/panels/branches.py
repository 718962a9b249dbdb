"""What the hash chain and the radix tree have in common when they are drawn: branches, and rows that come and go.

root
├ 9c1f b1   ◉3 "You are a careful"
│ └ 07aa b2 ◉3 " coding helper. F"
│   └ …  37 blocks
└ e51b b40  ▲  "It is 14:03. You"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.rows import Selection, TreeModel, TreeRow
from .line import Line
from .rows import Rows
from .styles import of_sign

if TYPE_CHECKING:
    from ..player import Player

TEXT_ROOM = 24  # columns that a row keeps for what it says, however deep it is


class Branches(Rows):
    """The cursor is a row, and stays on it when others come and go."""

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(player, id=id, classes=classes)
        self._model = TreeModel()
        self._seen: dict[int, TreeRow] = {}  # number of a row -> the row, as far as they are seen
        self._before: dict[int, TreeRow] = {}  # those that were seen before the last move
        self._new: frozenset[object] = frozenset()
        self._gone: frozenset[object] = frozenset()
        self._chosen: frozenset[int] = frozenset()
        self._key: object = None  # of the row under the cursor
        self._read: tuple[int, int] = (-1, 0)  # version and width
        self._looked: tuple[object, ...] = ()
        self._indent = 2  # columns of a level
        self._left_out = 0  # levels

    def model(self) -> TreeModel:
        """The rows, as the player has them now."""
        raise NotImplementedError

    def read(self) -> None:
        player = self.player
        if (player.version, self.width) == self._read:
            return
        self._read = player.version, self.width
        self._before = self._seen
        self._model = self.model()
        keys = self._model.rows.keys
        self.cursor = keys.index(self._key) if self._key in keys else 0
        self._key = keys[self.cursor] if keys else None
        self._chosen = player.chosen_blocks()
        if self._model.focus is not None:
            self.show_line(self._model.focus + 1)
        self._look()
        now, before = ({row.key for row in seen.values()} for seen in (self._seen, self._before))
        self._new = self._model.came - before
        stays = next(iter(self._seen), 0) == next(iter(self._before), 0)  # else a row may be gone because of scrolling
        self._gone = frozenset(key for key in before - now if key not in keys) if stays else frozenset()

    def _look(self) -> None:
        """Take the rows that can be seen. Levels are indented so that the deepest of them has room for its text."""
        top = self.scroll_offset.y
        if self._looked == (self._read, top, self.height):
            return
        self._looked = self._read, top, self.height
        first = max(0, top - 1)
        self._seen = dict(enumerate(self._model.rows[first : top + self.height], first))
        deepest = max((row.depth for row in self._seen.values()), default=0)
        room = max(2, self.width - TEXT_ROOM)
        self._indent = 2 if deepest * 2 <= room else 1
        self._left_out = max(0, deepest * self._indent - room)

    def redraw(self) -> None:
        self._look()
        super().redraw()

    def scrolled(self) -> None:
        self._gone = frozenset()  # what was pruned is seen to go only if everything else stays where it is
        self._look()

    def move(self, dx: int, dy: int) -> bool:
        return super().move(dx, dy) and self._keep()

    def point(self, x: int, y: int) -> bool:
        return super().point(x, y) and self._keep()

    def _keep(self) -> bool:
        """The cursor stays on its row."""
        self._key = self._model.rows.keys[self.cursor]
        return True

    @property
    def in_motion(self) -> bool:
        return bool(self._new or self._gone)

    def count(self) -> int:
        return len(self._model.rows) + 1

    def line(self, y: int) -> Line:
        line = Line(self.width)
        if y == 0:
            return line.add("root", "quiet")
        pruning = self._gone and self.moving < 0.5  # what was pruned goes first; what is new grows after it
        row = (self._before if pruning else self._seen).get(y - 1)
        if row is None:
            return line
        self._add_branches(line, row)
        here = " cursor" if self.has_focus and y - 1 == self.cursor else ""
        if row.folded:
            return line.add(f"… {row.folded:,} blocks", "quiet" + here)
        gone = self.moving < 0.5 and row.key in self._gone
        sign = "evicted" if gone else str(row.sign)
        chosen = " chosen" if not self._chosen.isdisjoint(row.blocks) else ""
        room = line.room
        if not gone and self.moving < 1 and row.key in self._new:
            room = max(2, int(room * self.moving))
        inner = Line(room)
        inner.add(f"{row.label} ", "quiet" + here + chosen).add(f"{_blocks(row.blocks)} ", "text" + here + chosen)
        inner.add(self.mark(sign, row.sharers), of_sign(sign) + here).add(" ", "text" + here)
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
        trunk, fork, last = "::`" if self.ascii else "│├└"  # `|` is the edge of a block, `+` is computed
        if self._left_out:
            line.add("‹" if len(above) >= self._left_out else " ", "line")
        space = " " * (self._indent - 1)
        for more in above[self._left_out :]:
            line.add((trunk if more else " ") + space, "line")
        line.add((fork if own else last) + space, "line")

    def under_cursor(self) -> Selection | None:
        return self._model.rows[self.cursor].selection if self._model.rows else None

    def describe(self, x: int, y: int) -> str:
        row = self._seen.get(y - 1)
        if row is None:
            return ""
        return f"{row.label}: {_blocks(row.blocks)} {row.text}"


def _blocks(blocks: tuple[int, ...]) -> str:
    """`b7`, `b7–9`, or, where they are not in a row, the first and how many there are."""
    if not blocks:
        return ""
    if len(blocks) == 1:
        return f"b{blocks[0]}"
    if blocks[-1] - blocks[0] == len(blocks) - 1:
        return f"b{blocks[0]}–b{blocks[-1]}"
    return f"b{blocks[0]}… ×{len(blocks)}"
