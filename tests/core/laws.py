"""The laws of a prefix cache and of the scheduler over it.

Most laws watch a world (`world.py`) and must hold at each moment of any history. The others are experiments of their
own. `LAWS` has all of them as functions of the subject, each with fixed histories, to show which laws a mutant breaks.
The property tests check the same laws on histories that hypothesis searches for.
"""

import io
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from minicache.core import Adapter, Match, Namespace, Request
from minicache.core.errors import StaleMatch
from minicache.core.event_log import LogWriter, read_log
from minicache.core.prefix_cache import CacheSnapshot
from minicache.core.views import EngineView
from tests.core.naive import NaiveHashChain, NaiveRadix, naive_eviction, path_of, prefixes_in
from tests.core.shadow_kv import expected_output, kv_of
from tests.core.world import HASH, RADIX, History, Subject, Watcher, World, random_history

Law = Callable[[Subject], None]
SEEDS = range(8)


class CheckFindsNothing(Watcher):
    """After every call `check()`, which counts everything again, finds no fault."""

    def after(self, call: str, result: Any, *args: Any) -> None:
        self.cache.check()


class EveryBlockIsInOnePlace(Watcher):
    """Each usable block is exactly one of these: free, cached without a request that holds it, or held. The reference
    count of a block is the number of block tables that name it; the lock count of a node is the number of locks at or
    below it. No block table names a free block."""

    def after(self, call: str, result: Any, *args: Any) -> None:
        state, pool = self.cache.snapshot(), self.cache.pool
        tables = Counter(block for table in state.tables.values() for block in table)
        cached = [block for node in state.nodes.values() for block in node.blocks]
        assert len(set(state.free)) == len(state.free), "the free queue names a block twice"
        assert len(set(cached)) == len(cached), "two nodes have the same block"
        assert not set(state.free) & (set(cached) | set(tables)), "a block is in use and free"
        assert set(state.free) | set(cached) | set(tables) == set(range(1, state.num_blocks)), "a block is nowhere"
        references = Counter(cached)
        for block, count in tables.items():
            references[block] = 1 if block in cached else count
        assert {b.id: b.ref_count for b in pool.blocks if b.ref_count} == references
        if self.world.subject.kind == "radix":
            assert max(tables.values(), default=0) <= 1 or all(tables[b] == 1 for b in set(tables) - set(cached))
        locks = Counter(step for node in state.locks.values() for step in path_of(state.nodes, node))
        assert {id: node.locks for id, node in state.nodes.items() if node.locks} == locks
        unlocked = sum(len(node.blocks) for node in state.nodes.values() if not node.locks)
        assert self.cache.num_free == len(state.free) + unlocked


class ReadsItsOwnPrefix(Watcher):
    """In every step and at every position a request reads KV computed from its own namespace and tokens."""

    def read(self, request: Request, values: list[int]) -> None:
        assert values == kv_of(request)[: len(values)], f"{request} attends to KV that is not its own"


class WhatCanBeFoundWasComputed(Watcher):
    """When no step is in flight, every findable block is full, and holds the computed KV that its key promises."""

    def at_rest(self) -> None:
        size, kv = self.cache.block_size, self.world.kv
        state = self.cache.snapshot()
        promised = {}
        if state.hashes:
            for request in self.world.requests:
                values = kv_of(request)
                for index, hash in enumerate(self.cache.hashes(request)):
                    promised[hash] = values[index * size : (index + 1) * size]
        for block, hash in state.hashes.items():
            assert kv.block(block) == promised[hash], f"block {block} is findable, but its KV is not that of its key"
        for block, (namespace, tokens) in prefixes_in(state).items():
            values = kv_of(Request("any", tokens, namespace=namespace))
            assert kv.block(block) == values[-size:], f"block {block} is findable, but its KV is not that of its key"


