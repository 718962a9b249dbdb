"""What a cache has seen lately: who sent which tokens, what was computed, what was evicted when.

`History` follows a view, with a bounded memory. At each lookup that ends with `no_entry` it finds the reason at once,
while everything is as the lookup saw it; `explain.py` puts the reason into words.
"""
# ruff: noqa: N802 - a handler is named after its event type

from array import array
from collections import Counter, OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from minicache.core import events as ev
from minicache.core.losses import Loss, Losses
from minicache.core.prefix_cache import MatchEnd
from minicache.core.request import Namespace
from minicache.core.runs import common_prefix
from minicache.core.views import EngineView, Follower

Cause = Literal["difference", "evicted", "not_computed", "not_published", "unknown"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a block was not found. `other` is the request it is compared with, `token` the first position where the two
    differ, `loss` how it was lost, `elsewhere` a request of another namespace whose same block can be found now."""

    cause: Cause
    other: str | None = None
    token: int | None = None
    loss: Loss | None = None
    elsewhere: str | None = None


@dataclass(slots=True)
class Known:
    """What is remembered of one request; `match` and `diagnosis` are of its latest lookup."""

    tokens: "array[int]"
    namespace: Namespace
    num_computed: int = 0
    live: bool = True
    admitted: bool = False  # at least once
    match: tuple[int, MatchEnd] | None = None
    diagnosis: Diagnosis | None = None


class History(Follower):
    """Remembers the last `max_requests` requests, and a thousand lost blocks for each of them.

    It must follow from the first event on. `block_size` is the pool's at the latest lookup.
    """

    def __init__(self, max_requests: int = 256, losses: Losses | None = None) -> None:
        self.max_requests = max_requests
        self.block_size = 1
        self.known: OrderedDict[str, Known] = OrderedDict()
        self.losses = losses if losses is not None else Losses(1000 * max_requests)
        # A block is remembered by a digest of its namespace and of all tokens up to its end, whoever computed it.
        self.digests: dict[int, bytes] = {}  # findable block -> digest
        self._findable: Counter[bytes] = Counter()

    # Requests

    def on_RequestArrived(self, event: ev.RequestArrived, view: EngineView) -> None:
        self.known[event.request] = Known(array("Q", event.tokens), event.namespace)
        self.known.move_to_end(event.request)
        while len(self.known) > self.max_requests:
            self.known.popitem(last=False)

    def on_TokensSampled(self, event: ev.TokensSampled, view: EngineView) -> None:
        if known := self.known.get(event.request):
            known.tokens.extend(event.tokens)

    def on_RequestAdmitted(self, event: ev.RequestAdmitted, view: EngineView) -> None:
        if known := self.known.get(event.request):
            known.num_computed, known.admitted = event.num_cached_tokens, True

    def on_TokensComputed(self, event: ev.TokensComputed, view: EngineView) -> None:
        if known := self.known.get(event.request):
            known.num_computed = event.start + event.num_tokens

    def on_RequestPreempted(self, event: ev.RequestPreempted, view: EngineView) -> None:
        if known := self.known.get(event.request):
            known.num_computed = 0

    def on_RequestFinished(self, event: ev.RequestFinished, view: EngineView) -> None:
        self._end(event.request)

    def on_RequestAborted(self, event: ev.RequestAborted, view: EngineView) -> None:
        self._end(event.request)

    def _end(self, request: str) -> None:
        if known := self.known.get(request):
            known.live = False

    # Blocks

    def on_BlocksPublished(self, event: ev.BlocksPublished, view: EngineView) -> None:
        digest, size = self._parent_digest(event, view), view.block_size
        tokens = array("Q", event.tokens)
        for index, block in enumerate(event.blocks):
            digest = _next(digest, tokens[index * size : (index + 1) * size])
            self.digests[block] = digest
            self._findable[digest] += 1
            self.losses.forget(digest)

    def _parent_digest(self, event: ev.BlocksPublished, view: EngineView) -> bytes:
        """The digest of the block before the published ones: in the tree above the new leaf, or in the table.

        In a radix cache the table may still name the request's own duplicates there: it is rewritten afterwards.
        """
        if event.parent_node:
            return self.digests[view.nodes[event.parent_node].blocks[-1]]
        table = view.tables[event.request]
        first = table.index(event.blocks[0])
        return self.digests[table[first - 1]] if first else _root(event.namespace)

    def on_BlocksEvicted(self, event: ev.BlocksEvicted, view: EngineView) -> None:
        self._lose(event.blocks, Loss(event.step, event.request, _evicted_why(event.request)))

    def on_NodesEvicted(self, event: ev.NodesEvicted, view: EngineView) -> None:
        self._lose(event.blocks, Loss(event.step, event.request, _evicted_why(event.request)))

    def on_BlocksUnpublished(self, event: ev.BlocksUnpublished, view: EngineView) -> None:
        self._lose(event.blocks, Loss(event.step, None, "it was given up before it was computed"))

    def on_CacheReset(self, event: ev.CacheReset, view: EngineView) -> None:
        self._lose(tuple(self.digests), Loss(event.step, None, "the cache was reset"))

    def on_PoolReplaced(self, event: ev.PoolReplaced, view: EngineView) -> None:
        """Nothing of the old pool is missed in the new one."""
        self.digests.clear()
        self._findable.clear()
        self.losses.clear()
        for known in self.known.values():
            known.num_computed = 0

    def _lose(self, blocks: tuple[int, ...], loss: Loss) -> None:
        for block in blocks:
            digest = self.digests.pop(block)
            self._findable[digest] -= 1
            if not self._findable[digest]:
                del self._findable[digest]
                self.losses.remember(digest, loss)

    # Why

    def on_PrefixMatched(self, event: ev.PrefixMatched, view: EngineView) -> None:
        self.block_size = view.block_size
        if known := self.known.get(event.request):
            known.match = (event.num_tokens, event.end)
            known.diagnosis = self._diagnose(event.request, known) if event.end == "no_entry" else None

    def _diagnose(self, request: str, known: Known) -> Diagnosis:
        """Compare with every remembered request, the most recent first. With one that was never admitted only what it
        will compute can be compared: nothing that it begins with has ever been in the cache."""
        assert known.match is not None
        start = known.match[0]
        end = start + self.block_size  # the block that was not found holds positions [start, end)
        nearest, shared, elsewhere = None, start - 1, None
        at_shared = known.tokens[shared : shared + 1] if shared >= 0 else None
        for other, candidate in reversed(self.known.items()):
            if other == request:
                continue
            alike = candidate.namespace is known.namespace or candidate.namespace == known.namespace
            if alike and at_shared is not None and candidate.tokens[shared : shared + 1] != at_shared:
                continue  # it has no more in common than the nearest so far
            common = common_prefix(known.tokens, candidate.tokens)
            if not alike:
                if common >= end and self._digest(known.tokens, candidate.namespace, end) in self._findable:
                    elsewhere = elsewhere or other
            elif common > shared and (candidate.admitted if common < end else self._might_have(candidate, end)):
                nearest, shared, at_shared = other, common, known.tokens[common : common + 1]
        loss = self.losses.of(self._digest(known.tokens, known.namespace, end))
        if loss is not None:
            return Diagnosis("evicted", nearest if shared >= end else None, loss=loss, elsewhere=elsewhere)
        if nearest is None:
            return Diagnosis("unknown", elsewhere=elsewhere)
        if shared < end:
            return Diagnosis("difference", nearest, token=shared, elsewhere=elsewhere)
        computed = self.known[nearest].num_computed >= end
        return Diagnosis("not_published" if computed else "not_computed", nearest, elsewhere=elsewhere)

    def _might_have(self, candidate: Known, end: int) -> bool:
        """Whether a request that sent the very block has it, or will: one that ended without it never will."""
        return candidate.live or candidate.num_computed >= end

    def _digest(self, tokens: "array[int]", namespace: Namespace, end: int) -> bytes:
        digest = _root(namespace)
        for start in range(0, end, self.block_size):
            digest = _next(digest, tokens[start : start + self.block_size])
        return digest


def _root(namespace: Namespace) -> bytes:
    return blake2b(repr(namespace).encode(), digest_size=16).digest()


def _next(parent: bytes, tokens: "array[int]") -> bytes:
    return blake2b(parent + tokens.tobytes(), digest_size=16).digest()


def _evicted_why(request: str | None) -> str:
    return "evict() was called" if request is None else "another request needed the room"
