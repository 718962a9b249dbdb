"""A position in a timeline, and every way to another one."""

from minicache.core.events import Event
from minicache.core.views import EngineView
from minicache.sim.breakpoint import Breakpoint
from minicache.sim.timeline import Timeline

from .beats import Beats, Run
from .cells import Cells
from .model.state import State
from .playable import Plays


class Moves(Plays):
    """The part of a player that moves. Moves return whether the position changed; `changed` are the blocks whose cell
    the last move changed, None if they may all have."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self.timeline = timeline
        self.beats = Beats(timeline)
        self.breakpoints: list[Breakpoint] = []
        self.changed: frozenset[int] | None = None
        self._state = State(timeline)

    @property
    def place(self) -> int:
        """The event that has just happened; -1 before the first."""
        return self._state.place

    @property
    def view(self) -> EngineView:
        return self._state.view

    @property
    def cells(self) -> Cells:
        return self._state.cells

    @property
    def beat(self) -> range:
        """The places since the stop before, up to this one: what is told."""
        return self.beats.beat(self.place)

    @property
    def current(self) -> Event | None:
        return self.timeline.events[self.place] if self.place >= 0 else None

    @property
    def step_now(self) -> int:
        return self.view.step

    @property
    def num_steps(self) -> int:
        """Scheduler steps of the whole run."""
        last = len(self.timeline) - 1
        return self.timeline.step_of(last) if last >= 0 else 0

    @property
    def at_end(self) -> bool:
        return self.place >= len(self.timeline) - 1

    # Moves

    def seek(self, place: int) -> bool:
        """Go to a place; one that is out of range is brought into it."""
        place = max(-1, min(place, len(self.timeline) - 1))
        if place == self.place:
            return False
        self.changed = self._state.go(place, self.beats.before(place))
        self.version += 1
        return True

    @property
    def position(self) -> int:
        """Where we are on the event strip."""
        return self.place

    def scrub(self, position: int) -> bool:
        """Go to a position of the event strip."""
        return self.seek(position)

    def _seek(self, place: int | None) -> bool:
        return place is not None and self.seek(place)

    def step(self) -> bool:
        """To the next stop."""
        return self._seek(self.beats.after(self.place))

    def back(self) -> bool:
        """To the stop before."""
        return self._seek(self.beats.before(self.place))

    def next_event(self) -> bool:
        return self.seek(self.place + 1)

    def previous_event(self) -> bool:
        return self.seek(self.place - 1)

    def next_step(self) -> bool:
        """To the end of this scheduler step; from there to the end of the next one."""
        return self._seek(self.timeline.next(self.place, "StepFinished")) or self.end()

    def previous_step(self) -> bool:
        """To the end of the scheduler step before; from the first one to the beginning."""
        place = self.timeline.previous(self.place, "StepFinished")
        return self.seek(-1 if place is None else place)

    def next_request(self) -> bool:
        """To where the next request arrives."""
        return self._seek(self.timeline.next(self.place, "RequestArrived"))

    def previous_request(self) -> bool:
        return self._seek(self.timeline.previous(self.place, "RequestArrived"))

    def next_of(self, *kinds: str) -> bool:
        """To the next event of one of these types, given by name."""
        places = [place for kind in kinds if (place := self.timeline.next(self.place, kind)) is not None]
        return self._seek(min(places, default=None))

    def previous_of(self, *kinds: str) -> bool:
        places = [place for kind in kinds if (place := self.timeline.previous(self.place, kind)) is not None]
        return self._seek(max(places, default=None))

    def run_to(self, what: Run) -> bool:
        return self._seek(self.beats.next_target(what, self.place))

    def run_back_to(self, what: Run) -> bool:
        return self._seek(self.beats.previous_target(what, self.place))

    def continue_(self) -> bool:
        """To the next breakpoint, else to the end."""
        place = self.timeline.run_to(self.place, *self.breakpoints)
        return self.end() if place is None else self.seek(place)

    def reverse_continue(self) -> bool:
        """To the breakpoint before, else to the beginning."""
        place = self.timeline.run_back_to(self.place, *self.breakpoints)
        return self.start() if place is None else self.seek(place)

    def place_in_step(self, step: int) -> int:
        """The first lookup of a scheduler step, or, if there is none, where it begins; raises `UnknownThing`."""
        begin = self.timeline.place_of_step(step)
        lookup, end = self.timeline.next(begin, "PrefixMatched"), self.timeline.next(begin, "StepFinished")
        return begin if lookup is None or (end is not None and lookup > end) else lookup

    def seek_step(self, step: int) -> bool:
        """To `place_in_step`."""
        return self.seek(self.place_in_step(step))

    def start(self) -> bool:
        return self.seek(-1)

    def end(self) -> bool:
        return self.seek(len(self.timeline) - 1)

    # Playing

    def advance(self, seconds: float) -> bool:
        """While playing: take the beats that are due. Stops at a breakpoint and at the end."""
        if not self.playing:
            return False
        target = self.place
        for _ in range(self.clockwork.beats(seconds)):
            following = self.beats.after(target)
            if following is None:
                break
            target = following
        stop = self._breakpoint_within(target)
        moved = self.seek(target if stop is None else stop)
        if stop is not None or self.at_end:
            self.playing = False
        return moved

    def _breakpoint_within(self, target: int) -> int | None:
        """The first place up to `target` at which a breakpoint stops."""
        if not self.breakpoints or target == self.place:
            return None
        place = self.timeline.run_to(self.place, *self.breakpoints)
        return place if place is not None and place <= target else None
