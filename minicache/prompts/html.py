"""The diff as one HTML page, which runs no script and loads nothing.

The template escapes every text of a request, and every character that nobody sees. A content security policy in the
page also forbids scripts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from minicache.common.printable import printable
from minicache.prompts.examine import Examined
from minicache.prompts.kinds import LAYERS, WORDS, Layer
from minicache.prompts.report import (
    BYTES,
    GLYPHS,
    Costs,
    State,
    character,
    counts_bytes,
    num_blocks,
    place,
    state,
    verdict,
)
from minicache.prompts.report import blocks as blocks_in_words
from minicache.prompts.shown import Shown

PAGE = Path(__file__).parent / "page.html"
AROUND = 120  # blocks shown before and after the first difference
TEXT, PAIRS = 2000, 20  # characters shown of a text, and pairs of texts shown of one cause
LEGEND = {
    State.reused: "reused",
    State.parted: "holds the first difference",
    State.lost: "lost: reused if every cause is repaired",
    State.computed: "new, or partly filled",
}


@dataclass(frozen=True, slots=True)
class Block:
    number: int
    state: State
    text: str

    @property
    def glyph(self) -> str:
        return GLYPHS[self.state]


@dataclass(frozen=True, slots=True)
class Ribbon:
    name: str
    blocks: list[Block]
    num_blocks: int
    words: str


def page(examined: Examined, costs: Costs, shown: Shown) -> str:
    """The page as HTML text."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_readable
    )
    earlier, later = examined.earlier, examined.later
    return environment.from_string(PAGE.read_text(encoding="utf-8")).render(
        diff=examined.diff,
        character=character(examined.diff),
        bytes=BYTES if counts_bytes(examined) else "",
        verdict=verdict(examined, shown),
        ribbons=[_ribbon("A", examined, earlier.tokens, shown), _ribbon("B", examined, later.tokens, shown)],
        legend=[(GLYPHS[each], each, words) for each, words in LEGEND.items()],
        context=[shown.line(text) for text in examined.diff.context],
        causes=[
            {
                "cause": cause,
                "words": WORDS[cause.kind],
                "layer": LAYERS[cause.layer],
                "place": None if cause.path is None else place(cause, shown),
                "pairs": [
                    (shown.line(a, TEXT), shown.line(b, TEXT)) for a, b in ((cause.a_text, cause.b_text), *cause.more)
                ][:PAIRS],
                "costs": costs.words(cause.gain_tokens),
                "lost": cause.layer is not Layer.none,
            }
            for cause in examined.diff.causes
        ],
    )


def _readable(value: object) -> object:
    """What the page shows of a value. Lines of a prompt stay lines; nothing turns the direction of writing, and nothing
    acts on a terminal that prints the page."""
    return printable(value, keep="\n\t") if isinstance(value, str) else value


def _ribbon(name: str, examined: Examined, tokens: Sequence[int], shown: Shown) -> Ribbon:
    diff = examined.diff
    blocks_in_all = num_blocks(diff, len(tokens))
    middle = diff.reuse.lcp // diff.block_size
    first, last = max(middle - AROUND, 0), min(middle + AROUND + 1, blocks_in_all)
    decode = examined.earlier.prompt.means.tokenizer.decode
    blocks = []
    for number in range(first, last):
        piece = tokens[number * diff.block_size : (number + 1) * diff.block_size]
        blocks.append(Block(number, state(diff, number), shown.text(decode(piece, keep_control=True))))
    return Ribbon(name, blocks, blocks_in_all, blocks_in_words(diff, len(tokens)))
