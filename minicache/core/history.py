"""What a cache has seen lately: who sent which tokens, what was computed, what was evicted when.

`History` is a sink with a bounded memory. At each lookup that ends with `no_entry` it finds the reason at once, while
everything is as the lookup saw it; `explain.py` puts the reason into words.
"""
# ruff: noqa: N802 - a handler carries the name of its event type

from array import array
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from minicache.core import events as ev
from minicache.core.prefix_cache import MatchEnd
from minicache.core.request import Namespace
from minicache.core.views import CacheView

Cause = Literal["difference", "evicted", "not_computed", "not_published", "unknown"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a block was not found. `other` is the request it is compared with, `token` the first position where the two
    differ, `step` and `why` the eviction's, `elsewhere` a request of another namespace that has the very block."""

    cause: Cause
    other: str | None = None
    token: int | None = None
    step: int | None = None
    why: str = ""
    elsewhere: str | None = None


@dataclass(slots=True)
class Known:
    """What is remembered of one request; `match` and `diagnosis` are of its latest lookup."""

    tokens: "array[int]"
    namespace: Namespace
    num_computed: int = 0
    match: tuple[int, MatchEnd] = (0, "skipped")
    diagnosis: Diagnosis | None = None


def common_prefix(a: "array[int]", b: "array[int]") -> int:
    """Length of the longest common prefix, by halving: arrays compare at the speed of memory."""
    low, high = 0, min(len(a), len(b)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


class History(CacheView):
    """Remembers the last `max_requests` requests, and a thousand evicted blocks for each of them.

    `num_blocks` and `block_size` are the cache's. It must listen from the first event on.
    """

    def __init__(self, num_blocks: int, block_size: int, max_requests: int = 256) -> None:
        super().__init__(num_blocks, block_size)
        self.max_requests = max_requests
        self.known: OrderedDict[str, Known] = OrderedDict()
        self._publisher: dict[int, tuple[str, int]] = {}  # findable block -> who published it, as which of its blocks
        self._evicted: OrderedDict[tuple[str, int], tuple[int, str]] = OrderedDict()  # the same -> step, why

    def on_RequestArrived(self, event: ev.RequestArrived) -> None:
        self.known[event.request] = Known(array("Q", event.tokens), event.namespace)
        self.known.move_to_end(event.request)
        while len(self.known) > self.max_requests:
            self.known.popitem(last=False)

    def on_TokensSampled(self, event: ev.TokensSampled) -> None:
        if known := self.known.get(event.request):
            known.tokens.extend(event.tokens)

    def on_RequestAdmitted(self, event: ev.RequestAdmitted) -> None:
        if known := self.known.get(event.request):
            known.num_computed = max(known.num_computed, event.num_cached_tokens)

    def on_TokensComputed(self, event: ev.TokensComputed) -> None:
        if known := self.known.get(event.request):
            known.num_computed = max(known.num_computed, event.start + event.num_tokens)

    def on_BlocksPublished(self, event: ev.BlocksPublished) -> None:
        super().on_BlocksPublished(event)
        first = self.tables[event.request].index(event.blocks[0])
        for index, block in enumerate(event.blocks, start=first):
            self._publisher[block] = (event.request, index)
            self._evicted.pop((event.request, index), None)

    def on_BlocksEvicted(self, event: ev.BlocksEvicted) -> None:
        super().on_BlocksEvicted(event)
        self._record_lost(event.blocks, event.step, event.why)

    def on_NodesEvicted(self, event: ev.NodesEvicted) -> None:
        super().on_NodesEvicted(event)
        self._record_lost(event.blocks, event.step, event.why)

    def on_BlocksUnpublished(self, event: ev.BlocksUnpublished) -> None:
        super().on_BlocksUnpublished(event)
        self._record_lost(event.blocks, event.step, f"{event.request} gave it up before it was computed")

    def on_CacheReset(self, event: ev.CacheReset) -> None:
        super().on_CacheReset(event)
        self._record_lost(tuple(self._publisher), event.step, "the cache was reset")

    def _record_lost(self, blocks: tuple[int, ...], step: int, why: str) -> None:
        for block in blocks:
            published = self._publisher.pop(block, None)
            if published is not None:
                self._evicted[published] = (step, why)
        while len(self._evicted) > 1000 * self.max_requests:
            self._evicted.popitem(last=False)

    def on_PrefixMatched(self, event: ev.PrefixMatched) -> None:
        super().on_PrefixMatched(event)
        if known := self.known.get(event.request):
            known.match = (event.num_tokens, event.end)
            known.diagnosis = self._diagnose(event.request, known) if event.end == "no_entry" else None

    def _diagnose(self, request: str, known: Known) -> Diagnosis:
        """Compare with every remembered request, the most recent first."""
        start = known.match[0]
        end = start + self.block_size  # the block that was not found holds positions [start, end)
        nearest, best, elsewhere = None, (False, -1), None
        for other, candidate in reversed(self.known.items()):
            if other == request:
                continue
            common = common_prefix(known.tokens, candidate.tokens)
            if candidate.namespace != known.namespace:
                if common >= end and elsewhere is None:
                    elsewhere = other
                continue
            lost = common >= end and (other, start // self.block_size) in self._evicted
            if (lost, common) > best:
                nearest, best = other, (lost, common)
        if nearest is None:
            return Diagnosis("unknown", elsewhere=elsewhere)
        lost, common = best
        if common < end:
            return Diagnosis("difference", nearest, token=common, elsewhere=elsewhere)
        if lost:
            step, why = self._evicted[nearest, start // self.block_size]
            return Diagnosis("evicted", nearest, step=step, why=why)
        computed = self.known[nearest].num_computed >= end
        return Diagnosis("not_published" if computed else "not_computed", nearest)
