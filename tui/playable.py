"""What can be stepped and played, and how fast."""

import math
from typing import Protocol

from minicache.sim.breakpoint import Breakpoint

from .beats import Run

BEAT_SECONDS = 0.8  # from one stop to the next at speed 0
SPEEDS = range(-3, 7)  # exponents of two


class Playable(Protocol):
    """What can be stepped and played: a player, or two in lock-step. Moves say whether anything moved."""

    playing: bool
    breakpoints: list[Breakpoint]

    @property
    def version(self) -> int: ...
    @property
    def speed(self) -> int: ...
    @speed.setter
    def speed(self, speed: int) -> None: ...
    @property
    def at_end(self) -> bool: ...
    def step(self) -> bool: ...
    def back(self) -> bool: ...
    def next_event(self) -> bool: ...
    def previous_event(self) -> bool: ...
    def next_step(self) -> bool: ...
    def previous_step(self) -> bool: ...
    def next_request(self) -> bool: ...
    def previous_request(self) -> bool: ...
    def next_of(self, *kinds: str) -> bool: ...
    def previous_of(self, *kinds: str) -> bool: ...
    def run_to(self, what: Run) -> bool: ...
    def run_back_to(self, what: Run) -> bool: ...
    def continue_(self) -> bool: ...
    def reverse_continue(self) -> bool: ...
    def seek(self, place: int) -> bool: ...
    @property
    def position(self) -> int: ...
    def scrub(self, position: int) -> bool: ...
    def seek_step(self, step: int) -> bool: ...
    def start(self) -> bool: ...
    def end(self) -> bool: ...
    def advance(self, seconds: float) -> bool: ...


class Clockwork:
    """Playing: how many beats are due after so many seconds."""

    def __init__(self) -> None:
        self.playing = False
        self._speed = 0
        self._due = 0.0

    @property
    def speed(self) -> int:
        return self._speed

    @speed.setter
    def speed(self, speed: int) -> None:
        self._speed = max(SPEEDS.start, min(speed, SPEEDS.stop - 1))
        self._due = 0.0

    def beats(self, seconds: float) -> int:
        """Beats due now that `seconds` have passed."""
        self._due += seconds / BEAT_SECONDS * 2.0**self._speed
        count = math.floor(self._due + 1e-9)
        self._due -= count
        return count


class Plays:
    """Plays by a clockwork, which two in lock-step share. `version` is another one whenever something changed."""

    def __init__(self) -> None:
        self.clockwork = Clockwork()
        self.version = 0

    @property
    def playing(self) -> bool:
        return self.clockwork.playing

    @playing.setter
    def playing(self, playing: bool) -> None:
        if playing != self.playing:
            self.clockwork.playing = playing
            self.version += 1

    @property
    def speed(self) -> int:
        """2 ** speed beats in `BEAT_SECONDS`; within `SPEEDS`."""
        return self.clockwork.speed

    @speed.setter
    def speed(self, speed: int) -> None:
        self.clockwork.speed = speed
        self.version += 1
