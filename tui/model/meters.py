"""Figures at a place, with their history over the steps before, and what each means."""

from collections.abc import Sequence

from minicache.core.hit_rate import DEFINITIONS
from minicache.core.views import EngineView
from minicache.sim.run_index import RunIndex
from minicache.sim.timeline import Timeline

from ..cells import Cells
from .rows import Meter

HISTORY = 32  # steps
HIT_RATE = "tokens of all"
_DEFINITION = " ".join((DEFINITIONS[HIT_RATE].__doc__ or "").split()).rstrip(".")
HIT_RATE_MEANS = f'"{HIT_RATE}": {_DEFINITION[0].lower()}{_DEFINITION[1:]}, over all admissions up to here.'


def meters_at(timeline: Timeline, place: int, view: EngineView, cells: Cells, index: RunIndex) -> list[Meter]:
    """Hit rate, pool use, waiting requests, computed tokens. In the history each lies between 0 and 1: a count as a
    share of the largest in the steps that are shown."""
    over = index.steps_until(place)
    steps = slice(max(0, over - HISTORY), over)
    rate = timeline.hit_rate(place)
    capacity = max(1, view.capacity)
    used = cells.counts().used
    computed = _computed(timeline, place)
    return [
        Meter(
            "hit rate",
            "–" if rate is None else f"{100 * rate:.1f} % of tokens",
            index.hit_rates_by_step[steps].tolist(),
            HIT_RATE_MEANS,
        ),
        Meter(
            "in use",
            f"{100 * used / capacity:.0f} %",
            [min(1.0, held / capacity) for held in index.used[steps]],
            f"Blocks that requests hold, of the {capacity:,} of the pool. What is cached and held by nobody does not "
            "count.",
        ),
        Meter(
            "waiting",
            f"{len(view.waiting):,}",
            _shares(index.waiting[steps], len(view.waiting)),
            "Requests in the queue, those that were preempted included.",
        ),
        Meter(
            "computed",
            f"{computed:,} in this step",
            _shares(index.computed[steps], computed),
            "Tokens whose KV was computed in this step, prompts and answers together.",
        ),
    ]


def _shares(values: Sequence[int], now: int) -> list[float]:
    most = max(1, now, *values)
    return [value / most for value in values]


def _computed(timeline: Timeline, place: int) -> int:
    """Tokens computed since the step began."""
    begun = timeline.previous(place + 1, "StepStarted")
    total = 0
    at = timeline.next(-1 if begun is None else begun, "TokensComputed")
    while at is not None and at <= place:
        total += getattr(timeline.events[at], "num_tokens", 0)
        at = timeline.next(at, "TokensComputed")
    return total
