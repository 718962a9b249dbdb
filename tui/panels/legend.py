"""The legend below the blocks: the signs that are on the screen now, where there is room for it."""

from collections.abc import Callable

from ..cells import CODE
from ..signs import Sign
from .line import Line, width_of

WORDS = (
    (Sign.EMPTY, "empty"),
    (Sign.FINDABLE, "free, findable"),
    (Sign.USED, "in use"),
    (Sign.SHARED, "shared by 3"),
    (Sign.HIT, "hit now"),
    (Sign.COMPUTED, "computed now"),
    (Sign.GENERATED, "generated now"),
    (Sign.EVICTED, "evicted now"),
    (Sign.PREEMPTED, "given up now"),
    (Sign.NULL, "null block"),
)
GAP = "   "


def legend_lines(codes: bytes, overview: bool, width: int, spare: int, mark: Callable[[Sign, int], str]) -> list[Line]:
    """At most `spare` lines, the last ones of the panel; none if they cannot hold every sign among `codes`. In an
    `overview` nobody sees the null block."""
    lines = [Line(width)]
    for sign, words in WORDS:
        if CODE[sign] not in codes or (overview and sign is Sign.NULL):
            continue
        glyph = mark(sign, 3)
        if lines[-1].room < width_of(glyph) + 1 + len(words):
            lines.append(Line(width))
        lines[-1].add(glyph, str(sign)).add(f" {words}", "quiet").add(GAP)
    if len(lines) > spare:
        return []
    return [Line(width) for _ in range(spare - len(lines))] + lines
