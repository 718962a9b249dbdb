"""The guard of an engine: one call at a time, and after each call the state is whole, or the engine refuses to go on.

    one_call            Ctrl-C waits for the end of the call        an error breaks the engine
      interruptible     Ctrl-C acts at once                         an error leaves the engine whole

A call changes scheduler, cache and answers together. Whatever ends it half-way leaves them in contradiction: Ctrl-C,
which Python raises between any two instructions of the main thread, or an error of a callback. So Ctrl-C is held back
where something changes, and only there; after an error in such a place `reset` is the only way on.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType, TracebackType
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from minicache.engine.errors import EngineBroken, EngineBusy

P = ParamSpec("P")
R = TypeVar("R")


class HeldInterrupts:
    """Inside `with`, SIGINT waits for the end of the block; the program's handler is called there.

    Only in the main thread, where Python calls handlers, and only if a handler is set. Blocks may be nested: the inner
    one passes what it held back to the outer one.
    """

    def __init__(self) -> None:
        self.raised: BaseException | None = None  # what the handler raised
        self._pending = False  # whether SIGINT has come and waits
        self._held = True
        self._handler: Callable[[int, FrameType | None], object] | None = None

    def __enter__(self) -> "HeldInterrupts":
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            self._deliver()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Inside, SIGINT acts at once, also one that waits already."""
        try:
            self._held = False
            self._deliver()
            yield
        finally:
            self._held = True

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._pending = True
        if not self._held:
            self._deliver()

    def _deliver(self) -> None:
        if self._pending and self._handler is not None:
            self._pending = False
            try:
                self._handler(signal.SIGINT, None)
            except BaseException as error:
                self.raised = error
                raise


class Guard:
    """What `guarded` methods of one engine share."""

    def __init__(self) -> None:
        self.broken: str | None = None  # the error that ended a call half-way
        self._busy = threading.Lock()
        self._interrupts = HeldInterrupts()
        self._harmless: BaseException | None = None  # the last error that came out of `interruptible`

    @contextmanager
    def one_call(self, name: str) -> Iterator[None]:
        """One call of the engine's method `name`. Raises `EngineBusy` while another runs, and `EngineBroken` after a
        call that ended half-way; then nothing changes."""
        with HeldInterrupts() as interrupts:  # outermost: no interrupt leaves the lock behind
            if not self._busy.acquire(blocking=False):
                raise EngineBusy(
                    f"{name}() was called while another call of the engine runs: one thread drives an engine, "
                    "others hand it their requests, for example through a queue.Queue"
                )
            try:
                self._require_whole(name)
                self._interrupts, self._harmless = interrupts, None
                try:
                    yield
                except BaseException as error:
                    # An interrupt acts only where it harms nothing. If it comes at the line of a `with` statement,
                    # `interruptible` does not see it.
                    if error is not self._harmless and error is not interrupts.raised:
                        self.broken = repr(error)
                    raise
            finally:
                self._busy.release()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A part of a call that changes nothing, or whose changes an outer block undoes: Ctrl-C acts at once, and an
        error leaves the engine whole."""
        try:
            with self._interrupts.released():
                yield
        except BaseException as error:
            self._harmless = error
            raise

    def deliver(self, undo: Callable[[], object]) -> None:
        """Let Ctrl-C that waits act now. If it raises, `undo` takes the call's work back first, and the engine stays
        whole."""
        try:
            with self.interruptible():
                pass
        except BaseException:
            undo()
            raise

    def _require_whole(self, name: str) -> None:
        if self.broken is not None and name != "reset":
            raise EngineBroken(
                f"{name}() is refused: an earlier call was ended in the middle of a change by {self.broken}. Call "
                "reset(), which drops all requests and cached KV, or make a new Engine"
            )


class Guarded(Protocol):
    guard: Guard


E = TypeVar("E", bound=Guarded)


def guarded(method: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[E, P], R]:
    """Make each call of `method` a `Guard.one_call` of its engine."""

    @wraps(method)
    def call(engine: E, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with engine.guard.one_call(method.__name__):
            return method(engine, *args, **kwargs)

    return call
