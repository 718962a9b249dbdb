"""How so many blocks are laid out in so many cells of the screen, so that rows can be counted and no row is half used.

very few       a row a block, with words
few            6 columns a block and a line between the rows
more           4, 3, then 2 columns a block: the sign and how many share it
too many       each cell stands for 2, 4, 8 … blocks: their dominant sign, and how full they are
"""

from collections.abc import Sequence
from dataclasses import dataclass

LABEL_GAP = 2  # between the number of a row's first block and the row
GROUP = 8  # columns, after which there is a gap, for the eye to count by
WIDTHS = (6, 4, 3, 2)
LISTED = 24  # so many blocks may stand in a list
LISTED_WIDTH = 24  # columns that a block in a list needs
ZOOMED_WIDTH = 4
OVERVIEW_WIDTH = 2
SPACIOUS = 3  # lines, of which an overview leaves one to the legend


@dataclass(frozen=True, slots=True)
class Grid:
    """`columns` cells of `cell` columns in a row, each for `per_cell` blocks; `label` columns stand before the row, and
    every row takes `pitch` lines, of which the first is drawn in."""

    num_blocks: int
    cell: int
    columns: int
    per_cell: int
    label: int
    pitch: int = 1

    @property
    def num_cells(self) -> int:
        return -(-self.num_blocks // self.per_cell)

    @property
    def lines(self) -> int:
        return (-(-self.num_cells // self.columns) - 1) * self.pitch + 1

    @property
    def listed(self) -> bool:
        """Whether there is room for words behind a block."""
        return self.columns == 1 and self.cell >= LISTED_WIDTH

    @property
    def overview(self) -> bool:
        return self.per_cell > 1

    def cells_of(self, y: int) -> range:
        """The cells in line `y`: none in a line between two rows."""
        row, between = divmod(y, self.pitch)
        return range(0) if between else range(row * self.columns, min((row + 1) * self.columns, self.num_cells))

    def blocks_of(self, cell: int) -> range:
        start = cell * self.per_cell
        return range(start, min(start + self.per_cell, self.num_blocks))

    def line_of(self, block: int) -> int:
        return block // self.per_cell // self.columns * self.pitch

    def x_of(self, column: int) -> int:
        """Where a column begins."""
        return self.label + column * self.cell + column // GROUP

    def cell_at(self, x: int, y: int) -> int | None:
        """The cell at `x` of line `y`; None beside the cells."""
        groups, rest = divmod(x - self.label, GROUP * self.cell + 1)
        column = groups * GROUP + min(rest // self.cell, GROUP - 1)
        cells = self.cells_of(y)
        return cells[column] if x >= self.label and column < len(cells) else None


def lay_out(num_blocks: int, width: int, height: int, zoomed: bool = False) -> Grid:
    """The roomiest grid in which all blocks are seen; else an overview, or, `zoomed`, single blocks to scroll."""
    label = len(f"{num_blocks - 1:,}") + LABEL_GAP
    room = max(1, width - label)
    for pitch in (2, 1):
        if num_blocks <= LISTED and (num_blocks - 1) * pitch + 1 <= height and room >= LISTED_WIDTH:
            return Grid(num_blocks, room, 1, 1, label, pitch)
    for cell in WIDTHS:
        for pitch in (2, 1):
            grid = Grid(num_blocks, cell, _columns(room, cell), 1, label, pitch)
            if grid.lines <= height and grid.x_of(grid.columns) <= width + 1:
                return grid
    if zoomed:
        return Grid(num_blocks, ZOOMED_WIDTH, _columns(room, ZOOMED_WIDTH), 1, label)
    columns = _columns(room, OVERVIEW_WIDTH)
    rows = height if height < SPACIOUS else height - 1
    per_cell = 2
    while -(-num_blocks // per_cell) > columns * rows:
        per_cell *= 2
    return Grid(num_blocks, OVERVIEW_WIDTH, columns, per_cell, label)


def lay_out_two(pools: Sequence[tuple[int, int]], width: int, height: int) -> list[Grid]:
    """The grids of pools in panels of the same size, of which each has (blocks, tokens of a block). If one of them is
    an overview, the cells of all are as wide, and stand for as many tokens, as near as whole blocks can be."""
    grids = [lay_out(num_blocks, width, height) for num_blocks, _ in pools]
    if not any(grid.overview for grid in grids):
        return grids
    tokens = max(grid.per_cell * block_size for grid, (_, block_size) in zip(grids, pools, strict=True))
    labels = [grid.label for grid in grids]
    for cell in WIDTHS:
        for pitch in (2, 1):
            columns = _columns(max(1, width - max(labels)), cell)
            grids = [
                Grid(num_blocks, cell, columns, tokens // block_size, label, pitch)
                for (num_blocks, block_size), label in zip(pools, labels, strict=True)
            ]
            if all(grid.lines <= height and grid.x_of(grid.columns) <= width + 1 for grid in grids):
                return grids
    return grids


def _columns(room: int, cell: int) -> int:
    """As many columns as fit: whole groups, or 4, 2 or 1, so that one can count from a row's first number."""
    groups = (room + 1) // (GROUP * cell + 1)
    if groups:
        return groups * GROUP
    return next((columns for columns in (4, 2) if columns * cell <= room), 1)
