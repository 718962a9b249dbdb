"""The block pool as a grid: one cell a block, or, where there are too many for the panel, one cell for several.

An overview cell shows what is news in this step if anything is (an eviction before a hit before a computation), else
what most of its blocks are; and beside it, unless all of them do, how many hold something: `●▄` is half full.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from textual import events

from ..cells import CODE, CODES
from ..keys import key_of
from ..model.rows import Selection
from ..signs import MEANINGS, NEWS, Sign
from .legend import legend_lines
from .line import Line
from .panel import SIDEWAYS, Panel
from .pool_layout import Grid, lay_out

if TYPE_CHECKING:
    from ..player import Player

STRETCH = 128  # blocks that are compared at once
HELD = (Sign.SHARED, Sign.USED, Sign.FINDABLE)
RAMP, ASCII_RAMP = "▁▂▃▄▅▆▇", "1234567"


class Pool(Panel):
    """Every block of the pool. The cursor is a block."""

    HELP = """\
# Block pool

Every **block** of KV memory, in the order of its number; the number before a row is that of its first block, which
sentences call b0, b16 and so on. A block is **in use** by requests, or **cached**: free, but a lookup can find what it
holds; or it is **empty**. The free queue holds the cached blocks and the empty ones; in a radix tree the cached ones
are the tree's.

