"""Waiting until the app has nothing more to do.

Textual's own `wait_for_idle` sleeps for 20 ms or more and takes a process that used little of the processor meanwhile
for idle: that is slow on a quiet machine, and wrong on a busy one, where a process may not have had its turn. This asks
the event loop: it is idle when no callback is ready and no timer is due within a frame.
"""

import asyncio

import textual.app
import textual.pilot

FRAME = 1 / 50  # seconds; a repeating timer may never be through, so later ones are not waited for


async def wait_for_idle(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + FRAME
    while True:
        await asyncio.sleep(0)
        while loop._ready:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        timers = (timer.when() for timer in loop._scheduled if not timer.cancelled())  # type: ignore[attr-defined]
        due = min(timers, default=end)
        if due >= end:
            return
        await asyncio.sleep(due - loop.time())


def use() -> None:
    """Let Textual's pilot wait in this way."""
    textual.app.wait_for_idle = textual.pilot.wait_for_idle = wait_for_idle
