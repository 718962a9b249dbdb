"""The whole run in one line: each cell stands for some events, and shows the rarest kind among them."""

from dataclasses import dataclass
from itertools import pairwise

from minicache.core import events as ev
from minicache.core.events import Event
from minicache.sim.timeline import Timeline

from .rows import StripCell

# By rank: what is shown before what. The names of kinds are those of styles.
GLYPHS = "─·▲○✓▾◆○✕!"
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


@dataclass(frozen=True, slots=True)
class _Layout:
    width: int
    length: int
    cells: tuple[tuple[int, int, int], ...]  # first, last, rank


class StripMap:
    """The cells of a timeline, which may grow."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._ranks = bytearray()
        self._layout: _Layout | None = None

    def cells(self, width: int, place: int) -> list[StripCell]:
        """At most `width` cells, as many as there are events at most. Every event is in one of them."""
        return [
            StripCell(GLYPHS[rank], KINDS[rank], first <= place <= last, first, last, _what(first, last, rank))
            for first, last, rank in self._laid_out(width).cells
        ]

    def _laid_out(self, width: int) -> _Layout:
        events = self.timeline.events
        for place in range(len(self._ranks), len(events)):
            self._ranks.append(rank_of(events[place]))
        layout = self._layout
        if layout is None or (layout.width, layout.length) != (width, len(events)):
            count = min(width, len(events))
            bounds = [number * len(events) // count for number in range(count + 1)] if count else []
            cells = ((a, b - 1, max(self._ranks[a:b])) for a, b in pairwise(bounds))
            layout = self._layout = _Layout(width, len(events), tuple(cells))
        return layout


def _what(first: int, last: int, rank: int) -> str:
    which = f"event {first:,}" if first == last else f"events {first:,} to {last:,}"
    return f"{which}: {WORDS[rank]}"
