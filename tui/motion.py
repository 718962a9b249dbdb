"""Motion: what changed moves for a moment, then everything rests.

A motion is a share of the way from the state before to the state now. One timer drives all panels; each draws where it
is, and nothing about the run depends on it. Without animations it is over at once.
"""

from collections.abc import Callable

from textual.timer import Timer
from textual.widget import Widget

SECONDS = 0.28
FRAMES_PER_SECOND = 30


class Motion:
    """`progress` goes from 0 to 1 when something moves, and is 1 at rest."""

    def __init__(self, owner: Widget, on_frame: Callable[[], None]) -> None:
        self._owner = owner
        self._on_frame = on_frame
        self._frames = 1
        self._frame = 1
        self._timer: Timer | None = None

    @property
    def progress(self) -> float:
        return self._frame / self._frames

    @property
    def resting(self) -> bool:
        return self._frame >= self._frames

    def start(self, seconds: float = SECONDS) -> None:
        """Begin again; what moved before is where it wanted to be. Without animations, rest at once."""
        self._frames = round(min(seconds, SECONDS) * FRAMES_PER_SECOND)
        if self._owner.app.animation_level == "none" or self._frames < 2:
            self.finish()
            return
        self._frame = 0
        if self._timer is None:
            self._timer = self._owner.set_interval(1 / FRAMES_PER_SECOND, self.tick, name="motion")
        else:
            self._timer.reset()
            self._timer.resume()

    def finish(self) -> None:
        """Go to the end without drawing."""
        self._frames = self._frame = 1
        if self._timer is not None:
            self._timer.pause()

    def tick(self) -> None:
        """The next frame."""
        if self.resting:
            return
        self._frame += 1
        if self.resting:
            self.finish()
        self._on_frame()
