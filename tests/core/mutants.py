"""Named wrong versions of the core: mistakes that real engines have made, or that a reader might make.

Each is a subject (`world.py`) with one method or part replaced. `test_mutants.py` shows which laws it breaks.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from unittest import mock

from minicache.core import HashChainCache, Match, RadixCache, Request, ScheduledRequest, Scheduler, StepPlan, radix_tree
from minicache.core.block_hash import ExtraKeys, sha256_cbor
from minicache.core.block_pool import BlockPool
from minicache.core.paged_cache import Holder, PagedCache
from minicache.core.queues import Desk
from minicache.core.radix_tree import Node, RadixTree
from minicache.core.request import Namespace
from tests.core.world import Subject


class Mutant(NamedTuple):
    """`mistake` says what is wrong. `law` names the law that must fail for it; others may fail too."""

    mistake: str
    law: str
    subject: Subject


# The hash chain's key.


def hashed_by(key: Callable[[bytes, Any, ExtraKeys], tuple[bytes, Any, ExtraKeys]]) -> Callable[..., HashChainCache]:
    """A hash chain whose hashes are computed from parts that `key` has changed."""

    def block_hash(parent: bytes, tokens: Any, extra_keys: ExtraKeys) -> bytes:
        return sha256_cbor(*key(parent, tokens, extra_keys))

    return lambda *args, **kwargs: HashChainCache(*args, block_hash=block_hash, **kwargs)


def without(tag: str) -> Callable[[bytes, Any, ExtraKeys], tuple[bytes, Any, ExtraKeys]]:
    return lambda parent, tokens, keys: (parent, tokens, tuple(key for key in keys or () if key[0] != tag) or None)


def untagged(parent: bytes, tokens: Any, keys: ExtraKeys) -> tuple[bytes, Any, ExtraKeys]:
    return parent, tokens, tuple((part,) for key in keys or () for part in key[1:]) or None


def joined(parent: bytes, tokens: Any, keys: ExtraKeys) -> tuple[bytes, Any, ExtraKeys]:
    return parent, tokens, (("".join(str(part) for key in keys for part in key),),) if keys else None


def as_text(parent: bytes, tokens: Any, keys: ExtraKeys) -> bytes:
    return sha256_cbor.digest(parent + "".join(map(str, tokens)).encode() + repr(keys).encode())


def by_python(parent: bytes, tokens: Any, keys: ExtraKeys) -> bytes:
    """`hash` of bytes and texts depends on a seed that each process draws."""
    return hash((parent, tuple(tokens), keys)).to_bytes(8, "big", signed=True)


def chain_of(block_hash: Callable[..., bytes]) -> Callable[..., HashChainCache]:
    return lambda *args, **kwargs: HashChainCache(*args, block_hash=block_hash, **kwargs)


# The hash chain.


class GoesOnPastAMiss(HashChainCache):
    def lookup(self, request: Request) -> Match:
        found = super().lookup(request)
        if found.end != "no_entry":
            return found
        limit = (request.num_tokens - 1) // self.block_size
        blocks = [self.pool.find(hash) for hash in self.hashes(request)[:limit]]
        blocks = [block for block in blocks if block is not None]
        num_tokens = len(blocks) * self.block_size
        return Match(num_tokens, blocks, "no_entry", request_id=request.id, version=self._version)


class LastBlockMatched(HashChainCache):
    def lookup(self, request: Request) -> Match:
        found = super().lookup(request)
        index = len(found.blocks)
        if found.end == "last_token" and (block := self.pool.find(self.hashes(request)[index])) is not None:
            return Match(
                request.num_tokens, [*found.blocks, block], "whole", request_id=request.id, version=self._version
            )
        return found


class FreesSharedBlocks(BlockPool):
    def free(self, blocks: Iterable[int]) -> list[int]:
        blocks = list(blocks)
        for block in blocks:
            self.blocks[block].ref_count = 1
        return super().free(blocks)


class EvictsFromTheTail(BlockPool):
    def allocate(self, count: int) -> Any:
        order = list(self.free_queue)
        for block in order:
            self.free_queue.remove(block)
        self.free_queue.append(reversed(order))
        done = super().allocate(count)
        order = [block for block in order if block in self.free_queue]
        for block in order:
            self.free_queue.remove(block)
        self.free_queue.append(order)
        return done


class ForgetsNoHash(BlockPool):
    """A block that is handed out again stays findable under its old hash."""

    def allocate(self, count: int) -> Any:
        kept = [(block, self.blocks[block].hash) for block in list(self.free_queue)[:count]]
        done = super().allocate(count)
        for block, hash in kept:
            if hash is not None:
                self._copies.setdefault(hash, {})[block] = None
        return done


class TouchLeavesInQueue(BlockPool):
    def touch(self, blocks: Iterable[int]) -> None:
        for block in blocks:
            self.blocks[block].ref_count += 1

    def free(self, blocks: Iterable[int]) -> list[int]:
        blocks = list(blocks)
        for block in blocks:
            if block in self.free_queue and self.blocks[block].ref_count == 1:
                self.free_queue.remove(block)
        return super().free(blocks)


def over(pool: type[BlockPool]) -> Callable[..., HashChainCache]:
    return lambda num_blocks, *args, **kwargs: HashChainCache(num_blocks, *args, pool=pool(num_blocks), **kwargs)


class PublishesPartialBlocks(HashChainCache):
    def publish(self, request: Request, num_tokens: int) -> None:
        room = min(request.num_tokens, len(request.block_table) * self.block_size)
        super().publish(request, min(num_tokens + self.block_size - 1, room))


class UnpinnedMatch(HashChainCache):
    """Takes fresh blocks before it adopts the matched ones, so a matched block may be handed out as a fresh one."""

    def _adopt(self, holder: Holder, match: Match) -> None:
        self._late = holder, match

    def allocate(self, request: Request, match: Match | None, num_tokens: int) -> bool:
        self._late: Any = None
        done = super().allocate(request, match, num_tokens)
        if self._late is not None:
            fresh = list(request.block_table)
            request.block_table.clear()
            match = self._late[1]
            self.pool.touch(match.blocks)
            request.block_table.extend([*match.blocks, *fresh])
            self._late[0].num_published = len(match.blocks)
        return done


def hits_are_no_demand(cache: type[PagedCache]) -> type[PagedCache]:
    class HitsAreNoDemand(cache):  # type: ignore[misc, valid-type]
        def demand(self, request: Request, match: Match | None, num_tokens: int) -> int:
            return int(self._num_fresh(request, match, num_tokens))

    return HitsAreNoDemand


class EvictionNotTold(HashChainCache):
    def _emit_evicted(self, evicted: Iterable[tuple[int, bytes]], why: str) -> None:
        """Emits no event."""


class SplitNotTold(RadixCache):
    def _emit_split(self, split: Any, tick: int) -> None:
        """Emits no event."""


class UncomputedStaysFindable(HashChainCache):
    def _let_go(self, holder: Holder) -> None:
        """Leaves uncomputed blocks findable, as vLLM 0.33 does."""
        request = holder.request
        self._emit_release(request, self.pool.free(reversed(request.block_table)))


class FreesFirstBlockFirst(HashChainCache):
    def _let_go(self, holder: Holder) -> None:
        free, self.pool.free = self.pool.free, lambda blocks: free(list(blocks)[::-1])  # type: ignore[method-assign]
        try:
            super()._let_go(holder)
        finally:
            del self.pool.free


class ReleasesAgain(HashChainCache):
    """Frees the blocks of a request at every call of `release`."""

    last: dict[str, list[int]]

    def release(self, request: Request) -> None:
        if request.block_table:
            self.last = {request.id: list(request.block_table)}
            super().release(request)
        else:
            for block in self.last.pop(request.id, ()) if hasattr(self, "last") else ():
                if block in self.pool.free_queue:
                    self.pool.free_queue.prepend([block])


class MatchNeverStale(HashChainCache):
    def _require_fresh(self, match: Match, request: Request, holder: Holder | None) -> None:
        """Accepts every match."""


class FailureLeavesHitsHeld(HashChainCache):
    """Adopts the matched blocks before it counts, and does not give them back if the rest does not fit."""

    def allocate(self, request: Request, match: Match | None, num_tokens: int) -> bool:
        if match is not None and match.blocks and self.demand(request, match, num_tokens) > self.num_free:
            self.pool.touch(match.blocks)
            return False
        return super().allocate(request, match, num_tokens)


# The radix cache.


class AnyNamespace(RadixTree):
    def _child_key(self, parent: Node, namespace: Namespace, tokens: Any, start: int) -> Any:
        return super()._child_key(parent, self._seen_as(namespace), tokens, start)

    def _seen_as(self, namespace: Namespace) -> Namespace:
        return Namespace(namespace.adapter, None, namespace.extra)


class AnyAdapter(AnyNamespace):
    def _seen_as(self, namespace: Namespace) -> Namespace:
        return Namespace(None, namespace.salt, namespace.extra)


class JoinedNamespace(AnyNamespace):
    """Joins the adapter's id and `extra_key` into one text, as SGLang does (#24638)."""

    def _seen_as(self, namespace: Namespace) -> Namespace:
        adapter = namespace.adapter
        parts = ((adapter.name, adapter.path, adapter.digest or "") if adapter else ()) + namespace.extra
        return Namespace(salt=namespace.salt, extra=("".join(parts),))


