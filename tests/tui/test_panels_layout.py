"""Where blocks stand in the pool, and which blocks of a prompt stand on the ribbon."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache_tui.cells import CODE
from minicache_tui.panels.pool_layout import Grid, lay_out
from minicache_tui.panels.pool_overview import dominant
from minicache_tui.panels.ribbon_folding import by_interest, fold, gap_text
from minicache_tui.signs import Sign

SIZES = st.tuples(st.integers(1, 20_000), st.integers(16, 200), st.integers(1, 50))


@given(SIZES, st.booleans())
def test_every_block_has_a_cell_that_is_found_again_where_it_is_drawn(size: tuple[int, int, int], zoomed: bool) -> None:
    grid = lay_out(*size, zoomed=zoomed)
    for block in {0, min(1, size[0] - 1), size[0] // 2, size[0] - 1}:
        y = grid.line_of(block)
        column = block // grid.per_cell % grid.columns
        cell = grid.cells_of(y)[column]
        x = grid.x_of(column)
        assert block in grid.blocks_of(cell)
        assert grid.cell_at(x, y) == grid.cell_at(x + grid.cell - 1, y) == cell


@given(SIZES)
def test_all_blocks_are_seen_at_once(size: tuple[int, int, int]) -> None:
    num_blocks, width, height = size
    grid = lay_out(*size)
    assert grid.lines <= height
    cells = [grid.blocks_of(cell) for y in range(grid.lines) for cell in grid.cells_of(y)]
    assert [block for blocks in cells for block in blocks] == list(range(num_blocks)), "from block 0 on, at every size"
    assert grid.x_of(grid.columns - 1) + grid.cell <= max(width, grid.label + 2)


def test_nothing_is_beside_or_between_the_cells() -> None:
    grid = lay_out(16, 60, 8)
    assert grid.pitch == 2
    assert grid.cell_at(0, 0) is None
    assert grid.cell_at(grid.label, 1) is None
    assert grid.cell_at(grid.label, grid.lines) is None


@pytest.mark.parametrize(
    ("size", "per_cell"), [((64, 56, 16), 1), ((513, 56, 22), 1), ((10_000, 76, 7), 64), ((10_000, 56, 24), 32)]
)
def test_a_cell_stands_for_several_blocks_only_where_it_must(size: tuple[int, int, int], per_cell: int) -> None:
    assert lay_out(*size).per_cell == per_cell


@given(st.lists(st.sampled_from(Sign), min_size=1, max_size=64))
def test_the_null_block_makes_a_cell_neither_fuller_nor_emptier(signs: list[Sign]) -> None:
    codes = bytes(CODE[sign] for sign in signs if sign is not Sign.NULL)
    if codes:
        assert dominant(bytes([CODE[Sign.NULL]]) + codes) == dominant(codes)
    assert dominant(bytes([CODE[Sign.NULL]]))[0] is Sign.EMPTY


def test_a_pool_that_is_zoomed_shows_single_blocks_and_more_lines_than_fit() -> None:
    grid = lay_out(10_000, 76, 7, zoomed=True)
    assert grid == Grid(10_000, 4, 16, 1, 7)
    assert grid.lines > 7


@given(st.lists(st.integers(1, 20), min_size=1, max_size=60), st.integers(20, 120), st.data())
def test_a_ribbon_shows_every_block_or_counts_it_in_a_gap_and_fits(
    widths: list[int], room: int, data: st.DataObject
) -> None:
    change = data.draw(st.integers(0, len(widths) - 1))
    pieces = fold(widths, room, by_interest(len(widths), [change, 0, len(widths) - 1], change))
    covered = [index for piece in pieces for index in ([piece] if isinstance(piece, int) else piece)]
    assert covered == list(range(len(widths)))
    assert change in pieces
    taken = sum(widths[p] if isinstance(p, int) else len(gap_text(len(p))) + 1 for p in pieces)
    first = widths[change] + sum(len(gap_text(n)) + 1 for n in (change, len(widths) - 1 - change) if n)
    assert taken <= max(room, first)


@given(st.integers(1, 40), st.lists(st.integers(-3, 45), max_size=4), st.integers(0, 39))
def test_interest_names_every_block_once(count: int, landmarks: list[int], change: int) -> None:
    assert sorted(by_interest(count, landmarks, min(change, count - 1))) == list(range(count))
