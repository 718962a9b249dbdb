"""The order of the waiting queue.

The planner applies the policy before it admits requests; the policy sorts the queue in place. The cache-aware
policies look requests up, which refreshes their prefixes in a radix cache. Sources: vLLM 0.33,
`vllm/v1/core/sched/request_queue.py`; SGLang 0.5.23, `sglang/srt/managers/schedule_policy.py`.
"""

import math
from collections.abc import Callable

from minicache.core.errors import InvalidArgument
from minicache.core.prefix_cache import PrefixCache
from minicache.core.radix_tree import RadixTree
from minicache.core.request import Request

QueuePolicy = Callable[[list[Request], PrefixCache], None]

LPM_MAX_WAITING = 128  # in a longer queue, ranking costs more than it saves
IN_BATCH_THRESHOLD = 32  # tokens; a request that shares at least this many with an earlier one should wait for it
RETOUCH_INTERVAL = 32  # passes between two refreshes of waiting prefixes
RETOUCH_MAX_WAITING = 128  # requests refreshed at once, from the front of the queue


def fcfs(waiting: list[Request], cache: PrefixCache) -> None:
    """First come, first served: leaves the queue as it is."""


def priority(waiting: list[Request], cache: PrefixCache) -> None:
    """The smallest `priority` first; among equals the earliest `arrival`, and then the smallest id."""
    waiting.sort(key=lambda request: (request.priority, request.arrival, request.id))


def lpm(waiting: list[Request], cache: PrefixCache) -> None:
    """Longest prefix match first, so that requests use cached prefixes before these are evicted.

    A request that shares a long prefix with an earlier one in the queue, which is not cached yet, goes last in this
    step: later it can hit what the earlier request computes.
    """
    matched = {request.id: cache.lookup(request).num_tokens for request in waiting}
    deprioritised = in_batch_sharers(waiting, matched)
    waiting.sort(key=lambda request: math.inf if request.id in deprioritised else -matched[request.id])


def in_batch_sharers(waiting: list[Request], matched: dict[str, int]) -> set[str]:
    """The ids of the requests that would compute the same prefix as an earlier request in the queue. Pure.

    `matched` maps each request's id to its cached tokens. Each request with at most `IN_BATCH_THRESHOLD` cached tokens
    is matched, token by token, against a tree of the earlier ones. If they have at least `IN_BATCH_THRESHOLD` tokens in
    common, it is one of these requests; otherwise it joins the tree.
    """
    tree, sharers = RadixTree(block_size=1), set()
    for request in waiting:
        if matched[request.id] > IN_BATCH_THRESHOLD:
            continue
        if len(tree.match(request.namespace, request.tokens).blocks) >= IN_BATCH_THRESHOLD:
            sharers.add(request.id)
        else:
            tree.insert(request.namespace, request.tokens, [0] * request.num_tokens)
    return sharers


class Retouch:
    """SGLang's fcfs: leaves the queue as it is. In every `RETOUCH_INTERVAL`-th pass, the first one included, it looks
    up the prefixes of the first `RETOUCH_MAX_WAITING` requests, last first, so that they are not evicted while the
    requests wait. Does nothing over a cache in which a lookup does not delay eviction."""

    def __init__(self) -> None:
        self.passes = 0

    def __call__(self, waiting: list[Request], cache: PrefixCache) -> None:
        if not waiting or not cache.lookup_refreshes:
            return
        if self.passes % RETOUCH_INTERVAL == 0:
            for request in reversed(waiting[:RETOUCH_MAX_WAITING]):
                cache.lookup(request)
        self.passes += 1


class LongestPrefix:
    """`lpm`, and SGLang's fcfs in each pass over a queue of more than `LPM_MAX_WAITING`, with its refreshes."""

    def __init__(self) -> None:
        self.retouch = Retouch()

    def __call__(self, waiting: list[Request], cache: PrefixCache) -> None:
        policy = self.retouch if len(waiting) > LPM_MAX_WAITING else lpm
        policy(waiting, cache)


POLICIES: dict[str, Callable[[], QueuePolicy]] = {
    "fcfs": lambda: fcfs,
    "fcfs-retouch": Retouch,
    "priority": lambda: priority,
    "lpm": LongestPrefix,
}
CACHE_AWARE = ("fcfs-retouch", "lpm")


def policy_named(name: str, cache: PrefixCache) -> QueuePolicy:
    """A new policy called `name` for a scheduler over `cache`. For a cache that never finds anything, the cache-aware
    policies are fcfs. Raises `InvalidArgument`, which lists the names, if it does not exist."""
    if name not in POLICIES:
        raise InvalidArgument(f"queue_policy must be one of {', '.join(POLICIES)}, not {name!r}")
    return POLICIES[name]() if cache.finds or name not in CACHE_AWARE else fcfs
