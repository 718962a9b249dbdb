"""The whole run in one line: each cell stands for some events, and shows the rarest kind among them."""

from bisect import bisect_right
from itertools import pairwise

from minicache.core import events as ev
from minicache.core.events import Event
from minicache.sim.timeline import Timeline

from .rows import StripCell

# By rank: what is shown before what. The names of kinds are those of styles.
GLYPHS = "─·▲○✓▾◆Y✕!"
KINDS = ("line", "quiet", "computed", "findable", "text", "focus", "hit", "shared", "evicted", "preempted")
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
    "a request is preempted or refused",
)
PLAIN, LOOKUP, COMPUTED, PUBLISHED, DONE, ARRIVED, HIT, SPLIT, EVICTED, PREEMPTED = range(10)


def rank_of(event: Event) -> int:
    """How rare an event is."""
    match event:
        case ev.RequestPreempted() | ev.RequestRejected() | ev.RequestAborted():
            return PREEMPTED
        case ev.BlocksEvicted() | ev.NodesEvicted() | ev.CacheReset() | ev.BlocksUnpublished():
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
        self._bounds: list[int] = []  # where each cell begins, and the end
        self._cells: list[StripCell] = []

    def cells(self, width: int, place: int) -> list[StripCell]:
        """At most `width` cells, as many as there are events at most. Every event is in one of them."""
        self._lay_out(width)
        cells = list(self._cells)
        if 0 <= place < len(self._ranks):
            here = bisect_right(self._bounds, place) - 1
            cells[here] = cells[here]._replace(contains_place=True)
        return cells

    def _lay_out(self, width: int) -> None:
        events = self.timeline.events
        if self._layout == (width, len(events)):
            return
        self._layout = width, len(events)
        self._ranks.extend(map(rank_of, events[len(self._ranks) :]))
        count = min(width, len(events))
        self._bounds = [number * len(events) // count for number in range(count + 1)] if count else []
        self._cells = [self._cell(first, end - 1) for first, end in pairwise(self._bounds)]

    def _cell(self, first: int, last: int) -> StripCell:
        rank = max(self._ranks[first : last + 1])
        return StripCell(GLYPHS[rank], KINDS[rank], False, first, last, _what(first, last, rank))


def _what(first: int, last: int, rank: int) -> str:
    which = f"event {first:,}" if first == last else f"events {first:,} to {last:,}"
    return f"{which}: {WORDS[rank]}"
