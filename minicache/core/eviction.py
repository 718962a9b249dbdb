"""Eviction strategies: which leaf of the radix tree is evicted first.

A strategy maps a node to a key. The leaf with the smallest key is evicted first; of two equal keys, the leaf that was
used less recently, and then the older one. Source: SGLang 0.5.23, `sglang/srt/mem_cache/evict_policy.py`. (A hash chain
has only one order, that of its free queue.)
"""

from collections.abc import Callable
from typing import Protocol

from minicache.core.errors import InvalidArgument


class Evictable(Protocol):
    """What a strategy knows of a leaf: see `radix_tree.Node`."""

    id: int  # grows with each new node
    created: int
    last_access: int
    hit_count: int
    priority: int


Strategy = Callable[[Evictable], tuple[int, ...]]

SLRU_THRESHOLD = 2  # a node with this many hits or more belongs to the protected segment


def slru(threshold: int = SLRU_THRESHOLD) -> Strategy:
    """Segmented LRU: nodes with fewer than `threshold` hits are evicted before all others."""
    return lambda node: (int(node.hit_count >= threshold), node.last_access)


STRATEGIES: dict[str, Strategy] = {
    "lru": lambda node: (node.last_access,),
    "lfu": lambda node: (node.hit_count, node.last_access),
    "fifo": lambda node: (node.created,),
    "mru": lambda node: (-node.last_access, -node.id),
    "filo": lambda node: (-node.created,),
    "slru": slru(),
    "priority": lambda node: (node.priority, node.last_access),
}


def strategy_named(name: str) -> Strategy:
    """The strategy called `name`. Raises `InvalidArgument`, which lists the names, if it does not exist."""
    try:
        return STRATEGIES[name]
    except KeyError:
        raise InvalidArgument(f"strategy must be one of {', '.join(STRATEGIES)}, not {name!r}") from None
