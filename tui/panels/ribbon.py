"""The tokens of a request as a ribbon, cut into blocks: what was found, where it first differed, what was computed.

          hit 16▏         ▼ first difference: token 25                 ▏answer
│You are a suppor│t bot. It is 14:│ … 148 blocks … │here is my parcel│#7 #41 #2
 ◆ b1             ▲ b44                            ▲ b193             ▲ b194
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from minicache.sim.phrases import plural

from ..model.rows import Selection
from .line import Line
from .panel import SIDEWAYS, Panel
from .ribbon_folding import Piece
from .ribbon_layout import Layout
from .ribbon_marks import Label, block_signs, marks, put, put_between
from .ribbon_text import text_line

if TYPE_CHECKING:
    from ..player import Player


class Ribbon(Panel):
    """The cursor is a block of the request."""

    HELP = """\
# Tokens

The prompt of the request, and after it its answer, cut into blocks by `│`, in as many rows as the panel has. **Blue**
was found in the cache, **orange** is computed, **green** was generated; what has no colour is still to come. `▼` is the
first token that differs from the most similar prompt before: from there on nothing can be found, whatever the text is.
**Red** is text that the other prompt has too, and that is lost: it must be computed again. `hit 16▏` stands where the
hit ends, `▏answer` where the answer begins, `…answer` where it goes on after a gap. Below each block, or above it where
the panel is low and there is room, stand its sign and its block of the pool, as `b43`. Blocks of one token, as a radix
tree has them, are drawn together in pieces. What does not fit is folded.

`down` shows a cursor, `left` and `right` then move it from block to block, `enter` explains the block of the pool, and
where there is none yet the first token.
"""

    BINDINGS: ClassVar = [*SIDEWAYS]

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(player, id=id, classes=classes)
        self.cursor: int | None = None
        self._layout: Layout | None = None
        self._key: tuple[object, ...] = ()
        self._moves = False
        self._chosen: frozenset[int] = frozenset()
        self._front = 0.0  # so many columns, row after row, a motion has come over
        self._above: list[Label] = []
        self._below: list[Label] = []

    def read(self) -> None:
        player = self.player
        key = (id(player), player.version, self.width, self.height)
        if key == self._key:
            return
        self._key = key
        self._chosen = player.chosen_blocks()
        before = self._layout.model if self._layout is not None else None
        model = player.ribbon()
        if model is None:
            self._layout = None
            self.entitle("Tokens")
            return
        if before is None or before.request != model.request:
            self.cursor = None
        self._moves = before is None or [b.sign for b in before.blocks] != [b.sign for b in model.blocks]
        self._layout = Layout(model, self.width, self.height // self._row_height or 1, self.cursor)
        drawn = f", drawn {model.drawn} to a piece" if model.drawn else ""
        tokens = plural(model.num_tokens, "token")
        figures = f"{tokens} · {plural(model.num_blocks, 'block')}{drawn}"
        self.entitle(f"{model.request} · tokens", figures, brief=tokens)

    @property
    def in_motion(self) -> bool:
        return self._moves

    @property
    def _row_height(self) -> int:
        """Marks, text, and if there is room signs below it."""
        return 3 if self.height >= 3 else 2

    def count(self) -> int:
        return self._row_height * (self._layout.num_rows if self._layout is not None else 1)

    def redraw(self) -> None:
        if self._layout is not None:
            self._front = self._layout.num_rows * self.width + 1.0
            if self._moves and self.moving < 1:
                self._front *= self.moving
            signs = list(block_signs(self._layout, self._front, self.mark))
            self._above, self._below = marks(self._layout, self._front), signs
            if self._row_height < 3:  # signs stand above all blocks, or none: what has none might seem to be left out
                together = put_between(self._above, signs)
                self._above = together if len(together) == len(self._above) + len(signs) else self._above
        super().redraw()

    def line(self, y: int) -> Line:
        if self._layout is None:
            return Line(self.width).add("No request has arrived yet." if y == 0 else "", "quiet")
        row, what = divmod(y, self._row_height)
        if what == 1:
            cursor = self.cursor if self.pointing else None
            return text_line(self._layout, row, self._front, cursor, self._chosen)
        return put(self._below if what == 2 else self._above, row, self.width)

    # Cursor

    def _move_to(self, block: int) -> bool:
        if self._layout is None or not 0 <= block < len(self._layout.texts):
            return False
        self.cursor = block
        self._layout.fold(block)
        return True

    def _piece_at(self, layout: Layout, x: int, y: int) -> Piece:
        return layout.piece_at(x, y // self._row_height)

    def move(self, dx: int, dy: int) -> bool:
        if self._layout is None or not dx:
            return False
        return self._move_to(self._layout.change if self.cursor is None else self.cursor + dx)

    def point(self, x: int, y: int) -> bool:
        return self._layout is not None and self._move_to(self._layout.first(self._piece_at(self._layout, x, y)).number)

    def under_cursor(self) -> Selection | None:
        if self._layout is None or self.cursor is None:
            return None
        return self._layout.model.blocks[self.cursor].selection

    def describe(self, x: int, y: int) -> str:
        if self._layout is None:
            return ""
        model, piece = self._layout.model, self._piece_at(self._layout, x, y)
        first, last = self._layout.first(piece), self._layout.last(piece)
        words = f"tokens {first.start:,} to {last.start + last.num_tokens - 1:,} of {model.request}"
        if model.drawn:
            return words
        which = f"its block {first.number:,}" if first is last else f"its blocks {first.number:,} to {last.number:,}"
        return f"{words}: {which}"