class PlannedBlocksStayHeld(Watcher):
    """From `schedule()` to the end of the step no request is given a block that the plan names, because the model
    writes to it."""

    def after_public(self) -> None:
        if self.world.plan is not None:
            planned = {block for item in self.world.plan.scheduled for block in item.block_table}
            assert not planned & set(self.cache.snapshot().free)


class LookupFindsWholeBlocksShortOfTheEnd(Watcher):
    """A lookup finds whole blocks, and at most all tokens but one. It does not change which blocks are findable or
    held. Tokens that were found once are found again until a block is evicted or unpublished, or the cache is reset."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.found: dict[Request, int] = {}
        world.stream.sinks.append(self._forget)

    def _forget(self, event: Any) -> None:
        if type(event).__name__ in ("BlocksEvicted", "BlocksUnpublished", "NodesEvicted", "CacheReset"):
            self.found.clear()

    def before(self, call: str, *args: Any) -> None:
        self.state = self.cache.snapshot()

    def after(self, call: str, result: Any, *args: Any) -> None:
        if call != "lookup":
            return
        (request,) = args
        assert 0 <= result.num_tokens <= request.num_tokens - 1
        assert result.num_tokens == len(result.blocks) * self.cache.block_size
        now = self.cache.snapshot()
        assert findable(now) == findable(self.state)
        assert (now.free, now.tables, now.locks) == (self.state.free, self.state.tables, self.state.locks)
        if self.world.subject.kind == "hash":
            assert now == self.state, "the hash chain's lookup is pure"
        if request.prompt_logprobs is None and not request.skip_cache_read:
            assert result.num_tokens >= self.found.get(request, 0)
            self.found[request] = result.num_tokens


def findable(state: CacheSnapshot) -> tuple[Any, ...]:
    return state.hashes, state.copies, prefixes_in(state)


class FailedAllocationChangesNothing(Watcher):
    """`allocate` succeeds if and only if as many blocks are free as it demands, and takes exactly these. If it fails,
    nothing has changed: no block, hash, lock, tick or length."""

    def before(self, call: str, *args: Any) -> None:
        if call == "allocate":
            request, match, num_tokens = args
            self.state = self._state(request)
            self.free, self.demand = self.cache.num_free, self.cache.demand(request, match, num_tokens)
            assert self._state(request) == self.state, "demand is pure"

    def _state(self, request: Request) -> Any:
        tree = getattr(self.cache, "tree", None)
        tick = tree.tick if tree is not None else 0
        references = [block.ref_count for block in self.cache.pool.blocks]
        return self.cache.snapshot(), references, tuple(request.block_table), request.num_computed_tokens, tick

    def after(self, call: str, result: Any, *args: Any) -> None:
        if call == "allocate":
            assert result == (self.demand <= self.free)
            if result:
                assert self.cache.num_free == self.free - self.demand
            else:
                assert self._state(args[0]) == self.state


class ReleasingTwiceIsReleasingOnce(Watcher):
    """A second `release` changes nothing, nor does a `release` of a request that never held a block."""

    def after(self, call: str, result: Any, *args: Any) -> None:
        if call == "release":
            (request,) = args
            assert request.block_table == []
            state = self.cache.snapshot()
            self.world.raw["release"](request)
            assert self.cache.snapshot() == state


class StaleMatchRaises(Watcher):
    """A match that is older than an allocate, publish, release, evict or reset that changed something raises
    `StaleMatch`, and nothing changes."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.match: tuple[Request, Match] | None = None

    def before(self, call: str, *args: Any) -> None:
        self.state = self.cache.snapshot()

    def after(self, call: str, result: Any, *args: Any) -> None:
        if call == "lookup":
            self.match = args[0], result
        elif self.match is not None and (now := self.cache.snapshot()) != self.state:
            request, match = self.match
            computed = request.num_computed_tokens
            with pytest.raises(StaleMatch):
                self.world.raw["allocate"](request, match, 1)
            assert self.cache.snapshot() == now
            assert request.num_computed_tokens == computed


