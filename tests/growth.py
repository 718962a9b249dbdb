"""How the cost of some work grows with its size: in time that is linear, four times the size costs four times as much,
and in quadratic time sixteen times."""

import gc
from collections.abc import Callable
from time import process_time

TOO_FAST = 0.004  # seconds: below this, the clock and other work on the machine count more than the work


def require_linear(work_of: Callable[[int], Callable[[], object]], size: int) -> None:
    """Fail if the work at `4 * size` takes more than 8 times the processor time of the work at `size`; `work_of(size)`
    prepares it, untimed. Of each the fastest of several runs counts, and a long pair of runs is compared again."""
    small, large = work_of(size), work_of(4 * size)
    for _ in range(4):
        fast, slow = min(_seconds(small) for _ in range(3)), _seconds(large)
        if slow <= 8 * max(fast, TOO_FAST):
            return
    raise AssertionError(f"{fast:.3f} s at {size:,}, and {slow:.3f} s at {4 * size:,}")


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = process_time()
    work()
    return process_time() - start
