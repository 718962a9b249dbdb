"""One call at a time: a guard that tells a second caller so, instead of letting it corrupt what the first is doing."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from minicache.engine.errors import EngineBusy


class Guarded(Protocol):
    """An object whose methods exclude each other."""

    @property
    def busy(self) -> threading.Lock: ...


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Guarded)


def one_thread(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Raises `EngineBusy`, with nothing changed, while another call of a method guarded like this runs."""

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if not self.busy.acquire(blocking=False):
            raise EngineBusy(
                f"{method.__name__}() was called while another call of the engine runs: one thread drives an engine, "
                "others hand it their requests, for example through a queue.Queue"
            )
        try:
            return method(self, *args, **kwargs)
        finally:
            self.busy.release()

    return guarded
