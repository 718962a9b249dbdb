"""The nearest name to a misspelt one, worded the same way everywhere."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

# The time grows with the number of options and with the square of their lengths, and a log may give the names.
MOST_OPTIONS, LONGEST = 5_000, 100


def nearest(word: str, options: Iterable[str]) -> str | None:
    """The option that is most like `word`; None if no option is similar. Only the first `MOST_OPTIONS` of at most
    `LONGEST` characters are compared."""
    if len(word) > LONGEST:
        return None
    short = (option for option in options if len(option) <= LONGEST)
    return next(iter(get_close_matches(word, list(islice(short, MOST_OPTIONS)), n=1)), None)


def suggestion(word: str, options: Iterable[str]) -> str:
    """`: did you mean 'x'?`, to be put at the end of an error; empty if no option is similar."""
    near = nearest(word, options)
    return "" if near is None else f": did you mean {near!r}?"


def not_one_of(value: object, options: Iterable[str]) -> str:
    """`must be one of a, b, c, not 'x': did you mean 'c'?`, to be put after the name of what has this value."""
    names = list(options)
    return f"must be one of {', '.join(names)}, not {value!r}{suggestion(str(value), names)}"
