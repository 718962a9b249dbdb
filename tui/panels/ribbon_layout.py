"""What stands where on the ribbon: each block with its text behind a wall, gaps, and the columns of tokens.

│It is 14:03:2│2. You are a su│ … 38 blocks … │? User 2 asks: w│
"""

from functools import lru_cache
from itertools import pairwise

from ..ribbon import RibbonBlock, RibbonModel
from .line import cut, printable, width_of
from .ribbon_folding import Piece, fold_by_interest, gap_text

LONGEST = 48  # columns of one block's text


class Layout:
    """A ribbon in `width` columns. `columns` says where each piece begins, with its wall, and `end` where the last one
    ends, with a wall too. `change` is the block where the hit ended. `before_answer` is what the block in which the
    answer begins says before it."""

    def __init__(self, model: RibbonModel, width: int, cursor: int | None, before_answer: str = "") -> None:
        self.model = model
        self.width = width
        self.before_answer = _shown(before_answer)
        self.texts = [_shown(block.text) for block in model.blocks]
        self.change = _change(model)
        self._widths = tuple(width_of(text) + 1 for text in self.texts)
        answer = [block.index for block in model.blocks if block.start <= model.num_prompt_tokens < model.num_tokens]
        last = len(self.texts) - 1
        self._landmarks = (self.change, 0, *answer[-1:], self.change + 1, last, *_borders(model.blocks))
        self.fold(cursor)

    def fold(self, cursor: int | None) -> None:
        """Fold what does not fit, but not what stands around the cursor."""
        around = () if cursor is None else (cursor, cursor - 1, cursor + 1)
        self.columns: list[tuple[int, Piece]] = []
        self.end = 0
        for piece in fold_by_interest(self._widths, self.width - 1, around + self._landmarks, self.change):
            self.columns.append((self.end, piece))
            self.end += 1 + width_of(self.text_of(piece))

    def text_of(self, piece: Piece) -> str:
        if isinstance(piece, int):
            return self.texts[piece]
        return gap_text(len(piece), "piece" if self.model.drawn else "block")

    def first(self, piece: Piece) -> RibbonBlock:
        return self.model.blocks[piece if isinstance(piece, int) else piece.start]

    def last(self, piece: Piece) -> RibbonBlock:
        return self.model.blocks[piece if isinstance(piece, int) else piece.stop - 1]

    def piece_at(self, column: int) -> Piece:
        """What stands there, or ends before it."""
        return next(piece for begin, piece in reversed(self.columns) if begin <= column)

    def wall_before(self, token: int) -> int:
        """The column of the first wall behind which no token is before this one."""
        return next((column for column, piece in self.columns if self.first(piece).start >= token), self.end)

    def wall_of(self, token: int) -> tuple[int, RibbonBlock] | None:
        """The block that shows a token, and the column of its wall; None if it is folded away or not there."""
        for column, piece in self.columns:
            block = self.first(piece)
            if isinstance(piece, int) and block.start <= token < block.start + block.num_tokens:
                return column, block
        return None

    def column_of(self, token: int) -> int | None:
        """The column of a token, or, in a block that shows a name, about its place; None if it is not shown."""
        found = self.wall_of(token)
        if found is None:
            return None
        column, block = found
        return column + 1 + (token - block.start) * width_of(self.texts[block.index]) // block.num_tokens

    def answer(self) -> tuple[int, bool]:
        """The column in front of the answer, and whether it begins there; where that is folded away, the first wall
        behind it. `end` if nothing of it is shown."""
        token = self.model.num_prompt_tokens
        found = self.wall_of(token)
        if found is None:
            return self.wall_before(token), False
        column, block = found
        text = self.texts[block.index]
        return column + width_of(text) - width_of(text[len(self.before_answer) :].lstrip()), True


@lru_cache(maxsize=4096)
def _shown(text: str) -> str:
    return cut(printable(text), LONGEST)


def _change(model: RibbonModel) -> int:
    """The block of the first difference; else the first that was not found."""
    if model.difference is not None:
        return next((b.index for b in reversed(model.blocks) if b.start <= model.difference), 0)
    return next((b.index for b in model.blocks if b.start >= model.hit_tokens), len(model.blocks) - 1)


def _borders(blocks: list[RibbonBlock]) -> list[int]:
    """Both sides of every place where the sign changes."""
    return [side.index for pair in pairwise(blocks) if pair[0].sign != pair[1].sign for side in pair]