class ViewEqualsSnapshot(Watcher):
    """A view folded from events alone equals the snapshot of the cache after every call of the cache, and the snapshot
    of the scheduler after every call of the scheduler."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.view = EngineView(self.cache.pool.num_blocks, self.cache.block_size)
        self.lost: Exception | None = None
        world.stream.sinks.append(self._apply)

    def _apply(self, event: Any) -> None:
        try:
            self.view.apply(event)
        except Exception as error:
            self.lost = self.lost or error

    def after(self, call: str, result: Any, *args: Any) -> None:
        assert self.lost is None, f"the view cannot apply the events: {self.lost!r}"
        assert self.view.snapshot() == self.cache.snapshot()
        assert self.view.num_holders == Counter(block for table in self.view.tables.values() for block in table)

    def after_public(self) -> None:
        scheduler = getattr(self.world, "scheduler", None)
        if scheduler is not None:
            assert self.view.scheduler_snapshot() == scheduler.snapshot()
        assert self.view.snapshot() == self.cache.snapshot()


class LogTellsEverything(Watcher):
    """A view folded from a log file, read line by line, equals the snapshot at every moment."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.file = io.StringIO()
        self.num_events = 0
        self.moments: list[tuple[int, Any]] = []
        settings = {"num_blocks": self.cache.pool.num_blocks, "block_size": self.cache.block_size}
        world.stream.sinks += [LogWriter(self.file, settings), self._count]

    def _count(self, event: Any) -> None:
        self.num_events += 1

    def after_public(self) -> None:
        scheduler = getattr(self.world, "scheduler", None)
        queue = scheduler.snapshot() if scheduler is not None else None
        self.moments.append((self.num_events, (self.cache.snapshot(), queue)))

    def at_end(self) -> None:
        header, events = read_log(self.file.getvalue().splitlines())
        view = EngineView(header["num_blocks"], header["block_size"])
        applied = 0
        for num_events, (state, queue) in self.moments:
            for _ in range(num_events - applied):
                event = next(events)
                assert event.seq == applied
                view.apply(event)
                applied += 1
            assert view.snapshot() == state
            if queue is not None:
                assert view.scheduler_snapshot() == queue
        assert len(list(events)) == self.num_events - applied


