"""Two players in lock-step: neither is ever a scheduler step ahead of the other. They go from frame to frame."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from minicache.sim.breakpoint import Breakpoint
from minicache.sim.errors import UnknownThing

from .beats import Run
from .frames import frames, ranks_of
from .model.rows import StripCell
from .model.strip import WORDS, lay_out, marked
from .playable import Plays
from .player import Player, Selection
from .stops import stopping_places


class LockStep(Plays):
    """`left` and `right` at the same scheduler step. Moves are those of a player; places are the left one's. A
    `position` is a frame as the event strip counts them: -1 before the first event of either side."""

    def __init__(self, left: Player, right: Player) -> None:
        super().__init__()
        self.left = left
        self.right = right
        left.clockwork = right.clockwork = self.clockwork
        self._frames = list(frames(left, right))
        self._lefts = array("q", [places[0] for places in self._frames])
        self._rights = array("q", [places[1] for places in self._frames])
        self._steps = array("q", [self._step_of(places) for places in self._frames])
        self._ranks = ranks_of(left, right, self._frames)
        self._strip: tuple[int, list[StripCell]] = (0, [])  # for that many columns
        self.frame = 0
        self._go(self._frame_at(left.place))

    @property
    def place(self) -> int:
        return self.left.place

    @property
    def step_now(self) -> int:
        return self._steps[self.frame]

    @property
    def num_steps(self) -> int:
        return max(self.left.num_steps, self.right.num_steps)

    @property
    def position(self) -> int:
        return self.frame - 1

    @property
    def at_end(self) -> bool:
        return self.frame >= len(self._frames) - 1

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """Those of the left one, at which either side stops."""
        return self.left.breakpoints

    @breakpoints.setter
    def breakpoints(self, breakpoints: list[Breakpoint]) -> None:
        self.left.breakpoints = breakpoints

    def stopping_places(self, breakpoints: Sequence[Breakpoint]) -> list[int]:
        """The positions at which a breakpoint stops either side, in order. Reads both runs."""
        sides = ((self.left, self._lefts), (self.right, self._rights))
        found = {
            bisect_left(places, place) - 1
            for player, places in sides
            for place in stopping_places(player.timeline, breakpoints)
        }
        return sorted(found)

    def strip(self, width: int) -> list[StripCell]:
        """Both runs in one line: at most `width` cells, whose bounds are positions."""
        if self._strip[0] != width:
            self._strip = width, lay_out(self._ranks, width, self._told)
        return marked(self._strip[1], self.position)

    def shown_in(self, cell: StripCell) -> int:
        """The position of what a cell shows: of the rarest kind in it the first."""
        return max(range(cell.first, cell.last + 1), key=self._ranks.__getitem__)

    def event_at(self, position: int) -> tuple[Player, int]:
        """Who comes to an event there, and to which: the left side, where both do."""
        (before, _), (left, right) = self._frames[position], self._frames[position + 1]
        return (self.left, left) if left > before else (self.right, right)

    def _told(self, first: int, last: int, rank: int) -> str:
        begin, end = self._steps[first + 1], self._steps[last + 1]
        return f"step {begin:,}: {WORDS[rank]}" if begin == end else f"steps {begin:,} to {end:,}: {WORDS[rank]}"

    def _step_of(self, places: tuple[int, int]) -> int:
        return max(self.left.timeline.step_of(places[0]), self.right.timeline.step_of(places[1]))

    def _frame_at(self, place: int) -> int:
        """The first frame in which the left side has come to `place`."""
        return min(bisect_left(self._lefts, place), len(self._frames) - 1)

    def _go(self, frame: int) -> bool:
        frame = max(0, min(frame, len(self._frames) - 1))
        moved = frame != self.frame
        self.frame = frame
        left, right = self._frames[frame]
        went = [self.left.seek(left), self.right.seek(right)]
        for player, has_moved in zip((self.left, self.right), went, strict=True):
            if not has_moved:
                player.changed = frozenset()
        self.version += moved
        return moved

    # Moves

    def step(self) -> bool:
        return self._go(self.frame + 1)

    def back(self) -> bool:
        return self._go(self.frame - 1)

    def next_event(self) -> bool:
        """As `step`: what lies between two frames is told with the second."""
        return self.step()

    def previous_event(self) -> bool:
        return self.back()

    def next_step(self) -> bool:
        """To the last frame of this step; from there to that of the next."""
        last = bisect_right(self._steps, self.step_now) - 1
        if self.frame == last and last + 1 < len(self._steps):
            last = bisect_right(self._steps, self._steps[last + 1]) - 1
        return self._go(last)

    def previous_step(self) -> bool:
        """To the last frame of the step before."""
        return self._go(bisect_left(self._steps, self.step_now) - 1)

    def next_request(self) -> bool:
        return self.next_of("RequestArrived")

    def previous_request(self) -> bool:
        return self.previous_of("RequestArrived")

    def next_of(self, *kinds: str) -> bool:
        """To the next frame in which either side comes over an event of these types."""

        def places(player: Player) -> list[int]:
            return [p for kind in kinds if (p := player.timeline.next(player.place, kind)) is not None]

        return self._go_first(lambda player: min(places(player), default=None))

    def previous_of(self, *kinds: str) -> bool:
        def places(player: Player) -> list[int]:
            before = self._before(player)
            return [p for kind in kinds if (p := player.timeline.previous(before + 1, kind)) is not None]

        return self._go_last(lambda player: max(places(player), default=None))

    def run_to(self, what: Run) -> bool:
        return self._go_first(lambda player: player.beats.next_target(what, player.place))

    def run_back_to(self, what: Run) -> bool:
        return self._go_last(lambda player: player.beats.previous_target(what, self._before(player) + 1))

    def continue_(self) -> bool:
        """To the next frame in which either side meets a breakpoint, else to the end."""
        points = self.breakpoints
        return self._go_first(lambda player: player.timeline.run_to(player.place, *points)) or self.end()

    def reverse_continue(self) -> bool:
        points = self.breakpoints
        return (
            self._go_last(lambda player: player.timeline.run_back_to(self._before(player) + 1, *points)) or self.start()
        )

    def seek(self, place: int) -> bool:
        """To the first frame in which the left side has come to `place`."""
        return self._go(self._frame_at(place))

    def seek_right(self, place: int) -> bool:
        """To the first frame in which the right side has come to `place`."""
        return self._go(bisect_left(self._rights, place))

    def scrub(self, position: int) -> bool:
        """To a position."""
        return self._go(position + 1)

    def seek_step(self, step: int) -> bool:
        """To the first frame in which one of the sides has come to that scheduler step; raises `UnknownThing`."""
        if not 1 <= step <= self.num_steps:
            raise UnknownThing(f"there is no step {step:,}: these two runs have steps 1 to {self.num_steps:,}")
        return self._go(bisect_left(self._steps, step))

    def go_to_request(self, request: str) -> bool:
        """To the first frame in which a request has arrived on one of the sides; it is selected where it is. Raises
        `UnknownThing`."""
        sides = [player for player in (self.left, self.right) if request in player.index.requests]
        if not sides:
            return self.left.go_to_request(request)  # which says what there is
        moved = self._go(min(self._frames_of_places((p, p.index.requests[request].arrived) for p in sides)))
        for player in sides:
            if player.place >= player.index.requests[request].arrived:
                player.select(Selection("request", request))
        return moved

    def start(self) -> bool:
        return self._go(0)

    def end(self) -> bool:
        return self._go(len(self._frames) - 1)

    def _before(self, player: Player) -> int:
        """Where the player was one frame ago: what it came over since is where we are."""
        return self._frames[max(0, self.frame - 1)][player is self.right]

    def _go_first(self, target: Callable[[Player], int | None]) -> bool:
        """To the first frame in which one of the sides has come to its target, if there is one."""
        found = list(self._frames_of(target))
        return bool(found) and self._go(min(found))

    def _go_last(self, target: Callable[[Player], int | None]) -> bool:
        found = list(self._frames_of(target))
        return bool(found) and self._go(max(found))

    def _frames_of(self, target: Callable[[Player], int | None]) -> Iterator[int]:
        targets = ((player, target(player)) for player in (self.left, self.right))
        return self._frames_of_places((player, place) for player, place in targets if place is not None)

    def _frames_of_places(self, places: Iterable[tuple[Player, int]]) -> Iterator[int]:
        """The first frame in which a side has come to its place."""
        for player, place in places:
            yield bisect_left(self._rights if player is self.right else self._lefts, place)

    # Playing

    def advance(self, seconds: float) -> bool:
        """While playing: take the frames that are due. Stops at a breakpoint of either side and at the end."""
        if not self.playing:
            return False
        before = self.frame
        for _ in range(self.clockwork.beats(seconds)):
            places = self._frames[self.frame]
            self.step()
            if self.at_end or self._met_breakpoint(places):
                self.playing = False
                break
        return self.frame != before

    def _met_breakpoint(self, since: tuple[int, int]) -> bool:
        if not self.breakpoints:
            return False
        for player, place in zip((self.left, self.right), since, strict=True):
            found = player.timeline.run_to(place, *self.breakpoints)
            if found is not None and found <= player.place:
                return True
        return False
