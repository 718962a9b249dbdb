"""The words in the border of a panel: its name, or the tabs of the panels in its place; figures; and a line below.

╭─ user2 · tokens ────────── 672 tokens · 42 blocks ─╮    ╭─ 1 pool  2 requests  3 chain  4 order ── 672 tokens ─╮
"""

from functools import lru_cache
from typing import NamedTuple

from .line import ascii_only, cut, printable, width_of

CORNERS = 6  # columns of the border in which no words stand

Tabs = tuple[tuple[str, bool], ...]  # names of panels, and which of them is seen
Parts = tuple[tuple[str, str], ...]  # runs of text with their styles


class Titles(NamedTuple):
    """`title` on the left and `figures` on the right, or the `brief` ones where there is no room for them; and what
    stands `below`."""

    title: str = ""
    figures: str = ""
    below: str = ""
    brief: str = ""


@lru_cache(maxsize=256)
def fitted(titles: Titles, tabs: Tabs, width: int, focused: bool, ascii: bool) -> tuple[Parts, str]:
    """The words above and those below, as far as they fit into the border of a panel of `width` columns."""
    room = width - CORNERS
    clean = ascii_only if ascii else str
    title, figures, below, brief = (clean(printable(text)) for text in titles)
    quiet, frame = "$mc-quiet not bold", "$mc-focus not bold" if focused else "$mc-line not bold"
    gaps = ["  "] * (len(tabs) - 1) + [""]
    parts = [(name + gap, "" if seen else quiet) for (name, seen), gap in zip(tabs, gaps, strict=False)]
    parts = parts or [(cut(title, room, clean("…")), "")]
    room_beside = room - sum(width_of(text) for text, _ in parts)
    if width_of(figures) + 3 > room_beside:
        figures = brief
    fill = room_beside - width_of(figures) - 2
    if figures and fill >= 1:
        parts += [(f" {clean('━' if focused else '─') * fill} ", frame), (figures, quiet)]
    return tuple(parts), cut(below, room, clean("…"))
