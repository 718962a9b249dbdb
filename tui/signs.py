"""The signs of blocks: what each means, and the glyphs that stand for it.

A sign is never told by its colour alone: every one has a glyph of its own, in Unicode and in plain ASCII.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Sign(StrEnum):
    """How a block stands. `hit`, `computed`, `generated`, `evicted` and `preempted` are news of this step."""

    EMPTY = "empty"
    FINDABLE = "findable"
    USED = "used"
    SHARED = "shared"
    HIT = "hit"
    COMPUTED = "computed"
    GENERATED = "generated"
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    NULL = "null"


MEANINGS: Mapping[Sign, str] = {
    Sign.EMPTY: "empty: holds nothing that can be found",
    Sign.FINDABLE: "cached: free, but a lookup can find it, until it is evicted",
    Sign.USED: "in use by one request",
    Sign.SHARED: "in use by several requests",
    Sign.HIT: "hit in this step",
    Sign.COMPUTED: "computed in this step",
    Sign.GENERATED: "computed in this step, for generated tokens",
    Sign.EVICTED: "evicted in this step",
    Sign.PREEMPTED: "given up in this step, by a preempted request",
    Sign.NULL: "the null block: never handed out",
}
NEWS = (Sign.PREEMPTED, Sign.EVICTED, Sign.HIT, Sign.COMPUTED, Sign.GENERATED)  # of this step; the rarest first


@dataclass(frozen=True)
class Glyphs:
    """One character for each sign, one cell wide. `shared_digit`: of a shared block only by how many is said."""

    glyphs: Mapping[Sign, str]
    shared_digit: bool = False

    def __getitem__(self, sign: Sign) -> str:
        return self.glyphs[sign]

    def mark(self, sign: Sign, sharers: int) -> str:
        """The glyph, and behind that of a shared block by how many: `◉3`, `◉12`; in ASCII `3`, `12`."""
        if sign is not Sign.SHARED or sharers < 2:
            return self.glyphs[sign]
        return str(sharers) if self.shared_digit else f"{self.glyphs[sign]}{sharers}"


UNICODE = Glyphs(dict(zip(Sign, "·○●◉◆▲▴✕!∅", strict=True)))
ASCII = Glyphs(dict(zip(Sign, ".o#&=+^x!N", strict=True)), shared_digit=True)
