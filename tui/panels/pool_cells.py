"""The blocks of the pool as they are drawn: a cell each, a row of words each, or a cell for several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..cells import CODES
from ..signs import MEANINGS, NEWS, Sign
from .legend import legend_lines
from .line import Line
from .panel import Panel
from .pool_layout import Grid, lay_out
from .pool_overview import dominant, fullness
from .styles import of_sign

if TYPE_CHECKING:
    from ..player import Player

STRETCH = 128  # blocks that are compared at once


class PoolCells(Panel):
    """The cells, and below them what their signs mean. `cursor` is a block, `zoomed` whether each is drawn even where
    not all can be seen."""

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

    def read(self) -> None:
        player = self.player
        codes = bytes(player.cells.codes)
        if player.version != self._version:
            self._version = player.version
            self._before, self._codes = self._codes, codes
            self._changed = differing(codes, self._before)
            self._chosen = player.chosen_blocks()
        self.cursor = min(self.cursor, len(codes) - 1)
        self._grid = self._lay_out()
        self._legend = self._draw_legend()

    def _lay_out(self) -> Grid:
        return lay_out(self.player.view.num_blocks, self.width, self.height, self.zoomed)

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
        chosen = block in self._chosen
        style = of_sign(sign, self._pointed(block), chosen)
        if chosen and width > len(glyph) + 1:
            line.add(f"[{glyph}]", style)
        else:
            line.add(" " if width > 2 else "").add(glyph, style)

    def _listed_block(self, line: Line, block: int) -> None:
        sign = CODES[self._shown[block]]
        here = self._pointed(block)
        left, right = "[]" if block in self._chosen else "  "
        line.add(left, "focus").add(self.mark(sign, self.player.cells.sharers(block)), of_sign(sign, here))
        owners = [request for request, table in self.player.view.tables.items() if block in table]
        words = [MEANINGS[sign].partition(":")[0]] if sign in (*NEWS, Sign.NULL) or not owners else []
        words += [f"in use by {', '.join(owners)}"] if owners else []
        words = ["taken out of the pool"] if block in self.player.view.removed else words
        line.add(right, "focus").to(self._grid.label + 6).add(", ".join(words), str(sign) + (" cursor" if here else ""))
        if text := self.player.block_text(block):
            line.add(f'  "{text}"', "text")

    def _overview_cell(self, line: Line, cell: int) -> None:
        blocks = self._grid.blocks_of(cell)
        sign, share = self.dominant(blocks)
        chosen = bool(self._chosen) and not self._chosen.isdisjoint(blocks)
        style = of_sign(sign, self.pointing and self.cursor in blocks, chosen)
        line.add(self.glyph(sign), style).add(fullness(share), style)

    def _pointed(self, block: int) -> bool:
        return self.pointing and block == self.cursor

    def dominant(self, blocks: range) -> tuple[Sign, float]:
        """The sign of a cell that stands for several blocks, and the share of them that holds something."""
        return dominant(bytes(self._shown[blocks.start : blocks.stop]))

    def _draw_legend(self) -> list[Line]:
        """What the signs on the screen mean, at the bottom, if there is room for it below the blocks. A list of blocks
        says it in words."""
        grid = self._grid
        if grid.listed:
            return []
        return legend_lines(self._codes, grid.overview, self.width, self.height - grid.lines, self.mark)


def differing(codes: bytes, before: bytes) -> list[int]:
    """The blocks whose code is another one; none if these are different pools."""
    if len(codes) != len(before):
        return []
    starts = (s for s in range(0, len(codes), STRETCH) if codes[s : s + STRETCH] != before[s : s + STRETCH])
    return [b for s in starts for b in range(s, min(s + STRETCH, len(codes))) if codes[b] != before[b]]
