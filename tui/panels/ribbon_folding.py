"""Which blocks of a prompt stand on the ribbon when not all of them fit: the others are folded into gaps.

│It is 14:03:2│2. You are a su│ … 38 blocks … │? User 2 asks: w│
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

Piece = int | range  # a block that is shown, or the blocks of a gap

PATIENCE = 4  # so many blocks that do not fit, one after the other, and no more are tried


def gap_width(count: int) -> int:
    return len(gap_text(count))


def gap_text(count: int, noun: str = "block") -> str:
    """`noun` has as many letters as `block`."""
    return f" … {count:,} {noun}s … " if count > 1 else f" … 1 {noun} … "


def pieces(shown: Iterable[int], count: int) -> Iterator[Piece]:
    """The blocks 0 … count - 1 in order: a number for each that is shown, a range for each gap."""
    end = 0
    for index in sorted(shown):
        if index > end:
            yield range(end, index)
        yield index
        end = index + 1
    if end < count:
        yield range(end, count)


def fold(widths: Sequence[int], room: int, wanted: Iterable[int]) -> list[Piece]:
    """As many blocks as fit into `room` columns, those wanted first before the others; gaps take room too.

    `widths` are the columns of each block, the wall before it included. The first wanted block is always shown.
    """
    count = len(widths)
    if sum(widths) <= room:
        return list(range(count))
    shown: set[int] = set()
    failures = 0
    for index in wanted:
        if index in shown or not 0 <= index < count:
            continue
        trial = shown | {index}
        if not shown or _width(trial, widths) <= room:
            shown = trial
            failures = 0
        else:
            failures += 1
            if failures >= PATIENCE:
                break
    return list(pieces(shown, count))


def _width(shown: set[int], widths: Sequence[int]) -> int:
    total = 0
    for piece in pieces(shown, len(widths)):
        total += widths[piece] if isinstance(piece, int) else gap_width(len(piece)) + 1
    return total


def by_interest(count: int, landmarks: Sequence[int], change: int) -> Iterator[int]:
    """Every block once: first the landmarks, then outwards from `change` and from the beginning in turns."""
    seen: set[int] = set()
    for index in (*landmarks, *(i for step in range(count) for i in (change + step, step, change - step))):
        if 0 <= index < count and index not in seen:
            seen.add(index)
            yield index


@lru_cache(maxsize=256)
def fold_by_interest(widths: tuple[int, ...], room: int, landmarks: tuple[int, ...], change: int) -> tuple[Piece, ...]:
    """`fold`, those wanted first `by_interest`."""
    return tuple(fold(widths, room, by_interest(len(widths), landmarks, change)))
