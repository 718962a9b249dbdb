"""A cell that stands for several blocks of the pool.

It shows what is news in this step if anything is (an eviction before a hit before a computation), else what most of its
blocks are; and beside it, unless all of them do, how many hold something: `●▄` is half full.
"""

from functools import lru_cache

from ..cells import CODE
from ..signs import NEWS, Sign

HELD = (Sign.SHARED, Sign.USED, Sign.FINDABLE)
RAMP = "▁▂▃▄▅▆▇"
HALF_FULL = RAMP[3]


@lru_cache(maxsize=4096)
def dominant(codes: bytes) -> tuple[Sign, float]:
    """The sign of a cell whose blocks have these codes, and the share of them that holds something. The null block is
    no part of either."""
    counts = {sign: codes.count(CODE[sign]) for sign in Sign}
    num_blocks = len(codes) - counts[Sign.NULL]
    share = 1 - counts[Sign.EMPTY] / max(1, num_blocks)
    for sign in NEWS:
        if counts[sign]:
            return sign, share
    most = max(HELD, key=lambda sign: counts[sign])
    return (most if counts[most] else Sign.EMPTY), share


def fullness(share: float) -> str:
    """How full a cell is, in one column; blank if nothing or everything in it holds something."""
    return RAMP[int(share * 7)] if 0 < share < 1 else " "
