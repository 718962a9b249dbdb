"""The line of the ribbon that says what the tokens are: text between walls, tinted by where its KV comes from.

│You are a suppor│t bot. It is 14:│ … 148 blocks … │here is my parcel│
"""

from collections.abc import Collection

from ..model.ribbon import RibbonBlock
from .line import Line
from .ribbon_layout import Layout


def text_line(layout: Layout, row: int, front: float, cursor: int | None, chosen: Collection[int]) -> Line:
    """`front` is how many columns of all rows a motion has come over: only what stands before it has its tint. `chosen`
    are blocks of the pool."""
    line = Line(layout.width)
    for place in layout.row(row):
        piece = place.piece
        line.add("│", "focus strong" if piece == cursor else "line")
        block = layout.first(piece)
        tint = _tint(block) if row * layout.width + place.column < front else ""
        if isinstance(piece, range):
            line.add(layout.text_of(piece), f"quiet {tint}")
            continue
        style = f"text {tint}" if tint else "quiet"
        style += " cursor" if piece == cursor else ""
        style += " chosen" if block.block in chosen else ""
        _add_text(line, block, layout.texts[piece], layout.model.difference, style)
    return line.add("│", "line") if line.end else line


def _tint(block: RibbonBlock) -> str:
    """Lost is what could have been found, until it is computed."""
    if block.sign is None:
        return "on-evicted" if block.lost else ""
    return f"on-{block.sign}"


def _add_text(line: Line, block: RibbonBlock, text: str, difference: int | None, style: str) -> None:
    """The text of a block, with the token that differs marked."""
    at = -1 if difference is None else difference - block.start
    if 0 <= at < block.num_tokens == len(text):  # else a name of many tokens, not their text
        line.add(text[:at], style).add(text[at], "evicted strong cursor").add(text[at + 1 :], style)
    else:
        line.add(text, style)
