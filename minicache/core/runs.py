"""Comparing runs of tokens: by halving, and never token by token, for arrays compare at the speed of memory."""

from array import array


def common_prefix(
    run: "array[int]", tokens: "array[int]", start: int = 0, end: int | None = None, unit: int = 1
) -> int:
    """How many tokens `run` and `tokens[start:end]` have in common from their beginnings, in multiples of `unit`."""
    size = min(len(run), (len(tokens) if end is None else end) - start)
    if size % unit == 0 and run[:size] == tokens[start : start + size]:
        return size
    low, high = 0, size // unit + 1  # the first `low` units agree, the first `high` do not
    while high - low > 1:
        middle = (low + high) // 2
        a, b = low * unit, middle * unit
        if run[a:b] == tokens[start + a : start + b]:
            low = middle
        else:
            high = middle
    return low * unit
