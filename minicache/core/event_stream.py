"""The event stream: caches and the scheduler emit events into it, and its sinks receive them."""

import time
from collections.abc import Callable

from minicache.core.events import Event

Sink = Callable[[Event], None]


class EventStream:
    """Stamps events and hands them to its sinks, which are callables. Not thread-safe.

    A stream without sinks is false, so that events are built only if there is a sink to receive them:
    `if self.events: self.events.emit(BlocksAdopted(...))`. The scheduler writes `step`; `clock` returns seconds.
    """

    def __init__(self, *sinks: Sink, clock: Callable[[], float] = time.monotonic) -> None:
        self.sinks = list(sinks)
        self.clock = clock
        self.step = 0
        self.seq = 0

    def __bool__(self) -> bool:
        return bool(self.sinks)

    def emit(self, event: Event) -> None:
        """Stamp `event` and hand it to every sink, in order. An error in a sink propagates to the caller, and the sinks
        after it do not get the event."""
        object.__setattr__(event, "seq", self.seq)
        object.__setattr__(event, "step", self.step)
        object.__setattr__(event, "time", self.clock())
        self.seq += 1
        for sink in self.sinks:
            sink(event)