`down` shows a cursor, the arrow keys then move it, `enter` (or a click) explains the block. A pool that is larger
than the panel is shown as an **overview**, in which a cell stands for several blocks: what is news in this step, else
what most of them are; and beside it, unless that is all of them, how many hold something: `●▄` is half full. `{zoom}`
or the wheel goes to single blocks around the cursor, `{zoom}` again goes back.
"""
    BINDINGS: ClassVar = [*SIDEWAYS]

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(player, id=id, classes=classes)
        self.cursor = 1
        self.zoomed = False
        self._grid = Grid(1, 1, 1, 1, 0)
        self._codes = self._before = b""
        self._shown: bytes | bytearray = b""
        self._changed: list[int] = []
        self._chosen: frozenset[int] = frozenset()
        self._legend: list[Line] = []
        self._version = -1

    # Reading

    def read(self) -> None:
        player = self.player
        codes = bytes(player.cells.codes)
        if player.version != self._version:
            self._version = player.version
            self._before, self._codes = self._codes, codes
            self._changed = differing(codes, self._before)
            self._chosen = player.chosen_blocks()
        self.cursor = min(self.cursor, len(codes) - 1)
        self._grid = lay_out(len(codes), self.width, self.height, self.zoomed)
        self._legend = self._draw_legend()
        self._entitle()
        if self._changed and self._grid.lines > self.height:
            self.show_line(self._grid.line_of(self._changed[0]))

    def _entitle(self) -> None:
        counts = self.player.cells.counts()
        figures = f"{counts.used:,} in use · {counts.cached:,} cached · {counts.empty:,} empty"
        grid, half = self._grid, (ASCII_RAMP if self.ascii else RAMP)[3]
        below, zoom = "", key_of(self.app, "zoom")
        if grid.overview:
            below = f"1 cell = {grid.per_cell:,} blocks, {half} half full · {zoom}: single blocks"
        elif self.zoomed and grid.lines > self.height:
            first = self.scroll_offset.y * grid.columns
            last = min(first + self.height * grid.columns, grid.num_blocks) - 1
            below = f"b{first}–b{last} of {grid.num_blocks - 1:,} blocks · {zoom}: overview"
        if not self._legend and not grid.listed:
            below += f"{' · ' if below else ''}{key_of(self.app, 'help')}: signs"
        held = ((Sign.USED, counts.used), (Sign.FINDABLE, counts.cached), (Sign.EMPTY, counts.empty))
        brief = "  ".join(f"{self.glyph(sign)} {count:,}" for sign, count in held)
        self.entitle(f"Pool · {self.label}" if self.label else "Block pool", figures, below, brief)

    def redraw(self) -> None:
        self._shown = self._codes
        if self.moving < 1 and self._changed:
            self._shown = bytearray(self._codes)
            for block in self._changed[int(self.moving * len(self._changed)) :]:
                self._shown[block] = self._before[block]
        super().redraw()

    @property
    def in_motion(self) -> bool:
        return bool(self._changed)

    def count(self) -> int:
        return self._grid.lines + len(self._legend)

    # Drawing

    def line(self, y: int) -> Line:
        grid = self._grid
        if y >= grid.lines:
            return self._legend[y - grid.lines]
        line = Line(self.width)
        cells = grid.cells_of(y)
        if not cells:
            return line
        line.add(f"{grid.blocks_of(cells.start).start:,}", "quiet", width=grid.label - 2, right=True)
        draw = self._overview_cell if grid.overview else self._listed_block if grid.listed else self._block_cell
        for column, cell in enumerate(cells):
            draw(line.to(grid.x_of(column)), cell)
        return line

    def _block_cell(self, line: Line, block: int) -> None:
        width = self._grid.cell
        sign = CODES[self._shown[block]]
        glyph = self.mark(sign, self.player.cells.sharers(block), width) if sign is Sign.SHARED else self.glyph(sign)
        style = str(sign)
        if sign in NEWS:
            style += f" strong on-{sign}"
        if self.pointing and block == self.cursor:
            style += " cursor"
        if block in self._chosen:
            style += " chosen"
            if width > len(glyph) + 1:
                line.add(f"[{glyph}]", style)
                return
        line.add(" " if width > 2 else "").add(glyph, style)

    def _listed_block(self, line: Line, block: int) -> None:
        sign = CODES[self._shown[block]]
        style = str(sign)
        here = " cursor" if self.pointing and block == self.cursor else ""
        marked = style + (f" strong on-{sign}" if sign in NEWS else "") + here
        left, right = "[]" if block in self._chosen else "  "
        line.add(left, "focus").add(self.mark(sign, self.player.cells.sharers(block)), marked).add(right, "focus")
        owners = [request for request, table in self.player.view.tables.items() if block in table]
        words = [MEANINGS[sign].partition(":")[0]] if sign in (*NEWS, Sign.NULL) or not owners else []
        words += [f"in use by {', '.join(owners)}"] if owners else []
        line.to(self._grid.label + 6).add(", ".join(words), style + here)
        if text := self.player.block_text(block):
            line.add(f'  "{text}"', "text")

    def _overview_cell(self, line: Line, cell: int) -> None:
        blocks = self._grid.blocks_of(cell)
        sign, share = self.dominant(blocks)
        style = str(sign)
        if sign in NEWS:
            style += f" strong on-{sign}"
        if self.pointing and self.cursor in blocks:
            style += " cursor"
        if self._chosen and not self._chosen.isdisjoint(blocks):
            style += " chosen"
        ramp = ASCII_RAMP if self.ascii else RAMP
        line.add(self.glyph(sign), style).add(ramp[int(share * 7)] if 0 < share < 1 else " ", style)

    def dominant(self, blocks: range) -> tuple[Sign, float]:
        """The sign of a cell that stands for several blocks, and the share of them that holds something."""
        return _dominant(bytes(self._shown[blocks.start : blocks.stop]))

    def _draw_legend(self) -> list[Line]:
        """What the signs on the screen mean, at the bottom, if there is room for it below the blocks. A list of blocks
        says it in words."""
        grid = self._grid
        if grid.listed:
            return []
        return legend_lines(self._codes, grid.overview, self.width, self.height - grid.lines, self.mark)

    @property
    def can_zoom(self) -> bool:
        """Whether not every block is seen at once."""
        return self._grid.overview or self._grid.lines > self.height

    # Cursor

    def move(self, dx: int, dy: int) -> bool:
        grid = self._grid
        target = self.cursor + (dx + dy * grid.columns) * grid.per_cell
        if not grid.first <= target < grid.num_blocks:
            return False
        self.cursor = target
        self.show_line(grid.line_of(target))
        return True

    def point(self, x: int, y: int) -> bool:
        cell = self._grid.cell_at(x, y)
        if cell is None:
            return False
        blocks = self._grid.blocks_of(cell)
        if self.cursor not in blocks:
            self.cursor = blocks.start
        return True

    def under_cursor(self) -> Selection | None:
        return Selection("block", self.cursor)

    def action_choose(self) -> None:
        """In an overview, `enter` first goes to the single blocks."""
        if self._grid.overview:
            self.action_zoom()
        else:
            super().action_choose()

    def action_zoom(self) -> None:
        self.zoomed = not self.zoomed
        self._changed = []
        self.sync()
        self.show_line(self._grid.line_of(self.cursor))
        self.sync()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        place = self._content_place(event)
        if self._grid.overview and place is not None and self.point(*place):
            event.stop()
            event.prevent_default()
            self.action_zoom()

    def describe(self, x: int, y: int) -> str:
        cell = self._grid.cell_at(x, y) if y < self._grid.lines else None
        if cell is None:
            return ""
        blocks = self._grid.blocks_of(cell)
        if len(blocks) > 1:
            _, share = self.dominant(blocks)
            return f"blocks b{blocks.start}–b{blocks.stop - 1}: {share:.0%} hold something"
        return self.player.cells.describe(cell)


def differing(codes: bytes, before: bytes) -> list[int]:
    """The blocks whose code is another one; none if these are different pools."""
    if len(codes) != len(before):
        return []
    starts = (s for s in range(0, len(codes), STRETCH) if codes[s : s + STRETCH] != before[s : s + STRETCH])
    return [b for s in starts for b in range(s, min(s + STRETCH, len(codes))) if codes[b] != before[b]]


@lru_cache(maxsize=4096)
def _dominant(codes: bytes) -> tuple[Sign, float]:
    counts = {sign: codes.count(CODE[sign]) for sign in Sign}
    share = 1 - (counts[Sign.EMPTY] + counts[Sign.NULL]) / len(codes)
    for sign in NEWS:
        if counts[sign]:
            return sign, share
    most = max(HELD, key=lambda sign: counts[sign])
    return (most if counts[most] else Sign.EMPTY), share