class EvictsLocked(RadixTree):
    def lock(self, node: Node) -> None:
        leaves = dict(self._evictable_leaves)
        super().lock(node)
        self._evictable_leaves = leaves


class SplitForgetsLocks(RadixTree):
    def _split(self, node: Node, at: int) -> Any:
        done = super()._split(node, at)
        done.upper.lock_count = 0
        return done


class SplitInsideABlock(RadixTree):
    """Compares tokens instead of blocks, and rounds up."""

    def _walk(self, namespace: Namespace, tokens: Any, end: int, below: Node | None = None) -> Any:
        exact = radix_tree.common_prefix

        def rounded_up(run: Any, tokens: Any, start: int, end: int, unit: int) -> int:
            common = exact(run, tokens, start, end, unit)
            return min(len(run), common + unit) if start + common + unit <= end else common

        with mock.patch.object(radix_tree, "common_prefix", rounded_up):
            return super()._walk(namespace, tokens, end, below)


class MatchDoesNotRefresh(RadixTree):
    def match(self, namespace: Namespace, tokens: Any, limit: int | None = None) -> Any:
        before = {node.id: node.last_access for node in self.nodes()}
        done = super().match(namespace, tokens, limit)
        for node in self.nodes():
            node.last_access = before.get(node.id, node.last_access)
        return done


