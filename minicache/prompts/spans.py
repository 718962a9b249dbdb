"""Where two texts that differ become equal again."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from minicache.prompts.reuse import common_prefix

ANCHOR = 16  # two texts meet again where this many characters agree
SHORT_ANCHOR = 3  # enough where both texts end with these characters
FIRST_WINDOW = 256
LARGEST_WINDOW = 1 << 16


@dataclass(frozen=True, slots=True)
class Span:
    """A difference of two texts: one has `a[a_start:a_end]` where the other has `b[b_start:b_end]`."""

    a_start: int
    a_end: int
    b_start: int
    b_end: int


def meet(a: str, b: str, a_start: int, b_start: int) -> Span | None:
    """The smallest difference that begins at `a_start` and `b_start`; `None` if the texts do not meet again within
    `LARGEST_WINDOW` characters. Two texts meet where `ANCHOR` characters agree, or the whole rest of A.

    Each window is four times the last one, so the time is linear in the length of the difference.
    """
    window = FIRST_WINDOW
    while True:
        best = _meet_within(a, b, a_start, b_start, window)
        if best is not None:
            return Span(a_start, a_start + best[0], b_start, b_start + best[1])
        if window >= max(len(a) - a_start, len(b) - b_start) or window >= LARGEST_WINDOW:
            return None
        window *= 4


def _meet_within(a: str, b: str, a_start: int, b_start: int, window: int) -> tuple[int, int] | None:
    places: dict[str, int] = {}
    for i in range(min(window, len(a) - a_start - ANCHOR + 1)):
        places.setdefault(a[a_start + i : a_start + i + ANCHOR], i)
    best: tuple[int, int] | None = None
    for j in range(min(window, len(b) - b_start - ANCHOR + 1)):
        if best is not None and j >= sum(best):
            break
        found = places.get(b[b_start + j : b_start + j + ANCHOR])
        if found is not None and (best is None or found + j < sum(best)):
            best = (found, j)
    if len(a) - a_start <= window:
        for length in range(min(ANCHOR - 1, len(a) - a_start), SHORT_ANCHOR - 1, -1):
            i = len(a) - a_start - length
            j = b.find(a[len(a) - length :], b_start, b_start + window)
            if j >= 0 and (best is None or i + j - b_start < sum(best)):
                best = (i, j - b_start)
    return best


def common_suffix(a: str, b: str, a_start: int, b_start: int) -> int:
    """The length of the common suffix of `a[a_start:]` and `b[b_start:]`."""
    return common_prefix(a[a_start:][::-1], b[b_start:][::-1])


def common_with_start(items: Sequence[object]) -> list[int]:
    """For each place, the length of the longest piece that begins there and equals the beginning of `items`; the first
    is the whole length. One pass (the Z function): `items[left:right]` is the piece known so far that ends last."""
    found = [len(items)] * len(items)
    left = right = 0
    for place in range(1, len(items)):
        length = min(found[place - left], right - place) if place < right else 0
        while place + length < len(items) and items[length] == items[place + length]:
            length += 1
        if place + length > right:
            left, right = place, place + length
        found[place] = length
    return found


def first_letters(a: str, b: str) -> tuple[int, int, int]:
    """The first letters that differ, with the marks that combine with them: where both begin, where A's ends, and where
    B's ends."""
    start = common_prefix(a, b)
    if start and any(unicodedata.combining(text[start : start + 1] or "a") for text in (a, b)):
        start -= 1
    return start, _letter_end(a, start), _letter_end(b, start)


def _letter_end(text: str, start: int) -> int:
    end = start + 1
    while end < len(text) and unicodedata.combining(text[end]):
        end += 1
    return min(end, len(text))


@lru_cache(maxsize=8)  # several detectors look at one pair of values
def difference(a: str, b: str) -> Span:
    """The first difference between two texts: from where they diverge to where they meet again, or to their ends."""
    start = common_prefix(a, b)
    suffix = common_suffix(a, b, start, start)
    a_end, b_end = len(a) - suffix, len(b) - suffix
    if max(a_end, b_end) - start > ANCHOR:
        found = meet(a[:a_end], b[:b_end], start, start)
        if found is not None:
            return found
    return Span(start, a_end, start, b_end)
