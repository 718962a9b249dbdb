"""Whole numbers as people type them: `1234`, or `1,234` as the screen writes it."""

import re

from minicache.core.errors import MinicacheError

MOST_DIGITS = 18  # more than any run has of anything; of thousands of digits Python makes no number
_WRITTEN = re.compile(r"[+-]?\d[\d,]*")
_SHOWN = 40  # characters of a line that is no number


class NoNumber(MinicacheError):
    """What was typed is no number that could be meant."""


def is_number(text: str) -> bool:
    """Whether it is written as one, of however many digits."""
    return _WRITTEN.fullmatch(text.strip()) is not None


def whole(text: str, write: str) -> int:
    """The number. Raises `NoNumber`, which says to write `write`: "the number of a step, such as 42"."""
    text = text.strip()
    digits = text.replace(",", "")
    if not digits:
        raise NoNumber(f"nothing is typed: write {write}")
    if not is_number(text):
        raise NoNumber(f"{text[:_SHOWN]!r}{'…' * (len(text) > _SHOWN)} is no number: write {write}")
    if len(digits) > MOST_DIGITS:
        raise NoNumber(f"a number of {len(digits):,} digits is too large: write {write}")
    return int(digits)
