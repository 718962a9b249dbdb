"""The recent history of a cache: the tokens of its requests, the number computed of each, and the blocks that were
lost.

`History` follows a view, with a bounded memory. When a lookup ends with `no_entry`, it finds the reason immediately,
while the state is the one that the lookup saw. `explain.py` gives a caller the part of this reason that the caller may
know.
"""
# ruff: noqa: N802 - a handler is named after its event type

from array import array
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Literal

from minicache.core import events as ev
from minicache.core.losses import Loss, Losses
from minicache.core.prefix_cache import MatchEnd
from minicache.core.request import Namespace
from minicache.core.runs import common_prefix
from minicache.core.views import EngineView, Follower

Cause = Literal["difference", "evicted", "not_computed", "waiting", "not_published", "no_kv", "unknown"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why block number `block` of a request was not found. The causes are among those of `Explanation.reason`.

    `other` is the request with which it was compared, and had `other_length` tokens. `token` is the first position at
    which the two differ: the request has the token `here`, the other request `there` (`None`: it ends there). `loss`
    says how the block was lost. `elsewhere` is a request of another namespace that has the same block in the cache now.
    """

    cause: Cause
    block: int
    other: str | None = None
    other_length: int = 0
    token: int | None = None
    here: int | None = None
    there: int | None = None
    loss: Loss | None = None
    elsewhere: str | None = None


@dataclass(slots=True, eq=False)
class Known:
    """One remembered request. `match` and `diagnosis` belong to its latest lookup, `length` is its length at that time.
    `turn` is the number of its latest admission; `None` while the request does not run."""

    tokens: "array[int]"
    namespace: Namespace
    num_computed: int = 0
    live: bool = True
    admitted: bool = False  # at least once
    turn: int | None = None
    match: tuple[int, MatchEnd] | None = None
    length: int = 0
    diagnosis: Diagnosis | None = None
    digests: list[bytes] = field(default_factory=list)  # of its first blocks, computed when first needed


class History(Follower):
    """Remembers `max_requests` requests (every live one, even if these are more, and the latest that ended) and the
    latest 1000 * `max_requests` lost blocks. It must receive every event from the first on."""

    def __init__(self, max_requests: int = 256) -> None:
        self.max_requests = max_requests
        self.known: OrderedDict[str, Known] = OrderedDict()  # in order of arrival
        self._ended: OrderedDict[str, None] = OrderedDict()  # those of `known` that ended, in this order
        self.losses = Losses(1000 * max_requests)
        # A block is remembered by a digest of its namespace and of all tokens up to its end, whichever request
        # computed it.
        self._digests: dict[int, bytes] = {}  # findable block -> digest
        self._findable: Counter[bytes] = Counter()
        self._num_admissions = 0

    # Requests

    def on_RequestArrived(self, event: ev.RequestArrived, view: EngineView) -> None:
        self.known[event.request] = Known(array("Q", event.tokens), event.namespace)
        self.known.move_to_end(event.request)
        self._ended.pop(event.request, None)
        if len(self.known) > self.max_requests and self._ended:
            del self.known[self._ended.popitem(last=False)[0]]

    def on_TokensSampled(self, event: ev.TokensSampled, view: EngineView) -> None:
        if known := self.known.get(event.request):
            known.tokens.extend(event.tokens)

    def on_RequestAdmitted(self, event: ev.RequestAdmitted, view: EngineView) -> None:
        if known := self.known.get(event.request):
            known.num_computed, known.admitted = event.num_cached_tokens, True
            known.turn = self._num_admissions
            self._num_admissions += 1

    def on_TokensComputed(self, event: ev.TokensComputed, view: EngineView) -> None:
        if known := self.known.get(event.request):
            known.num_computed = event.start + event.num_tokens

    def on_RequestPreempted(self, event: ev.RequestPreempted, view: EngineView) -> None:
        if known := self.known.get(event.request):
            known.num_computed, known.turn = 0, None

    def on_RequestFinished(self, event: ev.RequestFinished, view: EngineView) -> None:
        self._end(event.request)

    def on_RequestAborted(self, event: ev.RequestAborted, view: EngineView) -> None:
        self._end(event.request)

    def _end(self, request: str) -> None:
        if known := self.known.get(request):
            known.live, known.turn, known.digests = False, None, []
            self._ended[request] = None

    # Blocks

    def on_BlocksPublished(self, event: ev.BlocksPublished, view: EngineView) -> None:
        known = self.known.get(event.request)
        if known is None:
            return
        first = event.start // view.block_size
        digests = self._digests_of(known, first + len(event.blocks), view.block_size)[first:]
        for block, digest in zip(event.blocks, digests, strict=True):
            self._digests[block] = digest
            self._findable[digest] += 1
            self.losses.forget(digest)

    def on_BlocksEvicted(self, event: ev.BlocksEvicted, view: EngineView) -> None:
        self._evict(event)

    def on_NodesEvicted(self, event: ev.NodesEvicted, view: EngineView) -> None:
        self._evict(event)

    def _evict(self, event: ev.BlocksEvicted | ev.NodesEvicted) -> None:
        self._lose(event.blocks, Loss(event.step, "needed" if event.request else "evict_called", event.request))

    def on_BlocksUnpublished(self, event: ev.BlocksUnpublished, view: EngineView) -> None:
        self._lose(event.blocks, Loss(event.step, "not_computed"))

    def on_CacheReset(self, event: ev.CacheReset, view: EngineView) -> None:
        self._lose(tuple(self._digests), Loss(event.step, "reset"))

    def _lose(self, blocks: tuple[int, ...], loss: Loss) -> None:
        for block in blocks:
            digest = self._digests.pop(block, None)
            if digest is None:
                continue  # its request is not remembered
            self._findable[digest] -= 1
            if not self._findable[digest]:
                del self._findable[digest]
                self.losses.remember(digest, loss)

    def on_PoolReplaced(self, event: ev.PoolReplaced, view: EngineView) -> None:
        self.losses.clear()
        self._digests.clear()
        self._findable.clear()
        for known in self.known.values():
            known.num_computed, known.digests = 0, []

    def _digests_of(self, known: Known, count: int, size: int) -> list[bytes]:
        """The digests of the first `count` blocks of a request, of `size` tokens each; fewer if it has fewer blocks."""
        digests = known.digests
        for start in range(len(digests) * size, min(count * size, len(known.tokens) - size + 1), size):
            parent = digests[-1] if digests else _root(known.namespace)
            digests.append(_next(parent, known.tokens[start : start + size]))
        return digests[:count]

    # Why

    def on_PrefixMatched(self, event: ev.PrefixMatched, view: EngineView) -> None:
        if known := self.known.get(event.request):
            known.match, known.length = (event.num_tokens, event.end), len(known.tokens)
            known.diagnosis = self._diagnose(event.request, known, view.block_size) if event.end == "no_entry" else None

    def _diagnose(self, request: str, known: Known, size: int) -> Diagnosis:
        """Compare the request with the latest ones, the most recent first. A request that was never admitted counts
        only if it has the missing block: then it will compute this block, but its beginning was never in the cache."""
        assert known.match is not None
        start = known.match[0]
        end = start + size  # the block that was not found holds positions [start, end)
        nearest, shared, elsewhere, ended = None, start - 1, None, None
        at_shared = known.tokens[shared : shared + 1] if shared >= 0 else None
        for other, candidate in islice(reversed(self.known.items()), self.max_requests):
            if other == request:
                continue
            alike = candidate.namespace is known.namespace or candidate.namespace == known.namespace
            if alike and at_shared is not None and candidate.tokens[shared : shared + 1] != at_shared:
                continue  # it does not agree longer than the nearest request so far
            common = common_prefix(known.tokens, candidate.tokens)
            if not alike:
                if common >= end and _digest(known.tokens, candidate.namespace, end, size) in self._findable:
                    elsewhere = elsewhere or other
            elif common >= end and not candidate.live and candidate.num_computed < end:  # it never computed the block
                if candidate.num_computed == len(candidate.tokens) - 1:
                    ended = ended or other
            elif common > shared and (candidate.admitted or common >= end):
                nearest, shared, at_shared = other, common, known.tokens[common : common + 1]
        block = start // size
        loss = self.losses.of(self._digests_of(known, end // size, size)[-1])
        if loss is not None:
            return Diagnosis("evicted", block, loss=loss, elsewhere=elsewhere)
        if nearest is None:
            return Diagnosis("no_kv" if ended else "unknown", block, ended, elsewhere=elsewhere)
        candidate = self.known[nearest]
        if shared < end:
            there = candidate.tokens[shared] if shared < len(candidate.tokens) else None
            figures = len(candidate.tokens), shared, known.tokens[shared], there
            return Diagnosis("difference", block, nearest, *figures, elsewhere=elsewhere)
        if candidate.num_computed >= end:
            return Diagnosis("not_published", block, nearest, elsewhere=elsewhere)
        if candidate.turn is not None:
            return Diagnosis("not_computed", block, nearest, elsewhere=elsewhere)
        if computing := self._who_computes(request, known, end):
            return Diagnosis("not_computed", block, computing, elsewhere=elsewhere)
        return Diagnosis("waiting", block, nearest, elsewhere=elsewhere)

    def _who_computes(self, request: str, known: Known, end: int) -> str | None:
        """The running request that begins with the same `end` tokens; of several, the one admitted first."""
        start = known.tokens[:end]
        same = [
            (candidate.turn, other)
            for other, candidate in self.known.items()
            if candidate.turn is not None and other != request and candidate.namespace == known.namespace
            if candidate.tokens[:end] == start
        ]
        return min(same)[1] if same else None


def _root(namespace: Namespace) -> bytes:
    return blake2b(repr(namespace).encode(), digest_size=16).digest()


def _next(parent: bytes, tokens: "array[int]") -> bytes:
    return blake2b(parent + tokens.tobytes(), digest_size=16).digest()


def _digest(tokens: "array[int]", namespace: Namespace, end: int, size: int) -> bytes:
    """The digest of the last block of the first `end` tokens, in blocks of `size` tokens."""
    digest = _root(namespace)
    for start in range(0, end, size):
        digest = _next(digest, tokens[start : start + size])
    return digest
