"""Two players in lock-step: neither is ever a scheduler step ahead of the other. They go from frame to frame."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from minicache.sim.breakpoint import Breakpoint
from minicache.sim.closing import closing_words
from minicache.sim.errors import BadChange, UnknownThing
from minicache.sim.fork import SetPolicy
from minicache.sim.lock_step import NAMES, Parting, partings, run_both
from minicache.sim.scenario import Kind, Scenario

from .beats import Run
from .frames import frames
from .playable import Plays
from .player import Player
from .stops import stopping_places

SHORT = {"hash": "hash chain", "radix": "radix tree"}


class Comparison(Plays):
    """`left` and `right` at the same scheduler step. Moves are those of a player; places are the left one's."""

    def __init__(
        self,
        left: Player,
        right: Player,
        labels: tuple[str, str],
        names: Mapping[Kind, str] | None = None,
        brief: tuple[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.left = left
        self.right = right
        left.clockwork = right.clockwork = self.clockwork
        self.labels = labels
        self.brief = brief or labels  # the labels where there is little room
        self._names = names or dict(zip(("hash", "radix"), labels, strict=True))
        self._frames = list(frames(left, right))
        self._lefts = array("q", [places[0] for places in self._frames])
        self._rights = array("q", [places[1] for places in self._frames])
        self._steps = array("q", [self._step_of(places) for places in self._frames])
        self.frame = 0
        self._go(self._frame_at(left.place))

    @classmethod
    def of_kinds(cls, scenario: Scenario, step: int = 0) -> "Comparison":
        """The hash chain against the radix tree, on one clock, at the end of a step. Raises as `run_both` does."""
        timelines = run_both(scenario)
        left, right = Player(timelines["hash"]), Player(timelines["radix"])
        labels = [f"{SHORT[p.timeline.kind]}, blocks of {p.timeline.settings['block_size']}" for p in (left, right)]
        comparison = cls(left, right, (labels[0], labels[1]), NAMES, (SHORT["hash"], SHORT["radix"]))
        comparison._go(bisect_right(comparison._steps, step) - 1 if step else 0)
        return comparison

    @classmethod
    def of_policies(cls, player: Player, settings: Mapping[str, Any]) -> "Comparison":
        """The run as it is against the run with other settings from its beginning. Raises `BadChange`."""
        change = SetPolicy(settings)
        left = Player(player.timeline, decode=player.decode)
        right = Player(player.timeline.fork(-1, change), decode=player.decode)
        left.seek(player.place)
        return cls(left, right, ("as it is", change.describe()))

    @classmethod
    def of_fork(cls, player: Player) -> "Comparison":
        """The original against the fork. Raises `BadChange` for a player that is no fork."""
        if player.parent is None:
            raise BadChange("this run is no fork: fork it first (f), then compare (m)")
        left = Player(player.parent.timeline, decode=player.decode)
        right = Player(player.timeline, decode=player.decode)
        left.seek(min(player.place, len(left.timeline) - 1))
        return cls(left, right, ("the original", "the fork"))

    @cached_property
    def parting(self) -> Parting | None:
        """Where the two first treat a request differently; None if they never do. Reads both runs."""
        found = partings({"hash": self.left.timeline, "radix": self.right.timeline}, self._names)
        return found[0] if found else None

    @property
    def rates(self) -> tuple[str, str]:
        """The hit rates of both up to here."""
        return _percent(self.left, self.left.place), _percent(self.right, self.right.place)

    @property
    def totals(self) -> tuple[str, str]:
        """The hit rates of both at the end of their runs."""
        return _percent(self.left, len(self.left.timeline) - 1), _percent(self.right, len(self.right.timeline) - 1)

    @property
    def says_the_same(self) -> bool:
        """Whether there is the same to say of both sides: what happened last, or of what is selected."""
        return _words(self.left) == _words(self.right)

    # Where we are

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
    def at_end(self) -> bool:
        return self.frame >= len(self._frames) - 1

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """Those of the left one, at which either side stops."""
        return self.left.breakpoints

    @breakpoints.setter
    def breakpoints(self, breakpoints: list[Breakpoint]) -> None:
        self.left.breakpoints = breakpoints

    def stopping_places(self, breakpoints: Sequence[Breakpoint], after: int = -1) -> list[int]:
        """Where the left side is in the frames in which a breakpoint stops either side: every such place behind
        `after`, in order. Reads both runs."""
        sides = ((self.left, self._lefts), (self.right, self._rights))
        frames = {
            bisect_left(places, place)
            for player, places in sides
            for place in stopping_places(player.timeline, breakpoints)
            if place <= places[-1]
        }
        return sorted({place for frame in frames if (place := max(0, self._lefts[frame])) > after})

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

    def seek_step(self, step: int) -> bool:
        """To where a scheduler step begins; raises `UnknownThing`."""
        longer = max((self.left, self.right), key=lambda player: player.num_steps)
        longer.timeline.place_of_step(step)
        return self._go(bisect_left(self._steps, step))

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
        for player, places in ((self.left, self._lefts), (self.right, self._rights)):
            place = target(player)
            if place is not None:
                yield bisect_left(places, place)

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


def _words(player: Player) -> tuple[object, ...]:
    """What there is to say of a run at its place."""
    if player.selection.kind != "nothing":
        try:
            return (player.explain(),)
        except UnknownThing as error:
            return (str(error),)
    if player.place < 0:
        return (player.story(),)
    told = [(account.step, account.sentence, account.rule) for account in player.sentences()]
    return (*told, closing_words(player.summary) if player.at_end else "")


def _percent(player: Player, place: int) -> str:
    rate = player.timeline.hit_rate(place)
    return "–" if rate is None else f"{100 * rate:.1f} %"
