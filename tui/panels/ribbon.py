"""The tokens of a request as a ribbon, cut into blocks: what was found, where it first differed, what was computed.

          hit 16▏         ▼ first difference: token 25                 ▏answer
│You are a suppor│t bot. It is 14:│ … 148 blocks … │here is my parcel│#7 #41 #2
 ◆ b1             ▲ b44                            ▲ b193             ▲ b194
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from minicache.sim.phrases import plural

from ..model.rows import Selection
from ..ribbon import RibbonModel
from .line import Line
from .panel import SIDEWAYS, Panel
from .ribbon_layout import Layout
from .ribbon_marks import block_signs, marks, put, put_between
from .ribbon_text import text_line

if TYPE_CHECKING:
    from ..player import Player


class Ribbon(Panel):
    """The cursor is a block of the request."""

    HELP = """\
# Tokens

The prompt of the request, and behind it its answer, cut into blocks by `│`. **Blue** was found in the cache, **orange**
is computed, **green** was generated; what has no colour is still to come. `▼` is the first token that differs from the
most similar prompt before: from there on nothing can be found, whatever the text is. `hit 16▏` stands where the hit
ends, `▏answer` where the answer begins, `…answer` where it goes on behind a gap. Below each block, or above it where
the panel is low, stand its sign and its block of the pool, as `b43`. Blocks of one token, as a radix tree has them, are
drawn together in pieces. What does not fit is folded.

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

    def read(self) -> None:
        player = self.player
        key = (id(player), player.version, self.width)
        if key == self._key:
            return
        self._key = key
        before = self._layout.model if self._layout is not None else None
        model = player.ribbon()
        if model is None:
            self._layout = None
            self.entitle("Tokens")
            return
        if before is None or before.request != model.request:
            self.cursor = None
        self._moves = before is None or [b.sign for b in before.blocks] != [b.sign for b in model.blocks]
        self._layout = Layout(model, self.width, self.cursor, self._before_answer(model))
        drawn = f", drawn {model.drawn} to a piece" if model.drawn else ""
        tokens = plural(model.num_tokens, "token")
        figures = f"{tokens} · {plural(model.num_blocks, 'block')}{drawn}"
        self.entitle(f"{model.request} · tokens", figures, brief=tokens)

    def _before_answer(self, model: RibbonModel) -> str:
        """What the block in which the answer begins says before it."""
        view, end = self.player.view, model.num_prompt_tokens
        known = view.requests.get(model.request) or view.ended[model.request]
        start = next(block.start for block in reversed(model.blocks) if block.start <= end)
        return self.player.texts.of(model.request, known.tokens, end).piece(start, end)

    @property
    def in_motion(self) -> bool:
        return self._moves

    def count(self) -> int:
        return 3 if self.height >= 3 else 2

    def line(self, y: int) -> Line:
        layout = self._layout
        if layout is None:
            return Line(self.width).add("No request has arrived yet." if y == 0 else "", "quiet")
        moving = self._moves and self.moving < 1
        front = self.width * self.moving if moving else self.width + 1  # the column up to which the motion has come
        if y == 1:
            return text_line(layout, front, self.cursor if self.pointing else None, self.player.chosen_blocks())
        signs = block_signs(layout, front, self.mark)
        if y == 2:
            return put(signs, self.width)
        return put(put_between(marks(layout, front), signs if self.count() < 3 else ()), self.width)

    # Cursor

    def _move_to(self, block: int) -> bool:
        if self._layout is None or not 0 <= block < len(self._layout.texts):
            return False
        self.cursor = block
        self._layout.fold(block)
        return True

    def move(self, dx: int, dy: int) -> bool:
        if self._layout is None or not dx:
            return False
        return self._move_to(self._layout.change if self.cursor is None else self.cursor + dx)

    def point(self, x: int, y: int) -> bool:
        return self._layout is not None and self._move_to(self._layout.first(self._layout.piece_at(x)).index)

    def under_cursor(self) -> Selection | None:
        if self._layout is None or self.cursor is None:
            return None
        return self._layout.model.blocks[self.cursor].selection

    def describe(self, x: int, y: int) -> str:
        if self._layout is None:
            return ""
        model, piece = self._layout.model, self._layout.piece_at(x)
        first, last = self._layout.first(piece), self._layout.last(piece)
        words = f"tokens {first.start:,} to {last.start + last.num_tokens - 1:,} of {model.request}"
        if model.drawn:
            return words
        which = f"its block {first.index:,}" if first is last else f"its blocks {first.index:,} to {last.index:,}"
        return f"{words}: {which}"
