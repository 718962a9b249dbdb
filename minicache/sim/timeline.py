"""A timeline: the events of a run, and the state after any of them.

    events       0 . . . . . . . 1 . . . . . . . 2 . . . . . . .
    checkpoints  ^               ^               ^
    at(i)                        |--fold-->i

Going back is folding again from the checkpoint before. The number of an event (`seq`) is its place in the timeline;
place -1 is before the first.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from minicache.core import Request
from minicache.core import events as ev
from minicache.core.event_log import BadLog, read_log
from minicache.core.events import Event
from minicache.core.views import EngineView
from minicache.sim.breakpoint import Breakpoint
from minicache.sim.checkpoint import Checkpoint, RecordingView
from minicache.sim.collection import no_collection
from minicache.sim.errors import UnknownThing
from minicache.sim.findings import Findings
from minicache.sim.scenario import Kind, Scenario
from minicache.sim.simulator import Simulator
from minicache.sim.tokens import SIMULATED, EngineTokenWords, TokenWords

if TYPE_CHECKING:
    from minicache.sim.fork import Change

WORK = 2000  # folding from a checkpoint takes at most about this many events, or as much work with blocks
MAX_BLOCKS = 1 << 22  # of a recorded pool: a view of it takes a few hundred bytes a block
BLOCKS_PER_EVENT = 8  # so many blocks in an event are as much work as another event


class Timeline:
    """A sink that keeps every event, with checkpoints. Give it to a run, or make one with `record` or `from_log`.

    `settings` is what a log's header holds: at least `num_blocks` and `block_size`. The memory it takes grows with the
    events; a checkpoint is a few bytes a block.
    """

    def __init__(self, num_blocks: int, block_size: int, settings: Mapping[str, Any] | None = None) -> None:
        self.settings = {"num_blocks": num_blocks, "block_size": block_size, **(settings or {})}
        self.events: list[Event] = []
        self.scenario: Scenario | None = None  # where it came from, if that is known: what `fork` runs again
        self.sampler: Callable[[Request], int] | None = None  # and what its requests say, if that was recorded
        self.token_words = SIMULATED if self.is_modelled else EngineTokenWords()
        self.kind: Kind = "hash"
        self.cut = False  # of a log: whether its last line was not whole
        self.changes: tuple[tuple[int, Change], ...] = ()  # by forks: after so many steps, this
        self.forked_at: int | None = None  # the first event that need not be the parent's
        self.findings = Findings()
        self._view = RecordingView(num_blocks, block_size)
        self._places = array("q", [-1])  # of the checkpoints
        self._checkpoints = [Checkpoint.of(self._view)]
        self._work = 0.0
        self._kinds: dict[str, array[int]] = {}
        self._steps = array("q")  # places of StepStarted
        self._rates = array("d")  # hit rate after each admission, beside
        self._queries = self._hits = 0

    @classmethod
    def record(cls, scenario: Scenario, kind: Kind | None = None) -> "Timeline":
        """Run the scenario to its end. Raises as `Simulator.of` does, and `Stuck`."""
        timeline = cls.for_scenario(scenario, kind)
        with no_collection():
            Simulator.of(scenario, timeline.kind, timeline).run()
        return timeline

    @classmethod
    def for_scenario(cls, scenario: Scenario, kind: Kind | None = None) -> "Timeline":
        """An empty one, to be given to a simulator of that scenario."""
        kind = kind or scenario.kinds[0]
        cache = scenario.caches[kind]
        settings = {
            "scenario": scenario.name,
            "title": scenario.title,
            "cache": kind,
            "strategy": cache.strategy,
            "scheduler": asdict(scenario.schedulers[kind]),
            "seed": scenario.seed,
            "clock": f"modelled: {scenario.model} on {scenario.device}",
        }
        timeline = cls(cache.num_blocks, cache.block_size, settings)
        timeline.scenario, timeline.kind = scenario, kind
        timeline.token_words = TokenWords(scenario.segments)
        return timeline

    @classmethod
    def from_log(cls, lines: Iterable[str], source: str = "the log") -> "Timeline":
        """Read a recorded log (see `core/event_log.py`). Raises `BadLog` naming file and line."""
        try:
            header, events = read_log(lines)
            _require_shape("line 1", header)
            timeline = cls(header["num_blocks"], header["block_size"], header)
            timeline.kind = "radix" if header.get("cache") == "radix" else "hash"
            for number, event in enumerate(events):
                if event.seq != number:
                    raise BadLog(
                        f"line {number + 2}: event {event.seq} stands where {number} should: events are missing"
                    )
                if isinstance(event, ev.PoolReplaced):
                    _require_shape(
                        f"line {number + 2}", {"num_blocks": event.num_blocks, "block_size": event.block_size}
                    )
                timeline.add(event)
        except BadLog as error:
            raise BadLog(f"{source}, {error}") from None
        except UnicodeDecodeError:  # a ValueError, but of the file and not of an event
            raise
        except (KeyError, ValueError, IndexError) as error:
            if isinstance(error, BadLog):
                raise
            line = len(timeline.events) + 2
            raise BadLog(
                f"{source}, line {line}: this event does not follow from those before it ({error!r})"
            ) from None
        return timeline

    def __len__(self) -> int:
        return len(self.events)

    @property
    def is_modelled(self) -> bool:
        """Whether its times are a cost model's; else they were measured."""
        return str(self.settings.get("clock", "")).startswith("modelled")

    # Recording

    def add(self, event: Event) -> None:
        """Take the next event."""
        if self._work >= WORK:
            self.checkpoint()
        self._view.apply(event)
        self.findings.on(event, self._view)
        place = len(self.events)
        self.events.append(event)
        kind = type(event).__name__
        if kind not in self._kinds:
            self._kinds[kind] = array("q")
        self._kinds[kind].append(place)
        self._work += 1 + len(getattr(event, "blocks", ())) / BLOCKS_PER_EVENT
        if isinstance(event, ev.StepStarted):
            self._steps.append(place)
        elif isinstance(event, ev.RequestAdmitted):
            if not event.resumed:
                self._queries += self._view.requests[event.request].num_prompt_tokens
                self._hits += event.num_cached_tokens
            self._rates.append(self._hits / self._queries if self._queries else 0.0)
        elif isinstance(event, ev.PoolReplaced):
            self.checkpoint()

    __call__ = add

    def checkpoint(self) -> None:
        """Make the state here cheap to reach."""
        self._places.append(len(self.events) - 1)
        self._checkpoints.append(Checkpoint.of(self._view))
        self._work = 0.0

    @property
    def num_checkpoints(self) -> int:
        return len(self._checkpoints)

    def checkpoint_at(self, index: int) -> tuple[int, Checkpoint]:
        """The place of a checkpoint, and the checkpoint: what the recording knew after the event at that place."""
        return self._places[index], self._checkpoints[index]

    def checkpoint_before(self, place: int) -> int:
        """The index of the last checkpoint before the event at `place`."""
        return bisect_left(self._places, place) - 1

    # Looking

    def at(self, place: int) -> EngineView:
        """The state after event `place`; -1 is before the first. A new view: change it as you like.

        Raises `UnknownThing` for a place that the timeline does not have.
        """
        self.require(place, first=-1)
        nearest = bisect_right(self._places, place) - 1
        with no_collection():
            view = self._checkpoints[nearest].restore()
            view.apply_all(self.events[self._places[nearest] + 1 : place + 1])
        return view

    def require(self, place: int, first: int = 0) -> Event | None:
        """The event at `place`, None at -1; raises `UnknownThing` if it is out of range."""
        if not first <= place < len(self.events):
            raise UnknownThing(f"there is no event {place}: this run has events 0 to {len(self.events) - 1}")
        return self.events[place] if place >= 0 else None

    def next(self, place: int, kind: str | None = None) -> int | None:
        """The first place after `place` with an event of that kind (of any); None if there is none."""
        if kind is None:
            return place + 1 if place + 1 < len(self.events) else None
        places = self._kinds.get(kind, array("q"))
        index = bisect_right(places, place)
        return places[index] if index < len(places) else None

    def previous(self, place: int, kind: str | None = None) -> int | None:
        """The last place before `place` with an event of that kind (of any); None if there is none."""
        if kind is None:
            return place - 1 if place > 0 else None
        places = self._kinds.get(kind, array("q"))
        index = bisect_left(places, place)
        return places[index - 1] if index else None

    def run_to(self, place: int, *breakpoints: Breakpoint) -> int | None:
        """The first place after `place` at which one of the breakpoints stops; None if none does."""
        return self._search(range(place + 1, len(self.events)), breakpoints)

    def run_back_to(self, place: int, *breakpoints: Breakpoint) -> int | None:
        """The last place before `place` at which one of the breakpoints stops; None if none does."""
        return self._search(range(place - 1, -1, -1), breakpoints)

    def _search(self, places: range, breakpoints: tuple[Breakpoint, ...]) -> int | None:
        for place in places:
            event = self.events[place]
            rate = self._rate(place) if isinstance(event, ev.RequestAdmitted) else None
            if any(breakpoint.matches(event, rate) for breakpoint in breakpoints):
                return place
        return None

    def _rate(self, place: int) -> tuple[float, float]:
        index = bisect_left(self._kinds["RequestAdmitted"], place)
        return (self._rates[index - 1] if index else 1.0), self._rates[index]

    def hit_rate(self, place: int) -> float | None:
        """The hit rate ("tokens of all") of the admissions up to `place`; None before the first."""
        index = bisect_right(self._kinds.get("RequestAdmitted", array("q")), place)
        return self._rates[index - 1] if index else None

    # What if

    def fork(self, place: int, change: "Change | None" = None) -> "Timeline":
        """Run the scenario again up to the last step boundary at or before `place`, change something, and go on to the
        end. The steps before the boundary come out the same. Raises `BadChange`; this timeline stays as it is."""
        from minicache.sim.fork import fork

        return fork(self, place, change)

    # Steps

    def step_of(self, place: int) -> int:
        """The scheduler step of an event: 0 before the first."""
        event = self.require(place, first=-1)
        return event.step if event else 0

    def place_of_step(self, step: int) -> int:
        """Where scheduler step `step` begins; raises `UnknownThing`."""
        if not 1 <= step <= len(self._steps):
            there = f"this run has steps 1 to {len(self._steps)}" if self._steps else "no step has begun yet"
            raise UnknownThing(f"there is no step {step}: {there}")
        return self._steps[step - 1]

    def completed_steps(self, place: int) -> int:
        """Steps that are over at `place`: a fork begins behind the last of them."""
        return bisect_right(self._kinds.get("StepFinished", array("q")), place)


def _require_shape(where: str, shape: Mapping[str, Any]) -> None:
    """Raises `BadLog` unless `shape` has the `num_blocks` and `block_size` of a possible pool; `where` is the line."""
    for name, least in (("num_blocks", 2), ("block_size", 1)):
        value = shape.get(name)
        if value is None:
            raise BadLog(f"{where}: the header has no {name}")
        if type(value) is not int or not least <= value <= MAX_BLOCKS:
            raise BadLog(f"{where}: {name} must be an integer from {least} to {MAX_BLOCKS:,}, not {value!r}")
