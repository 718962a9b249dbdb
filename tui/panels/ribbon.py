"""The tokens of a request as a ribbon, cut into blocks: what was found, where it first differed, what was computed.

          hit 16▏         ▼ first difference: token 25
│You are a suppor│t bot. It is 14:│ … 148 blocks … │here is my parcel│
 ◆ b1             ▲ b44                            ▲ b193
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from minicache.sim.phrases import plural

from ..model.rows import Selection
from ..ribbon import RibbonBlock, RibbonModel
from .line import Line, cut, head, printable, width_of
from .panel import SIDEWAYS, Panel
from .ribbon_layout import fold_by_interest, gap_text

if TYPE_CHECKING:
    from ..player import Player

Row = list[tuple[str, str]]  # runs of text with their styles

TINTED = ("hit", "computed", "generated", "shared")
LONGEST = 48  # columns of one block's text


class Ribbon(Panel):
    """The cursor is a block of the request."""

    HELP = """\
# Tokens

The prompt of the request, and behind it what it generated, cut into blocks by `│`. **Blue** was found in the cache,
**orange** is computed, **green** was generated; what has no colour is still to come. `▼` is the first token that
differs from the most similar prompt before: from there on nothing can be found, whatever the text is. `hit 16▏` stands
where the hit ends. Below each block, or above it where the panel is low, stand its sign and its block of the pool, as
`b43`. Blocks of one token, as a radix tree has them, are drawn together in pieces. What does not fit is folded.

