"""What stands where on the ribbon: each block with its text behind a wall, gaps, and the spots of tokens. A panel that
is high enough has several rows.

│It is 14:03:2│2. You are a su│ … 38 blocks … │? User 2 asks: w│
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ..model.ribbon import RibbonBlock, RibbonModel
from .line import cut, printable, width_of
from .ribbon_folding import Piece, fold_by_interest, gap_text

LONGEST = 48  # columns of one block's text


class Spot(NamedTuple):
    """A column of a row."""

    row: int
    column: int


class Place(NamedTuple):
    """A piece, the spot of the wall before it, and the column of the wall behind it."""

    row: int
    column: int
    end: int
    piece: Piece

    @property
    def spot(self) -> Spot:
        return Spot(self.row, self.column)


class Layout:
    """A ribbon in `num_rows` rows of `width` columns. `places` says where each piece is; `change` is the block where
    the hit ended."""

    def __init__(self, model: RibbonModel, width: int, num_rows: int, cursor: int | None) -> None:
        self.model = model
        self.width = width
        self.num_rows = num_rows
        longest = min(LONGEST, max(1, width // 3))
        self.texts = [_shown(block.text, longest) for block in model.blocks]
        self.change = _change(model)
        self._widths = tuple(width_of(text) + 1 for text in self.texts)
        answer = [block.number for block in model.blocks if block.start <= model.num_prompt_tokens < model.num_tokens]
        last = len(self.texts) - 1
        self._landmarks = (self.change, 0, *answer[-1:], self.change + 1, last, *_borders(model.blocks))
        self.fold(cursor)

    def fold(self, cursor: int | None) -> None:
        """Fold what does not fit, but not what stands around the cursor."""
        around = () if cursor is None else (cursor, cursor - 1, cursor + 1)
        in_row = self.width - 1
        room = self.num_rows * in_row
        while True:
            pieces = fold_by_interest(self._widths, room, around + self._landmarks, self.change)
            self.places = list(self._in_rows(pieces))
            if self.places[-1].row < self.num_rows or room <= in_row:
                return
            room = max(in_row, room - max(self._widths) // 2)  # a row's end stays empty where a block does not fit

    def _in_rows(self, pieces: tuple[Piece, ...]) -> Iterator[Place]:
        row = column = 0
        for piece in pieces:
            end = column + 1 + width_of(self.text_of(piece))
            if column and end >= self.width:
                row, column, end = row + 1, 0, end - column
            yield Place(row, column, end, piece)
            column = end

    def row(self, number: int) -> list[Place]:
        return [place for place in self.places if place.row == number]

    def text_of(self, piece: Piece) -> str:
        if isinstance(piece, int):
            return self.texts[piece]
        return gap_text(len(piece), "piece" if self.model.drawn else "block")

    def first(self, piece: Piece) -> RibbonBlock:
        return self.model.blocks[piece if isinstance(piece, int) else piece.start]

    def last(self, piece: Piece) -> RibbonBlock:
        return self.model.blocks[piece if isinstance(piece, int) else piece.stop - 1]

    def piece_at(self, column: int, row: int) -> Piece:
        """What stands there, or ends before it."""
        return next(place.piece for place in reversed(self.places) if place.spot <= (row, column))

    def wall_behind(self, token: int) -> Spot:
        """The wall behind the tokens before this one, at the end of a row rather than where the next begins."""
        found = [place for place in self.places if self.first(place.piece).start < token]
        return Spot(found[-1].row, found[-1].end) if found else Spot(0, 0)

    def wall_of(self, token: int) -> tuple[Spot, RibbonBlock] | None:
        """The block that shows a token, and its wall; None if it is folded away or not there."""
        for place in self.places:
            block = self.first(place.piece)
            if isinstance(place.piece, int) and block.start <= token < block.start + block.num_tokens:
                return place.spot, block
        return None

    def spot_of(self, token: int) -> Spot | None:
        """Where a token is, or, in a block that shows a name, about its place; None if it is not shown."""
        found = self.wall_of(token)
        if found is None:
            return None
        (row, column), block = found
        width = width_of(self.texts[block.number])
        return Spot(row, column + 1 + (token - block.start) * width // block.num_tokens)

    def answer(self) -> tuple[Spot, bool] | None:
        """The column in front of the answer, and whether it begins there; where that is folded away, the first wall
        behind which it goes on. None if nothing of it is shown."""
        token = self.model.num_prompt_tokens
        found = self.wall_of(token)
        if found is None:
            later = (place.spot for place in self.places if self.first(place.piece).start >= token)
            return next(((spot, False) for spot in later), None)
        (row, column), block = found
        text, before = self.texts[block.number], _shown(self.model.before_answer, LONGEST)
        return Spot(row, column + width_of(text) - width_of(text[len(before) :].lstrip())), True


@lru_cache(maxsize=4096)
def _shown(text: str, longest: int) -> str:
    return cut(printable(text), longest)


def _change(model: RibbonModel) -> int:
    """The block of the first difference; else the first that was not found."""
    if model.difference is not None:
        return next((b.number for b in reversed(model.blocks) if b.start <= model.difference), 0)
    return next((b.number for b in model.blocks if b.start >= model.hit_tokens), len(model.blocks) - 1)


def _borders(blocks: list[RibbonBlock]) -> list[int]:
    """Both sides of every place where the sign changes."""
    return [side.number for pair in pairwise(blocks) if pair[0].sign != pair[1].sign for side in pair]
