"""How long work reports its progress: it calls a function that it is given."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]  # what is being done, how much of it is done, out of how much


def silent(what: str, done: int, total: int) -> None:
    """A `Progress` that shows nothing."""


class Counter:
    """Reports each of `total` pieces of work when it begins."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._done, self._total = progress, 0, total

    def next(self, what: str) -> None:
        self._progress(what, self._done, self._total)
        self._done += 1