`down` shows a cursor, `left` and `right` then move it from block to block, `enter` explains the block of the pool, and
where there is none yet the first token.
"""

    BINDINGS: ClassVar = [*SIDEWAYS]

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(player, id=id, classes=classes)
        self.cursor: int | None = None
        self._model: RibbonModel | None = None
        self._texts: list[str] = []
        self._pieces: Sequence[int | range] = ()
        self._columns: list[tuple[int, int | range]] = []  # where each piece begins
        self._key: tuple[object, ...] = ()
        self._moves = False

    def read(self) -> None:
        player = self.player
        key = (id(player), player.version, self.width)
        if key == self._key:
            return
        self._key = key
        before = self._model
        model = self._model = player.ribbon()
        if model is None:
            self._texts, self._pieces, self._columns = [], [], []
            self.entitle("Tokens")
            return
        if before is None or before.request != model.request:
            self.cursor = None
        self._moves = before is None or [b.sign for b in before.blocks] != [b.sign for b in model.blocks]
        self._texts = [_shown(block.text) for block in model.blocks]
        drawn = f", drawn {model.drawn} to a piece" if model.drawn else ""
        tokens = plural(model.num_tokens, "token")
        figures = f"{tokens} · {plural(model.num_blocks, 'block')}{drawn}"
        self.entitle(f"{model.request} · tokens", figures, brief=tokens)
        self._fold()

    def _fold(self) -> None:
        model = self._model
        if model is None or not model.blocks:
            self._pieces, self._columns = [], []
            return
        count = len(model.blocks)
        change = self._change(model)
        landmarks = [change, 0, change + 1, count - 1, *_borders(model.blocks)]
        if self.cursor is not None:
            landmarks = [self.cursor, self.cursor - 1, self.cursor + 1, *landmarks]
        widths = tuple(width_of(text) + 1 for text in self._texts)
        self._pieces = fold_by_interest(widths, self.width - 1, tuple(landmarks), change)
        self._columns = []
        column = 0
        for piece in self._pieces:
            self._columns.append((column, piece))
            column += 1 + width_of(self._piece_text(piece))

    def _change(self, model: RibbonModel) -> int:
        """The block of the first difference; else the first that was not found."""
        if model.difference is not None:
            return next((b.index for b in reversed(model.blocks) if b.start <= model.difference), 0)
        return next((b.index for b in model.blocks if b.start >= model.hit_tokens), len(model.blocks) - 1)

    def _piece_text(self, piece: int | range) -> str:
        return self._texts[piece] if isinstance(piece, int) else self._gap(piece)

    def _gap(self, piece: range) -> str:
        return gap_text(len(piece), "piece" if self._model is not None and self._model.drawn else "block")

    @property
    def in_motion(self) -> bool:
        return self._moves

    def count(self) -> int:
        return 3 if self.height >= 3 else 2

    # Drawing

    def line(self, y: int) -> Line:
        if self._model is None:
            return Line(self.width).add("No request has arrived yet." if y == 0 else "", "quiet")
        if not self._model.blocks:
            return Line(self.width)
        return (self._marks, self._text, self._signs)[y](self._model)

    @property
    def _front(self) -> float:
        """How far a motion has come, in columns: what lies behind it has not its new sign yet."""
        if self.moving >= 1 or not self._moves:
            return self.width + 1
        return self.width * self.moving

    def _marks(self, model: RibbonModel) -> Line:
        """How much was hit, where the first difference is; and the signs, where these have no line of their own."""
        labels: list[tuple[int, Row]] = []
        difference = self._difference_column(model)
        if model.hit_tokens:
            words, end = f"hit {model.hit_tokens:,}", self._hit_end(model)
            if end >= len(words):
                labels.append((end - len(words), [(words, "hit strong"), ("▏", "hit")]))
            elif difference is None or difference > end + len(words) + 2:
                labels.append((end, [("▏", "hit"), (words, "hit strong")]))
        if difference is not None:
            labels.append(self._difference_label(model, difference, _end(labels[-1]) + 1 if labels else 0))
        if self.count() < 3:
            for column, row in self._block_signs(model):
                end = column + sum(width_of(text) for text, _ in row)
                if all(end + 1 < start or column > _end((start, label)) for start, label in labels):
                    labels.append((column, row))
        return self._placed(sorted(labels, key=lambda label: label[0]))

    def _difference_label(self, model: RibbonModel, column: int, first: int) -> tuple[int, Row]:
        """The mark above the token, and on its right what it says, in fewer words where there is less room; on its left
        only if there is room for none of them."""
        where = f"token {model.difference:,}"
        against = printable(f" (against {model.against})") if model.against else ""
        dropped = self._front > min(column + self.width / 3, self.width)
        mark = ("▼" if dropped else "╷", "evicted strong")
        for words in (f"first difference: {where}{against}", f"first difference: {where}", where):
            if column + 2 + width_of(words) <= self.width:
                return max(first, column), [mark, (f" {words}", "evicted")]
        return max(first, column - width_of(where) - 1), [(f"{where} ", "evicted"), mark]

    def _hit_end(self, model: RibbonModel) -> int:
        """The column of the wall behind what was found."""
        for column, piece in self._columns:
            start = model.blocks[piece if isinstance(piece, int) else piece.start].start
            if start >= model.hit_tokens:
                return column
        column, piece = self._columns[-1]
        return column + 1 + width_of(self._piece_text(piece))

    def _placed(self, labels: list[tuple[int, Row]]) -> Line:
        line = Line(self.width)
        for column, row in labels:
            line.to(column)
            for text, style in row:
                line.add(text, style)
        return line

    def _difference_column(self, model: RibbonModel) -> int | None:
        if model.difference is None:
            return None
        for column, piece in self._columns:
            if isinstance(piece, int):
                block = model.blocks[piece]
                if block.start <= model.difference < block.start + block.num_tokens:
                    share = (model.difference - block.start) / block.num_tokens
                    return column + 1 + int(share * width_of(self._texts[piece]))
        return None

    def _text(self, model: RibbonModel) -> Line:
        line = Line(self.width)
        chosen = self.player.chosen_blocks()
        for column, piece in self._columns:
            wall = "focus strong" if self._at_cursor(piece) else "line"
            line.add("│", wall)
            if isinstance(piece, range):
                line.add(self._gap(piece), "quiet " + self._tint(model.blocks[piece.start], column))
                continue
            block = model.blocks[piece]
            style = self._tint(block, column)
            style = f"text {style}" if style else "quiet"
            if self._at_cursor(piece):
                style += " cursor"
            if block.block is not None and block.block in chosen:
                style += " chosen"
            self._add_text(line, model, block, style)
        return line.add("│", "line")

    def _add_text(self, line: Line, model: RibbonModel, block: RibbonBlock, style: str) -> None:
        """The text of a block, with the token that differs marked."""
        text = self._texts[block.index]
        difference = model.difference
        within = difference is not None and block.start <= difference < block.start + block.num_tokens
        if difference is None or not within or len(text) != block.num_tokens:  # a name of many tokens, not their text
            line.add(text, style)
            return
        at = int((difference - block.start) / block.num_tokens * width_of(text))
        before = head(text, at)
        char = text[len(before) : len(before) + 1]
        line.add(before, style).add(char, "evicted strong cursor").add(text[len(before) + 1 :], style)

    def _tint(self, block: RibbonBlock, column: int) -> str:
        sign = str(block.sign)
        return f"on-{sign}" if sign in TINTED and column < self._front else ""

    def _signs(self, model: RibbonModel) -> Line:
        return self._placed(list(self._block_signs(model)))

    def _block_signs(self, model: RibbonModel) -> Iterator[tuple[int, Row]]:
        """The sign and the number of every block that is shown, above or below its text."""
        for column, piece in self._columns:
            if column >= self._front or isinstance(piece, range):
                continue
            block = model.blocks[piece]
            row: Row = [(f"{self.mark(block.sign)} ", str(block.sign))] if block.sign is not None else []
            if block.block is not None:
                room = width_of(self._texts[piece]) - 2
                row.append((block.held if len(block.held) <= room else f"b{block.block}", "quiet"))
            yield column + 1, row

    # Cursor

    def _at_cursor(self, piece: int | range) -> bool:
        return self.pointing and self.cursor is not None and (piece == self.cursor)

    def move(self, dx: int, dy: int) -> bool:
        if self._model is None or not dx or not self._model.blocks:
            return False
        target = self._change(self._model) if self.cursor is None else self.cursor + dx
        if not 0 <= target < len(self._model.blocks):
            return False
        self.cursor = target
        self._fold()
        return True

    def point(self, x: int, y: int) -> bool:
        found = next((piece for column, piece in reversed(self._columns) if column <= x), None)
        if found is None:
            return False
        self.cursor = found if isinstance(found, int) else found.start
        self._fold()
        return True

    def under_cursor(self) -> Selection | None:
        if self._model is None or self.cursor is None:
            return None
        return self._model.blocks[self.cursor].selection

    def describe(self, x: int, y: int) -> str:
        found = next((piece for column, piece in reversed(self._columns) if column <= x), None)
        if self._model is None or found is None:
            return ""
        if isinstance(found, range):
            first, last = self._model.blocks[found.start], self._model.blocks[found.stop - 1]
        else:
            first = last = self._model.blocks[found]
        words = f"tokens {first.start:,} to {last.start + last.num_tokens - 1:,} of {self._model.request}"
        if self._model.drawn:
            return words
        which = f"its block {first.index:,}" if first is last else f"its blocks {first.index:,} to {last.index:,}"
        return f"{words}: {which}"


@lru_cache(maxsize=4096)
def _shown(text: str) -> str:
    return cut(printable(text), LONGEST)


def _end(label: tuple[int, Row]) -> int:
    """The column behind a label."""
    return label[0] + sum(width_of(text) for text, _ in label[1])


def _borders(blocks: list[RibbonBlock]) -> list[int]:
    """Both sides of every place where the sign changes."""
    found = []
    for left, right in pairwise(blocks):
        if left.sign != right.sign:
            found += [left.index, right.index]
    return found
