"""The whole run in one line: each cell stands for some events, and shows the rarest kind among them."""

from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise

from minicache.core import events as ev
from minicache.core.events import Event
from minicache.sim.timeline import Timeline

from .rows import StripCell

# By rank: what is shown before what. The names of kinds are those of styles.
GLYPHS = "─?▲◇✓▾◆Y✕†!"
KINDS = ("line", "quiet", "computed", "findable", "text", "focus", "hit", "shared", "evicted", "evicted", "preempted")
WORDS = (
    "the scheduler at work",
    "a request looks for its prefix",
    "tokens of a prompt are computed",
    "blocks become findable",
    "a request is done",
    "a request arrives",
    "a request hits",
    "a node is split",
    "something is evicted",
    "a request is refused or aborted",
    "a request is preempted",
)
BRIEF = (  # for where there is little room
    "at work",
    "looks up",
    "computed",
    "findable",
    "done",
    "arrives",
    "hit",
    "split",
    "evicted",
    "refused",
    "preempted",
)
PLAIN, LOOKUP, COMPUTED, PUBLISHED, DONE, ARRIVED, HIT, SPLIT, EVICTED, REFUSED, PREEMPTED = range(11)
CAPTIONS = [  # a legend in two lines: a request's way, and what else happens
    "  ".join(f"{GLYPHS[rank]} {BRIEF[rank]}" for rank in ranks)
    for ranks in ((ARRIVED, LOOKUP, HIT, COMPUTED, PUBLISHED, DONE), (SPLIT, EVICTED, PREEMPTED, REFUSED, PLAIN))
]


def rank_of(event: Event) -> int:
    """How rare an event is."""
    match event:
        case ev.RequestPreempted():
            return PREEMPTED
        case ev.RequestRejected() | ev.RequestAborted():
            return REFUSED
        case ev.BlocksEvicted() | ev.NodesEvicted() | ev.BlocksUnpublished():
            return EVICTED
        case ev.CacheReset() | ev.PoolReplaced() | ev.PoolShrunk():
            return EVICTED
        case ev.NodeSplit():
            return SPLIT
        case ev.RequestAdmitted() if event.num_cached_tokens:
            return HIT
        case ev.RequestArrived():
            return ARRIVED
        case ev.RequestFinished():
            return DONE
        case ev.BlocksPublished():
            return PUBLISHED
        case ev.TokensComputed() if event.num_tokens > 1:
            return COMPUTED
        case ev.PrefixMatched():
            return LOOKUP
    return PLAIN


class StripMap:
    """The cells of a timeline, which may grow."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._ranks = bytearray()
        self._layout = (0, 0)  # width, and how many events there were
        self._cells: list[StripCell] = []

    def cells(self, width: int, place: int) -> list[StripCell]:
        """At most `width` cells, as many as there are events at most. Every event is in one of them."""
        events = self.timeline.events
        if self._layout != (width, len(events)):
            self._layout = width, len(events)
            self._ranks.extend(map(rank_of, events[len(self._ranks) :]))
            self._cells = lay_out(self._ranks, width, _what)
        return marked(self._cells, place)


def lay_out(ranks: bytes | bytearray, width: int, what: Callable[[int, int, int], str]) -> list[StripCell]:
    """At most `width` cells for all that has these ranks, in order; `what` says a cell from its first, its last, and
    its rank."""
    count = min(width, len(ranks))
    bounds = [number * len(ranks) // count for number in range(count + 1)] if count else []
    cells = []
    for first, end in pairwise(bounds):
        rank = max(ranks[first:end])
        cells.append(StripCell(GLYPHS[rank], KINDS[rank], False, first, end - 1, what(first, end - 1, rank)))
    return cells


def marked(cells: list[StripCell], place: int) -> list[StripCell]:
    """The cells, of which the one that has this place says so."""
    cells = list(cells)
    if cells and 0 <= place <= cells[-1].last:
        here = bisect_right(cells, place, key=lambda cell: cell.first) - 1
        cells[here] = cells[here]._replace(contains_place=True)
    return cells


def event_shown(timeline: Timeline, cell: StripCell) -> int:
    """The place of the event whose sign a cell shows: of the rarest kind in it the first."""
    return max(range(cell.first, cell.last + 1), key=lambda place: rank_of(timeline.events[place]))


def _what(first: int, last: int, rank: int) -> str:
    which = f"event {first:,}" if first == last else f"events {first:,} to {last:,}"
    return f"{which}: {WORDS[rank]}"
