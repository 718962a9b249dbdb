"""The order of the waiting queue.

The scheduler calls its policy once a step, before admission; the policy sorts the queue in place. The cache-aware
policies look requests up, which refreshes their prefixes in a radix cache. Sources: vLLM 0.33,
`vllm/v1/core/sched/request_queue.py`; SGLang 0.5.23, `sglang/srt/managers/schedule_policy.py`.
"""

from collections.abc import Callable

from minicache.core.errors import InvalidArgument
from minicache.core.prefix_cache import PrefixCache
from minicache.core.radix_tree import RadixTree
from minicache.core.request import Request

QueuePolicy = Callable[[list[Request], PrefixCache], None]

LPM_MAX_WAITING = 128  # in a longer queue, ranking costs more than it saves
IN_BATCH_THRESHOLD = 32  # tokens; a request that shares at least this many with an earlier one should wait for it
RETOUCH_INTERVAL = 32  # steps between two refreshes of waiting prefixes
RETOUCH_MAX_WAITING = 128  # requests refreshed at once, from the front of the queue


def fcfs(waiting: list[Request], cache: PrefixCache) -> None:
    """First come, first served: leaves the queue as it is."""


def priority(waiting: list[Request], cache: PrefixCache) -> None:
    """The smallest `priority` first; among equals, the earliest `arrival`."""
    waiting.sort(key=lambda request: (request.priority, request.arrival))


def lpm(waiting: list[Request], cache: PrefixCache) -> None:
    """Longest prefix match first, so that requests use cached prefixes before these are evicted.

    A request that shares a long prefix with an earlier one in the queue, which is not cached yet, goes last in this
    step: later it can hit what the earlier request computes. Leaves a queue of more than `LPM_MAX_WAITING` as it is.
    """
    if len(waiting) > LPM_MAX_WAITING:
        return
    matched = {request.id: cache.lookup(request).num_tokens for request in waiting}
    deprioritised = in_batch_sharers(waiting, matched, cache.block_size)
    waiting.sort(key=lambda request: (request.id in deprioritised, -matched[request.id]))


def in_batch_sharers(waiting: list[Request], matched: dict[str, int], block_size: int = 1) -> set[str]:
    """The ids of the requests that would compute the same prefix as an earlier request in the queue. Pure.

    `matched` maps each request's id to its cached tokens. Each request with at most `IN_BATCH_THRESHOLD` cached tokens
    is matched against a tree of the earlier ones. If they have at least `IN_BATCH_THRESHOLD` tokens in common, it is
    one of these requests; otherwise it joins the tree.
    """
    tree, sharers = RadixTree(block_size), set()
    for request in waiting:
        if matched[request.id] > IN_BATCH_THRESHOLD:
            continue
        found = tree.match(request.namespace, request.tokens)
        if len(found.blocks) * block_size >= IN_BATCH_THRESHOLD:
            sharers.add(request.id)
        else:
            whole = request.num_tokens // block_size
            tree.insert(request.namespace, request.tokens[: whole * block_size], [0] * whole)
    return sharers


class Retouch:
    """SGLang's fcfs: leaves the queue as it is. Every `RETOUCH_INTERVAL` steps it looks up the prefixes of the first
    `RETOUCH_MAX_WAITING` requests, last first, so that an LRU cache does not evict them while the requests wait."""

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self, waiting: list[Request], cache: PrefixCache) -> None:
        self.steps += 1
        if self.steps % RETOUCH_INTERVAL == 0:
            for request in reversed(waiting[:RETOUCH_MAX_WAITING]):
                cache.lookup(request)


POLICIES: dict[str, Callable[[], QueuePolicy]] = {
    "fcfs": lambda: fcfs,
    "fcfs-retouch": Retouch,
    "priority": lambda: priority,
    "lpm": lambda: lpm,
}


def policy_named(name: str, cache: PrefixCache) -> QueuePolicy:
    """A new policy called `name` for a scheduler over `cache`. For a cache that never finds anything, the cache-aware
    policies are fcfs. Raises `InvalidArgument`, which lists the names, if it does not exist."""
    if name not in POLICIES:
        raise InvalidArgument(f"queue_policy must be one of {', '.join(POLICIES)}, not {name!r}")
    if not cache.finds and name in ("lpm", "fcfs-retouch"):
        return fcfs
    return POLICIES[name]()
