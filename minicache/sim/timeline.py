"""A timeline: the events of a run, and the state after any of them.

    events       0 . . . . . . . 1 . . . . . . . 2 . . . . . . .
    checkpoints  ^               ^               ^
    at(i)                        |--fold-->i

To go back is to fold again from the checkpoint before. The number of an event (`seq`) is its place in the timeline;
place -1 is before the first.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from minicache.common.json_reader import read_json
from minicache.core import Request
from minicache.core import events as ev
from minicache.core.event_fields import LONGEST_NAME
from minicache.core.event_log import BadLog, read_log
from minicache.core.events import Event
from minicache.core.views import EngineView, Follower
from minicache.sim.breakpoint import Breakpoint
from minicache.sim.checkpoint import Checkpoint, RecordingView
from minicache.sim.collection import no_collection
from minicache.sim.errors import UnknownThing
from minicache.sim.findings import Findings
from minicache.sim.fork import Change
from minicache.sim.policy import values_after
from minicache.sim.rerun import scenario_of
from minicache.sim.run_index import RunIndex
from minicache.sim.scenario import Kind, Scenario
from minicache.sim.simulator import Simulator
from minicache.sim.tokens import SIMULATED, EngineTokenWords, TokenWords

# Folding from a checkpoint takes at most about this many events, or as much work with blocks. From a larger checkpoint
# it takes as many events as that has requests and nodes, so that all checkpoints together grow with the events only.
WORK = 2000
MAX_BLOCKS = 1 << 22  # of a recorded pool; a view of it takes a few hundred bytes a block
BLOCKS_PER_EVENT = 8  # eight blocks in an event are as much work as one more event


class Timeline:
    """A sink that keeps every event, with checkpoints. Give it to a run, or make one with `record` or `from_log`.

    `settings` is what a log's header holds: at least `num_blocks` and `block_size`, those of the first pool. `index`
    knows where things happen, and the figures. The memory it takes grows with the events; a checkpoint is a few bytes a
    block.
    """

    def __init__(self, num_blocks: int, block_size: int, settings: Mapping[str, Any] | None = None) -> None:
        self.settings = {"num_blocks": num_blocks, "block_size": block_size, **(settings or {})}
        self.events: list[Event] = []
        self.scenario: Scenario | None = None  # what `fork` runs again; None for a log
        self.sampler: Callable[[Request], int] | None = None  # gives the recorded tokens in a fork of a log
        self.token_words = SIMULATED if self.is_modelled else EngineTokenWords()
        self.kind: Kind = "hash"
        self.cut = False  # of a log: whether its last line was not whole
        self.changes: tuple[tuple[int, Change], ...] = ()  # by forks: (number of steps after which it was made, change)
        self.forked_at: int | None = None  # the first event that need not be the parent's
        self._view = RecordingView(num_blocks, block_size)
        self._places = array("q", [-1])  # of the checkpoints
        self._checkpoints = [Checkpoint.of(self._view)]
        self._work = 0.0
        self.index = RunIndex(self.events, num_blocks - 1, "modelled" if self.is_modelled else "measured")
        self.findings = Findings()
        self._followers: tuple[Follower, ...] = (self.index, self.findings)

    @classmethod
    def record(cls, scenario: Scenario, kind: Kind | None = None) -> "Timeline":
        """Run the scenario to its end. Raises as `Simulator.of` does, and `Stuck`."""
        timeline = cls.for_scenario(scenario, kind)
        with no_collection():
            Simulator.of(scenario, timeline.kind, timeline).run()
        return timeline

    @classmethod
    def for_scenario(cls, scenario: Scenario, kind: Kind | None = None) -> "Timeline":
        """An empty timeline, to be given to a simulator of that scenario as a sink."""
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
            header, events = read_log(lines, read_json)
            _require_shape("line 1", header)
            _require_names(header)
            timeline = cls(header["num_blocks"], header["block_size"], header)
            timeline.kind = "radix" if header.get("cache") == "radix" else "hash"
            for number, event in enumerate(events):
                if event.seq != number:
                    raise BadLog(
                        f"line {number + 2}: event {event.seq} follows where {number} should: events are missing"
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
        except (LookupError, ValueError, ArithmeticError) as error:
            line = len(timeline.events) + 2
            raise BadLog(
                f"{source}, line {line}: this event does not follow from those before it ({_words(error)})"
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
        if self._work >= max(WORK, len(self._view.requests) + len(self._view.nodes)):
            self.checkpoint()
        self._view.apply(event)
        self.events.append(event)
        for follower in self._followers:
            follower.on(event, self._view)
        self._work += 1 + len(getattr(event, "blocks", ())) / BLOCKS_PER_EVENT
        if isinstance(event, ev.PoolReplaced):
            self.checkpoint()

    __call__ = add

    def checkpoint(self) -> None:
        """Make the state here cheap to reach."""
        self._places.append(len(self.events) - 1)
        self._checkpoints.append(Checkpoint.of(self._view))
        self._work = 0.0

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
        places = self.index.of_kind(kind)
        index = bisect_right(places, place)
        return places[index] if index < len(places) else None

    def previous(self, place: int, kind: str | None = None) -> int | None:
        """The last place before `place` with an event of that kind (of any); None if there is none."""
        if kind is None:
            return place - 1 if place > 0 else None
        places = self.index.of_kind(kind)
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
            if any(breakpoint.matches(event, self._rates(place)) for breakpoint in breakpoints):
                return place
        return None

    def _rates(self, place: int) -> tuple[float, float] | None:
        """The hit rate before and after an admission; None of any other event."""
        if not isinstance(self.events[place], ev.RequestAdmitted):
            return None
        before, after = self.hit_rate(place - 1), self.hit_rate(place)
        return (1.0 if before is None else before), after or 0.0

    def hit_rate(self, place: int) -> float | None:
        """The hit rate ("tokens of all") of the admissions up to `place`; None before the first."""
        return self.index.hit_rate(place)

    # What if

    def source(self) -> tuple[Scenario, Callable[[Request], int] | None]:
        """What `fork` runs again: a scenario, and the sampler if the scenario's seed does not give the tokens. Raises
        `BadChange` for a recorded run that does not say enough."""
        if self.scenario is not None:
            return self.scenario, self.sampler
        return scenario_of(self.index, self.settings, self.kind)

    def policy_at(self, place: int) -> dict[str, Any]:
        """The value of each setting of a policy, after the changes of the forks up to `place`. Raises as `source`."""
        steps = self.completed_steps(place)
        made = [change for after, change in self.changes if after <= steps]
        return values_after(made, self.source()[0], self.kind)

    def fork(self, place: int, change: Change | None = None) -> "Timeline":
        """Run again up to the last step boundary at or before `place`, make a change, and go on to the end. The steps
        before the boundary come out the same. Raises `BadChange`; this timeline stays as it is."""
        self.require(place, first=-1)
        steps = self.completed_steps(place)
        kept = [item for item in self.changes if item[0] <= steps]
        return self._run_again(kept, steps, [(steps, change)] if change is not None else [])

    def fork_from_start(self, change: Change) -> "Timeline":
        """Run again with a change at the beginning; the changes of earlier forks are made again where they were made.
        Raises `BadChange`, also for an earlier change that has become impossible."""
        return self._run_again([], 0, [(0, change), *self.changes])

    def _run_again(self, before: list[tuple[int, Change]], steps: int, changes: list[tuple[int, Change]]) -> "Timeline":
        """The run with the changes of `before` up to the end of step `steps`, and on from there with `changes`."""
        scenario, sampler = self.source()
        sim = Simulator.of(scenario, self.kind, sampler=sampler)
        branch = self._branch(scenario, sim)

        def make(after: int, change: Change) -> None:
            nonlocal branch
            sim.run_until(after)
            change.apply(sim)
            if not branch.events:  # the run begins with the change
                branch = self._branch(scenario, sim)

        for after, change in before:
            make(after, change)
        sim.run_until(steps)
        forked_at = len(branch)
        for after, change in changes:
            make(after, change)
        branch.changes, branch.forked_at = (*before, *changes), forked_at
        with no_collection():
            sim.run()
        return branch

    def _branch(self, scenario: Scenario, sim: Simulator) -> "Timeline":
        """An empty timeline that records `sim`, which runs `scenario` and has not begun, with its present settings."""
        config = {**scenario.schedulers, self.kind: sim.scheduler.config}
        begins = replace(scenario, caches=sim.scenario.caches, schedulers=config)
        branch = Timeline.for_scenario(begins, self.kind)
        branch.scenario, branch.sampler, branch.token_words = scenario, sim.sampler, self.token_words
        sim.events.sinks[:] = [branch]
        return branch

    # Steps

    def step_of(self, place: int) -> int:
        """The scheduler step of an event: 0 before the first."""
        event = self.require(place, first=-1)
        return event.step if event else 0

    def place_of_step(self, step: int) -> int:
        """Where scheduler step `step` begins; raises `UnknownThing`."""
        steps = self.index.of_kind("StepStarted")
        if not 1 <= step <= len(steps):
            there = f"this run has steps 1 to {len(steps)}" if steps else "no step has begun yet"
            raise UnknownThing(f"there is no step {step}: {there}")
        return steps[step - 1]

    def completed_steps(self, place: int) -> int:
        """The number of steps that have ended at `place`: a fork begins after the last of them."""
        return self.index.steps_until(place)


def _words(error: Exception) -> str:
    """What is wrong, in the words of a `ValueError` of ours; of other errors the type, too."""
    return str(error) if type(error) is ValueError else repr(error)


def _require_names(header: Mapping[str, Any]) -> None:
    """Raises `BadLog` for a text that no screen can show, such as a title."""
    for key, value in header.items():
        if isinstance(value, str) and len(value) > LONGEST_NAME:
            raise BadLog(f"line 1: {key} must have at most {LONGEST_NAME:,} characters, not {len(value):,}")


def _require_shape(where: str, shape: Mapping[str, Any]) -> None:
    """Raises `BadLog` unless `shape` has the `num_blocks` and `block_size` of a possible pool; `where` is the line."""
    for name, least in (("num_blocks", 2), ("block_size", 1)):
        value = shape.get(name)
        if value is None:
            raise BadLog(f"{where}: the header has no {name}")
        if type(value) is not int or not least <= value <= MAX_BLOCKS:
            raise BadLog(f"{where}: {name} must be an integer from {least} to {MAX_BLOCKS:,}, not {value!r}")
