"""How much memory this process has used."""

import sys


def peak_bytes() -> int | None:
    """The largest resident size that this process has had, which never falls again; None where it is not known."""
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # not on Windows
        return None
    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def peak_megabytes() -> float | None:
    """The same in units of 1,000,000 bytes."""
    peak = peak_bytes()
    return None if peak is None else peak / 1e6
