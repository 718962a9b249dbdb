"""The legend below the blocks: the signs that are on the screen now, where there is room for it."""

from collections.abc import Callable

from ..cells import CODE
from ..signs import Sign
from .line import Line, width_of

WORDS = (
    (Sign.EMPTY, "empty", "empty"),
    (Sign.FINDABLE, "cached", "cached"),
    (Sign.USED, "in use", "in use"),
    (Sign.SHARED, "in use by 3", "shared"),
    (Sign.HIT, "hit now", "hit"),
    (Sign.COMPUTED, "computed now", "computed"),
    (Sign.GENERATED, "generated now", "generated"),
    (Sign.EVICTED, "evicted now", "evicted"),
    (Sign.PREEMPTED, "given up now", "given up"),
    (Sign.NULL, "null block", "null"),
)


def legend_lines(codes: bytes, overview: bool, width: int, spare: int, mark: Callable[[Sign, int], str]) -> list[Line]:
    """At most `spare` lines, the last ones of the panel, in fewer words if need be; none if they cannot hold every sign
    among `codes`. In an `overview` nobody sees the null block."""
    for words, gap in ((1, "   "), (2, "  ")):
        lines = [Line(width)]
        for entry in WORDS:
            sign, text = entry[0], entry[words]
            if CODE[sign] not in codes or (overview and sign is Sign.NULL):
                continue
            glyph = mark(sign, 3)
            if lines[-1].room < width_of(glyph) + 1 + len(text):
                lines.append(Line(width))
            lines[-1].add(glyph, str(sign)).add(f" {text}", "quiet").add(gap)
        if len(lines) <= spare:
            return [Line(width) for _ in range(spare - len(lines))] + lines
    return []
