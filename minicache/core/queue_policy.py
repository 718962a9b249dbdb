"""The order of the waiting queue.

A policy is called once a step, before admission, and sorts the queue in place. The cache-aware ones look requests up,
which refreshes their prefixes in a radix cache. Source: vLLM 0.33, `vllm/v1/core/sched/request_queue.py`; SGLang
0.5.23, `sglang/srt/managers/schedule_policy.py`.
"""

from collections.abc import Callable

from minicache.core.errors import InvalidArgument
from minicache.core.prefix_cache import PrefixCache
from minicache.core.radix_tree import RadixTree
from minicache.core.request import Request

QueuePolicy = Callable[[list[Request], PrefixCache], None]

LPM_MAX_WAITING = 128  # with more than this many waiting, ranking costs more than it saves
IN_BATCH_THRESHOLD = 32  # tokens: who shares this much with a request before it had better wait for it
RETOUCH_INTERVAL = 32  # steps between two refreshes of waiting prefixes
RETOUCH_MAX_WAITING = 128


def fcfs(waiting: list[Request], cache: PrefixCache) -> None:
    """First come, first served: the order of arrival in the queue stays."""


def priority(waiting: list[Request], cache: PrefixCache) -> None:
    """The smallest `priority` first, the earliest arrival among equals."""
    waiting.sort(key=lambda request: (request.priority, request.arrival))


def lpm(waiting: list[Request], cache: PrefixCache) -> None:
    """Longest prefix match first, so that what is cached is used before it is evicted.

    Requests that share a long prefix with an earlier one of the queue, which is not cached yet, go last in this step:
    they will hit what it computes.
    """
    if len(waiting) > LPM_MAX_WAITING:
        return
    matched = {request.id: cache.lookup(request).num_tokens for request in waiting}
    deprioritised = in_batch_sharers(waiting, matched, cache.block_size)
    waiting.sort(key=lambda request: (request.id in deprioritised, -matched[request.id]))


def in_batch_sharers(waiting: list[Request], matched: dict[str, int], block_size: int = 1) -> set[str]:
    """Requests that would compute what an earlier request of the same queue is about to compute.

    Each request with at most `IN_BATCH_THRESHOLD` tokens in the cache is matched against a tree of the earlier such
    requests; with that many tokens in common it is deprioritised, else it joins the tree.
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
    """SGLang's fcfs: every 32 steps the prefixes of the first 128 waiting requests are looked up, last first, so that
    an LRU cache does not evict them while they wait."""

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
    """A policy of that name for `cache`; raises `InvalidArgument`. Without a cache to rank by, lpm is fcfs."""
    if name not in POLICIES:
        raise InvalidArgument(f"queue_policy must be one of {', '.join(POLICIES)}, not {name!r}")
    if not cache.finds and name in ("lpm", "fcfs-retouch"):
        return fcfs
    return POLICIES[name]()
