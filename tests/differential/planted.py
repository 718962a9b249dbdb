"""Wrong versions of our code, planted one after the other: the histories of a part must find each.

make differential PEERS=FOLDER ARGS=--planted
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

from minicache.core import hash_chain_cache, planner, queue_policy
from minicache.core.block_hash import CborHash
from minicache.core.block_pool import BlockPool
from minicache.core.eviction import STRATEGIES
from minicache.core.hash_chain_cache import HashChainCache
from minicache.core.output_reserve import OutputReserve
from minicache.core.queues import Desk
from minicache.core.radix_cache import RadixCache
from minicache.core.radix_tree import RadixTree
from minicache.core.scheduler import Scheduler
from minicache.core.scheduler_config import VICTIMS

COUNT, SECONDS = 3000, 300.0  # histories in which a fault must show, and the longest time for them

# Each function makes a wrong version of `right`.


def key_without_salt(right: Any) -> Any:
    def hash_chain(tokens: Any, size: int, root: bytes, namespace: Any, *rest: Any) -> Any:
        return right(tokens, size, root, type(namespace)(namespace.adapter, None, namespace.extra), *rest)

    return hash_chain


def narrow_ids(right: Any) -> Any:
    return lambda self, parent, tokens, *rest: right(self, parent, [token & 0xFFFF for token in tokens], *rest)


def hits_its_last_token(right: Any) -> Any:
    def lookup(self: HashChainCache, request: Any) -> Any:
        request.tokens.append(0)
        try:
            return right(self, request)
        finally:
            request.tokens.pop()

    return lookup


def first_block_first(right: Any) -> Any:
    return lambda self, blocks: right(self, list(blocks)[::-1])


def short_when_alone(right: Any) -> Any:
    return lambda missing, budget, longest: right(missing, budget, longest or 3)


def to_the_back(right: Any) -> Any:
    return lambda self, *args, **more: right(self, *args, **(more | {"front": False}))


def queries_of_all(right: Any) -> Any:
    def admit(self: Desk, request: Any, match: Any, num_tokens: int) -> None:
        if match.end == "skipped" and not match.num_tokens:
            self._admitted.record(request.num_tokens, 0, request.num_cached_tokens is not None)
        right(self, request, match, num_tokens)

    return admit


def later_id_first(waiting: list[Any], cache: Any) -> None:
    waiting.sort(key=lambda request: request.id, reverse=True)
    waiting.sort(key=lambda request: (request.priority, request.arrival))


def match_without_refresh(right: Any) -> Any:
    def match(self: RadixTree, *args: Any) -> Any:
        ticks = {node.id: node.last_access for node in self.nodes()}
        found = right(self, *args)
        for node in self.nodes():
            node.last_access = ticks.get(node.id, node.last_access)
        return found

    return match


def hits_counted_twice(right: Any) -> Any:
    return lambda self, *args, **more: right(self, *args[:4], 0, **more)


def one_block_more(right: Any) -> Any:
    return lambda self, count, request=None: right(self, count + 1, request)


def room_for_each(right: Any) -> Any:
    def admit(self: Desk, request: Any, match: Any, num_tokens: int) -> None:
        right(self, request, match, num_tokens)
        self.cache.make_room(-(-num_tokens // self.cache.block_size))

    return admit


def admissions_are_first(right: Any) -> Any:
    def admit(self: Desk, request: Any, match: Any, num_tokens: int) -> None:
        if request.num_preemptions:
            self._admitted.record(0, match.num_tokens, False)
        right(self, request, match, num_tokens)

    return admit


def tries_in_each_step(right: Any) -> Any:
    def begin_step(self: Desk, step: int) -> None:
        self.is_full = False
        right(self, step)

    return begin_step


class Fault(NamedTuple):
    """`owner.name`, or `owner[name]` of a dictionary, is replaced by what `wrong` makes of it."""

    mistake: str
    part: str
    owner: Any
    name: str
    wrong: Callable[[Any], Any]


FAULTS = [
    Fault("the salt is left out of the key", "cache", hash_chain_cache, "hash_chain", key_without_salt),
    Fault("token ids have 16 bits", "cache", CborHash, "chain", narrow_ids),
    Fault("the last token may be hit", "cache", HashChainCache, "lookup", hits_its_last_token),
    Fault("blocks are freed first block first", "cache", BlockPool, "free", first_block_first),
    Fault("a request alone keeps the threshold", "scheduler", planner, "_share", short_when_alone),
    Fault("a preempted request waits at the back", "scheduler", Desk, "preempt", to_the_back),
    Fault("the first running request is preempted", "scheduler", VICTIMS, "last", lambda right: lambda all: all[0]),
    Fault("who reads nothing counts as a query", "scheduler", Desk, "admit", queries_of_all),
    Fault(
        "equal requests are ordered by id, last first",
        "scheduler",
        queue_policy.POLICIES,
        "priority",
        lambda right: lambda: later_id_first,
    ),
    Fault("a match does not refresh", "tree", RadixTree, "match", match_without_refresh),
    Fault("a request counts a hit each time", "radix", RadixTree, "insert", hits_counted_twice),
    Fault("mru knows no order of equals", "tree", STRATEGIES, "mru", lambda right: lambda node: (-node.last_access,)),
    Fault("lfu forgets recency", "tree", STRATEGIES, "lfu", lambda right: lambda node: (node.hit_count, -node.id)),
    Fault("duplicates are kept", "radix", RadixCache, "_rewrite", lambda right: lambda self, *args: None),
    Fault("one block too many is evicted", "radix", RadixCache, "_evict", one_block_more),
    Fault("33 shared tokens are needed to wait", "policies", queue_policy, "IN_BATCH_THRESHOLD", lambda right: 33),
    Fault("waiting prefixes are touched once", "policies", queue_policy, "RETOUCH_INTERVAL", lambda right: 10**9),
    Fault("lpm ranks any number of requests", "policies", queue_policy, "LPM_MAX_WAITING", lambda right: 10**9),
    Fault("newcomers reserve no output", "admission", planner, "whole_output", lambda right: lambda request: 0),
    Fault("running outputs are not reserved", "admission", OutputReserve, "tokens", lambda right: lambda self, all: 0),
    Fault("room is made at each admission", "admission", Desk, "admit", room_for_each),
    Fault("a chunk ends inside a block", "admission", planner, "_chunk", lambda right: lambda c, m, b, _: min(m, b)),
    Fault(
        "an abort publishes nothing",
        "admission",
        Scheduler,
        "_drop",
        lambda right: lambda self, request, publishes: right(self, request, False),
    ),
    Fault("retracted requests count as hits", "admission", Desk, "admit", admissions_are_first),
    Fault("a full batch tries again in each step", "admission", Desk, "begin_step", tries_in_each_step),
]


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    if isinstance(fault.owner, dict):
        with mock.patch.dict(fault.owner, {fault.name: fault.wrong(fault.owner[fault.name])}):
            yield
    else:
        with mock.patch.object(fault.owner, fault.name, fault.wrong(getattr(fault.owner, fault.name))):
            yield