def planted(tree: type[RadixTree]) -> Callable[..., RadixCache]:
    def make(num_blocks: int, block_size: int = 1, strategy: str = "lru", **kwargs: Any) -> RadixCache:
        return RadixCache(num_blocks, block_size, strategy, tree=tree(block_size, strategy), **kwargs)

    return make


class TableNotRewritten(RadixCache):
    """Frees the duplicate and continues to use it, as mini-sglang did (PR #142)."""

    def _rewrite(self, request: Request, inserted: Any, start: int) -> None:
        table = list(request.block_table)
        super()._rewrite(request, inserted, start)
        request.block_table[:] = table


class DuplicatesNotFreed(RadixCache):
    def _rewrite(self, request: Request, inserted: Any, start: int) -> None:
        request.block_table[start : inserted.num_shared] = self.tree.path_blocks(inserted.node)[
            start : inserted.num_shared
        ]


class PublishesPartialPages(RadixCache):
    def publish(self, request: Request, num_tokens: int) -> None:
        computed = request.num_computed_tokens
        room = min(request.num_tokens, len(request.block_table) * self.block_size)
        request.num_computed_tokens = max(computed, min(num_tokens + self.block_size - 1, room))
        try:
            super().publish(request, min(num_tokens + self.block_size - 1, room))
        finally:
            request.num_computed_tokens = computed


class LocksAfterEviction(RadixCache):
    """Evicts first and locks the match afterwards, when the matched blocks may be evicted already."""

    def allocate(self, request: Request, match: Match | None, num_tokens: int) -> bool:
        if match is not None and self.demand(request, match, num_tokens) <= self.num_free:
            missing = self._num_fresh(request, match, num_tokens) - self.pool.num_free
            version = self._version
            self._evict(missing, "too early")
            self._version = version
        return super().allocate(request, match, num_tokens)


