"""Comparing runs of tokens by halving: arrays compare at the speed of memory, a loop over tokens does not."""

from array import array


def common_prefix(
    run: "array[int]", tokens: "array[int]", start: int = 0, end: int | None = None, unit: int = 1
) -> int:
    """The length of the longest common prefix of `run` and `tokens[start:end]`, in tokens, rounded down to a multiple
    of `unit`. Pure."""
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
