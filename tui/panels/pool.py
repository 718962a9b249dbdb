"""The block pool as a grid: one cell a block, or, where there are too many for the panel, one cell for several."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events

from minicache.sim.phrases import plural

from ..keys import key_of
from ..model.rows import Selection
from ..signs import Sign
from .panel import SIDEWAYS
from .pool_cells import PoolCells
from .pool_layout import Grid, lay_out_two
from .pool_overview import HALF_FULL

if TYPE_CHECKING:
    from ..player import Player


class Pool(PoolCells):
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
        self.twin: Pool | None = None  # of two in lock-step the other one, whose cells stand for as many tokens

    # Reading

    def read(self) -> None:
        super().read()
        self._entitle()
        if self._changed and self._grid.lines > self.height:
            self.show_line(self._grid.line_of(self._changed[0]))

    def _lay_out(self) -> Grid:
        """By itself, or as the other one of two."""
        if self.twin is None or self.zoomed:
            return super()._lay_out()
        seen = self.twin if self.twin.region else self
        shapes = [(view.num_blocks, view.block_size) for view in (self.player.view, self.twin.player.view)]
        return lay_out_two(shapes, min(self.width, seen.width), min(self.height, seen.height))[0]

    def _entitle(self) -> None:
        counts = self.player.cells.counts()
        figures = f"{counts.used:,} in use · {counts.cached:,} cached · {counts.empty:,} empty"
        grid, below, zoom = self._grid, "", key_of(self.app, "zoom")
        if self.twin is not None and not self.zoomed and not grid.listed:
            tokens, zoomable = grid.per_cell * self.player.view.block_size, f" · {zoom} enlarges" * grid.overview
            below = f"1 cell = {plural(tokens, 'token')} ({plural(grid.per_cell, 'block')}){zoomable}"
        elif grid.overview:
            below = f"1 cell = {grid.per_cell:,} blocks, {HALF_FULL} half full · {zoom}: single blocks"
        elif self.zoomed and grid.lines > self.height:
            first = self.scroll_offset.y * grid.columns
            last = min(first + self.height * grid.columns, grid.num_blocks) - 1
            below = f"b{first}–b{last} of {grid.num_blocks - 1:,} blocks · {zoom}: overview"
        if not self._legend and not grid.listed:
            below += f"{' · ' if below else ''}{key_of(self.app, 'help')}: signs"
        held = ((Sign.USED, counts.used), (Sign.FINDABLE, counts.cached), (Sign.EMPTY, counts.empty))
        brief = "  ".join(f"{self.glyph(sign)} {count:,}" for sign, count in held)
        self.entitle(f"Pool · {self.label}" if self.label else "Block pool", figures, below, brief)

    @property
    def can_zoom(self) -> bool:
        """Whether not every block is seen at once."""
        return self._grid.overview or self._grid.lines > self.height

    # Cursor

    def move(self, dx: int, dy: int) -> bool:
        grid = self._grid
        target = self.cursor + (dx + dy * grid.columns) * grid.per_cell
        if not 0 <= target < grid.num_blocks:
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