class ReleaseKeepsLock(RadixCache):
    def _let_go(self, holder: Holder) -> None:
        lock, holder.lock = holder.lock, None
        super()._let_go(holder)
        holder.lock = lock


# The scheduler.


class AbortReleasesAtOnce(Scheduler):
    """Releases at once, although the model still writes to the blocks and the plan still names them."""

    def abort(self, request_id: str) -> None:
        request = self._live(request_id)
        super().abort(request_id)
        self.cache.release(request)


def at(desk: type[Desk]) -> type[Scheduler]:
    """A scheduler whose desk is of the class `desk`."""

    class WithDesk(Scheduler):
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **settings)
            self.desk.__class__ = desk

    return WithDesk


class UndoKeepsProgress(Desk):
    """Counts the tokens of a failed step as computed when the step is undone."""

    def preempt(self, request: Request, *args: Any, **figures: Any) -> int:
        if figures.get("cause") == "step_failed":
            request.num_computed_tokens = len(request.block_table) * self.cache.block_size
        return super().preempt(request, *args, **figures)


class PreemptForgetsLengthFirst(Desk):
    def preempt(self, request: Request, *args: Any, **figures: Any) -> int:
        refund = super().preempt(request, *args, **figures)
        request.num_computed_tokens = self.cache.block_size
        return refund


class VictimStaysInPlan(Desk):
    def begin_step(self, step: int) -> None:
        super().begin_step(step)
        self.lost: list[ScheduledRequest] = []

    def preempt(self, request: Request, *args: Any, **figures: Any) -> int:
        self.lost += [item for item in super().plan().scheduled if item.request is request]
        return super().preempt(request, *args, **figures)

    def plan(self) -> StepPlan:
        plan = super().plan()
        return StepPlan(plan.step, (*self.lost, *plan.scheduled))


class FinishWithoutRelease(Scheduler):
    def _finish(self, request: Request, reason: str) -> None:
        release, self.cache.release = self.cache.release, lambda request: None  # type: ignore[method-assign]
        try:
            super()._finish(request, reason)
        finally:
            self.cache.release = release  # type: ignore[method-assign]


class DecodesTwice(Scheduler):
    """Publishes one token more than has KV: the last sampled token."""

    def _finish(self, request: Request, reason: str) -> None:
        request.num_computed_tokens = request.num_tokens
        super()._finish(request, reason)


def _hash(cache: Callable[..., PagedCache] = HashChainCache, **scheduler: type[Scheduler]) -> Subject:
    return Subject("hash", cache, **scheduler)


def _radix(cache: Callable[..., PagedCache] = RadixCache, **scheduler: type[Scheduler]) -> Subject:
    return Subject("radix", cache, **scheduler)


PYTHON_HASH = Subject("hash", chain_of(by_python), at="tests.core.mutants:PYTHON_HASH")