class AgreesWithTheNaiveModel(Watcher):
    """The hash chain agrees with a list of free blocks and a set of prefixes: block for block, copy for copy, in the
    same order of eviction. The radix cache agrees with a set of prefixes in the hits, in the allocations that fit, and
    in evicting no prefix in use."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        naive = NaiveHashChain if world.subject.kind == "hash" else NaiveRadix
        self.naive: Any = naive(self.cache.pool.num_blocks, self.cache.block_size)
        self.is_hash = world.subject.kind == "hash"
        self.expected: Any = None

    def before(self, call: str, *args: Any) -> None:
        """Compute the answer of the naive model. It changes its state here; only `reset` and eviction follow the
        cache."""
        if call == "lookup":
            self.expected = self.naive.lookup(*args)
        elif call == "allocate":
            request, match, num_tokens = args
            found = match and (list(match.blocks) if self.is_hash else match.num_tokens)
            self.expected = self.naive.allocate(request, found, num_tokens)
        elif call == "make_room":
            self.expected = args[0] <= (len(self.naive.free) if self.is_hash else self.naive.num_free)
        elif call in ("publish", "release") or self.is_hash:
            getattr(self.naive, call)(*args)
        elif call == "reset" and not self.naive.num_held:
            self.naive.cached.clear()

    def after(self, call: str, result: Any, *args: Any) -> None:
        if call == "lookup":
            assert (result.blocks if self.is_hash else result.num_tokens) == self.expected
        elif call in ("allocate", "make_room"):
            assert result == self.expected
        state = self.cache.snapshot()
        if self.is_hash:
            self._compare_hash_chain(state)
        else:
            cached = set(prefixes_in(state).values())
            if call in ("allocate", "make_room", "evict"):
                self.naive.forget(self.naive.cached - cached)
            assert cached == self.naive.cached
            assert self.cache.num_free == self.naive.num_free

    def _compare_hash_chain(self, state: CacheSnapshot) -> None:
        assert list(state.free) == self.naive.free
        assert state.tables == {id: tuple(table) for id, table in self.naive.tables.items() if table}
        copies: dict[Any, list[int]] = {}
        for block, key in self.naive.prefix_of.items():
            copies.setdefault(key, []).append(block)
        assert sorted(map(tuple, copies.values())) == sorted(state.copies.values())


class EvictionFollowsTheStrategy(Watcher):
    """The radix cache evicts whole unlocked leaves in the order of its strategy, with a parent as a candidate once it
    is a leaf, and stops as soon as enough blocks are free."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.evicted: list[int] = []
        world.stream.sinks.append(lambda event: self.evicted.extend(getattr(event, "nodes", ())))

    def before(self, call: str, *args: Any) -> None:
        self.evicted.clear()
        self.expected: list[int] = []
        if self.world.subject.kind == "radix" and call in ("allocate", "make_room", "evict"):
            state = self.cache.snapshot()
            locked = {id for id, node in state.nodes.items() if node.locks}
            if call == "evict":
                count = args[0]
            elif call == "make_room":
                count = args[0] - len(state.free)
            else:
                count = self._missing(state, *args)
            if call == "allocate" and args[1] is not None:
                locked |= {node.id for node in args[1].node.path()}
            self.expected = naive_eviction(state.nodes, locked, count, self.world.settings.strategy)

    def _missing(self, state: CacheSnapshot, request: Request, match: Match | None, num_tokens: int) -> int:
        """The number of blocks that eviction must free: 0 if the allocation cannot fit at all."""
        if self.cache.demand(request, match, num_tokens) > self.cache.num_free:
            return 0
        start, held = request.num_computed_tokens, len(request.block_table)
        if match is not None:
            start, held = match.num_tokens, len(match.blocks)
        return -(-(start + num_tokens) // self.cache.block_size) - held - len(state.free)

    def after(self, call: str, result: Any, *args: Any) -> None:
        if call != "reset":
            assert self.evicted == self.expected


class TheScheduleDoesNotChangeTheOutput(Watcher):
    """Chunk sizes, the order of admission, preemptions, failed steps and hits never change an answer, and every request
    gets an answer."""

    def at_end(self) -> None:
        scheduler = getattr(self.world, "scheduler", None)
        if scheduler is None:
            return
        assert not scheduler.has_unfinished, "some requests never finish"
        for request in self.world.requests:
            assert request.status.is_final, f"{request} was forgotten"
            expected = expected_output(request)
            output = list(request.output)
            assert output == expected[: len(output)], f"{request} answered {output}, not {expected}"
            if request.finish_reason == "length":
                assert output == expected


class EverythingComesBack(Watcher):
    """When every request has finished, no block is held or locked, all blocks can be allocated, and `reset` succeeds
    and leaves no block cached."""

    def at_end(self) -> None:
        state = self.cache.snapshot()
        assert (state.tables, state.locks) == ({}, {})
        assert not any(node.locks for node in state.nodes.values())
        assert self.cache.num_free == self.cache.capacity
        assert self.world.raw["reset"]()
        state = self.cache.snapshot()
        assert sorted(state.free) == list(range(1, state.num_blocks))
        assert (state.hashes, state.copies, state.nodes) == ({}, {}, {})


# Laws that watch a world. The last ones make calls of their own.
WATCHERS: list[type[Watcher]] = [
    CheckFindsNothing,
    EveryBlockIsInOnePlace,
    ReadsItsOwnPrefix,
    WhatCanBeFoundWasComputed,
    PlannedBlocksStayHeld,
    LookupFindsWholeBlocksShortOfTheEnd,
    FailedAllocationChangesNothing,
    ViewEqualsSnapshot,
    LogTellsEverything,
    AgreesWithTheNaiveModel,
    EvictionFollowsTheStrategy,
    TheScheduleDoesNotChangeTheOutput,
    StaleMatchRaises,
    ReleasingTwiceIsReleasingOnce,
    EverythingComesBack,
]


# Laws that are experiments of their own.


def admit(cache: Any, request: Request, num_tokens: int | None = None) -> int:
    """Look up, allocate, compute and publish, as a scheduler does with a single request. Returns the hit tokens."""
    match = cache.lookup(request)
    end = request.num_tokens if num_tokens is None else num_tokens
    assert cache.allocate(request, match, end - match.num_tokens), "the pool is large enough"
    request.num_computed_tokens = end
    cache.publish(request, end)
    return int(match.num_tokens)


def hash_chain_and_radix_find_the_same(subject: Subject, prompts: list[list[int]] | None = None) -> None:
    """With equal block sizes, enough memory, and prompts one after the other, both caches hit the same tokens."""
    other = RADIX if subject.kind == "hash" else HASH
    for block_size in (1, 2, 4, 16):
        caches = [kind.cache(2000, block_size) for kind in (subject, other)]
        total = 0
        for number, tokens in enumerate(prompts if prompts is not None else _random_prompts(block_size)):
            hits = []
            for cache in caches:
                request = Request(f"r{number}", tokens)
                hits.append(admit(cache, request))
                cache.release(request)
            assert hits[0] == hits[1], f"prompt {number}: {subject.kind} finds {hits[0]}, {other.kind} {hits[1]}"
            total += hits[0]
        for cache in caches:
            cache.check()
        assert total or prompts is not None, "nothing ever hit"


def _random_prompts(block_size: int) -> list[list[int]]:
    draw = Random(block_size)
    prompts: list[list[int]] = []
    for _ in range(40):
        start = draw.choice(prompts)[: draw.randint(0, 4 * block_size)] if prompts else []
        prompts.append(start + [draw.randrange(2) for _ in range(draw.randint(1, 2 * block_size))])
    return prompts


def tricky_namespaces() -> list[Namespace]:
    """Namespaces whose parts give the same text when joined, or contain the text of another part."""
    adapters = [None, *(Adapter(name, path) for name, path in product(("a", "ab", "lora"), ("b", "bb", "ab")))]
    adapters += [Adapter("a", "b", digest) for digest in ("", "b", "tenant")] + [Adapter("a", "")]
    salts = (None, "a", "ab", "lora", "cache_salt", "('lora', 'a', 'b')")
    extras = ((), ("a",), ("a", "b"), ("ab",), ("",), ("lora", "a", "b"), ("cache_salt", "a"))
    return [Namespace(*parts) for parts in product(adapters, salts, extras)]


def namespaces_never_share(subject: Subject, namespaces: list[Namespace] | None = None) -> None:
    """No request finds blocks of a different adapter, salt or extra, however the texts are split into these parts;
    every request finds the blocks of an equal namespace."""
    spaces = tricky_namespaces() if namespaces is None else list(dict.fromkeys(namespaces))
    cache = subject.cache(4 * len(spaces) + 2, 2)
    for number, namespace in enumerate(spaces):
        hits = admit(cache, Request(f"first {number}", [0, 1, 0, 1, 0], namespace=namespace))
        assert hits == 0, f"{namespace} found tokens of another namespace"
    cache.check()
    for number, namespace in enumerate(spaces):
        equal = Namespace(namespace.adapter, namespace.salt, namespace.extra)
        hits = cache.lookup(Request(f"second {number}", [0, 1, 0, 1, 0], namespace=equal)).num_tokens
        assert hits == 4, f"{namespace} does not find its own tokens"


def a_match_ends_at_the_first_miss(subject: Subject) -> None:
    """Whatever the index of the hash chain answers, a lookup finds the blocks before the first miss, and no others."""
    if subject.kind != "hash":
        return
    cache = subject.cache(20, 2)
    request = Request("first", range(13))
    admit(cache, request)
    draw, blocks = Random(1), dict(zip(cache.hashes(request), request.block_table, strict=False))
    for number in range(50):
        answers = {hash: block for hash, block in blocks.items() if draw.random() < 0.7}
        cache.pool.find = answers.get
        expected = list(map(answers.get, blocks))
        expected = expected[: [*expected, None].index(None)]
        match = cache.lookup(Request(f"r{number}", range(13)))
        assert match.blocks == expected, f"found {match.blocks}, and the index has {list(answers.values())}"
        assert match.num_tokens == 2 * len(expected)


TRICKY_TOKENS = [[1, 23], [12, 3], [123, 0], [0, 123], [12, 30], [1, 230], [1 << 8, 1], [1, 1 << 8], [1, 23]]


def different_tokens_never_share(subject: Subject) -> None:
    """A request hits the blocks that it has in common with an earlier one, and no others, even if their tokens give the
    same text when they are joined."""
    for block_size in (1, 2, 4):
        cache = subject.cache(200, block_size)
        earlier: list[list[int]] = []
        for number, pair in enumerate(TRICKY_TOKENS):
            tokens = pair * block_size  # two blocks
            common = [0, *(end for end in (block_size, 2 * block_size) if tokens[:end] in [e[:end] for e in earlier])]
            assert admit(cache, Request(f"r{number}", [*tokens, 7])) == common[-1], f"prompt {number}, {tokens}"
            earlier.append(tokens)


def every_process_computes_the_same_hashes(subject: Subject) -> None:
    """Processes in which Python's `hash` has different seeds compute the same block hashes: they can share blocks."""
    if not subject.at or subject.kind != "hash":
        return
    code = (
        "import sys; from importlib import import_module; from minicache.core import Request; "
        "module, _, name = sys.argv[1].partition(':'); subject = getattr(import_module(module), name); "
        "print(subject.cache(9, 2, root_seed='a seed').hashes(Request('r', range(9))))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code, subject.at],
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1, f"two processes compute different hashes: {found}"


# Events that the fixed histories must contain, or a law that holds would mean nothing.
HAPPENS = {
    ("cache", "hash"): {"hits", "evictions", "failed allocations", "unpublished", "duplicates"},
    ("cache", "radix"): {"hits", "evictions", "failed allocations", "splits", "duplicates"},
    ("serving", "hash"): {
        *("hits", "evictions", "preemptions", "failed allocations", "unpublished", "duplicates", "scheduled victims"),
        *("aborted in flight", "failed steps", "same-step sharing", "reordered queues"),
    },
    ("serving", "radix"): {
        *("hits", "evictions", "preemptions", "failed allocations", "splits", "duplicates", "scheduled victims"),
        *("aborted in flight", "failed steps", "reordered queues"),
    },
}


def fixed_histories(world: str, kind: str) -> list[History]:
    return [random_history(world, kind, seed) for seed in SEEDS]


def nothing_missing(world: str, kind: str, seen: Counter[str]) -> None:
    """The histories contained every event without which a law that holds would mean nothing."""
    missing = HAPPENS[world, kind] - {name for name, count in seen.items() if count}
    assert not missing, f"never happened in {world} histories of the {kind} cache: {', '.join(sorted(missing))}"


def _in_fixed_histories(law: type[Watcher]) -> Law:
    def hold(subject: Subject) -> None:
        for world in ("cache", "serving"):
            for history in fixed_histories(world, subject.kind):
                history.run(law, subject=subject)

    hold.__doc__ = law.__doc__
    return hold


EXPERIMENTS: dict[str, Law] = {
    "HashChainAndRadixFindTheSame": hash_chain_and_radix_find_the_same,
    "NamespacesNeverShare": namespaces_never_share,
    "AMatchEndsAtTheFirstMiss": a_match_ends_at_the_first_miss,
    "DifferentTokensNeverShare": different_tokens_never_share,
    "EveryProcessComputesTheSameHashes": every_process_computes_the_same_hashes,
}
LAWS: dict[str, Law] = {law.__name__: _in_fixed_histories(law) for law in WATCHERS} | EXPERIMENTS