MUTANTS: list[Mutant] = [
    Mutant(
        "parent left out of the hash",
        "HashChainAndRadixFindTheSame",
        _hash(hashed_by(lambda parent, tokens, keys: (b"", tokens, keys))),
    ),
    Mutant("last block matched on an aligned prompt", "LookupFindsWholeBlocksShortOfTheEnd", _hash(LastBlockMatched)),
    Mutant("shared block freed at release", "EveryBlockIsInOnePlace", _hash(over(FreesSharedBlocks))),
    Mutant("duplicate freed without rewriting the table", "ReadsItsOwnPrefix", _radix(TableNotRewritten)),
    Mutant("block published before it is full", "WhatCanBeFoundWasComputed", _hash(PublishesPartialBlocks)),
    Mutant("page published before it is full", "WhatCanBeFoundWasComputed", _radix(PublishesPartialPages)),
    Mutant("adapter left out of the key", "NamespacesNeverShare", _hash(hashed_by(without("lora")))),
    Mutant("adapter left out of the tree's key", "NamespacesNeverShare", _radix(planted(AnyAdapter))),
    Mutant("salt left out of the key", "NamespacesNeverShare", _hash(hashed_by(without("cache_salt")))),
    Mutant("salt left out of the tree's key", "NamespacesNeverShare", _radix(planted(AnyNamespace))),
    Mutant("evict while locked", "EvictionFollowsTheStrategy", _radix(planted(EvictsLocked))),
    Mutant("match not pinned before fresh blocks are taken", "ReadsItsOwnPrefix", _hash(UnpinnedMatch)),
    Mutant("match locked after room was made", "AgreesWithTheNaiveModel", _radix(LocksAfterEviction)),
    Mutant("hits not counted as demand", "FailedAllocationChangesNothing", _hash(hits_are_no_demand(HashChainCache))),
    Mutant(
        "hits not counted as demand of the tree",
        "FailedAllocationChangesNothing",
        _radix(hits_are_no_demand(RadixCache)),
    ),
    Mutant("uncomputed blocks left findable", "WhatCanBeFoundWasComputed", _hash(UncomputedStaysFindable)),
    Mutant("lookup goes on past a miss", "AMatchEndsAtTheFirstMiss", _hash(GoesOnPastAMiss)),
    Mutant("tokens joined as text before hashing", "DifferentTokensNeverShare", _hash(chain_of(as_text))),
    Mutant("Python's hash() as the digest", "EveryProcessComputesTheSameHashes", PYTHON_HASH),
    # Further mutants.
    Mutant("extra left out of the key", "NamespacesNeverShare", _hash(hashed_by(without("extra")))),
    Mutant("extra keys untagged (vLLM before #44706)", "NamespacesNeverShare", _hash(hashed_by(untagged))),
    Mutant("extra keys joined into one text", "NamespacesNeverShare", _hash(hashed_by(joined))),
    Mutant(
        "adapter and extra joined into one text (SGLang #24638)",
        "NamespacesNeverShare",
        _radix(planted(JoinedNamespace)),
    ),
    Mutant("hash kept when the block is handed out again", "CheckFindsNothing", _hash(over(ForgetsNoHash))),
    Mutant("newest block evicted first", "AgreesWithTheNaiveModel", _hash(over(EvictsFromTheTail))),
    Mutant("touched block left in the free queue", "EveryBlockIsInOnePlace", _hash(over(TouchLeavesInQueue))),
    Mutant("table freed first block first", "AgreesWithTheNaiveModel", _hash(FreesFirstBlockFirst)),
    Mutant("blocks freed again by a second release", "ReleasingTwiceIsReleasingOnce", _hash(ReleasesAgain)),
    Mutant("stale match believed", "StaleMatchRaises", _hash(MatchNeverStale)),
    Mutant("failed allocation keeps the hits", "FailedAllocationChangesNothing", _hash(FailureLeavesHitsHeld)),
    Mutant("duplicates never freed", "EverythingComesBack", _radix(DuplicatesNotFreed)),
    Mutant("split forgets the locks", "CheckFindsNothing", _radix(planted(SplitForgetsLocks))),
    Mutant(
        "match runs into a block that differs", "TheScheduleDoesNotChangeTheOutput", _radix(planted(SplitInsideABlock))
    ),
    Mutant("match does not refresh", "ViewEqualsSnapshot", _radix(planted(MatchDoesNotRefresh))),
    Mutant("lock kept at release", "EverythingComesBack", _radix(ReleaseKeepsLock)),
    Mutant("eviction without an event", "LogTellsEverything", _hash(EvictionNotTold)),
    Mutant("split without an event", "ViewEqualsSnapshot", _radix(SplitNotTold)),
    Mutant("abort releases while the model runs", "PlannedBlocksStayHeld", _hash(scheduler=AbortReleasesAtOnce)),
    Mutant("failed step counted as computed", "WhatCanBeFoundWasComputed", _hash(scheduler=at(UndoKeepsProgress))),
    Mutant("computed length kept at preemption", "ViewEqualsSnapshot", _radix(scheduler=at(PreemptForgetsLengthFirst))),
    Mutant("victim left in the plan", "ReadsItsOwnPrefix", _hash(scheduler=at(VictimStaysInPlan))),
    Mutant("finished without release", "EverythingComesBack", _radix(scheduler=FinishWithoutRelease)),
    Mutant("last sampled token published", "WhatCanBeFoundWasComputed", _hash(scheduler=DecodesTwice)),
]
