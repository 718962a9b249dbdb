"""Caches and trees that are checked after every public call.

After each call, `check()` recounts everything; a view that has seen nothing but the events must equal the snapshot;
and a call that promises to change nothing is held to it.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from minicache.core import CacheSnapshot, RadixCache
from minicache.core.paged_cache import PagedCache
from minicache.core.radix_tree import Node, RadixTree
from minicache.core.views import CacheView

Cache = TypeVar("Cache", bound=PagedCache)

CACHE_CALLS = ("lookup", "demand", "allocate", "publish", "release", "make_room", "evict", "reset", "snapshot")
TREE_CALLS = ("match", "insert", "lock", "unlock", "evict", "clear")


def checked(cache: Cache) -> Cache:
    """The same cache, which must be empty; its methods check it from now on. It keeps its type: schedulers ask."""
    snapshot, check = cache.snapshot, cache.check
    view = CacheView(cache.pool.num_blocks, cache.block_size)
    cache.events.sinks.append(view)

    def verify(name: str, before: CacheSnapshot, result: Any) -> None:
        check()
        now = snapshot()
        assert view.snapshot() == now, f"the view differs from the state after {name}()"
        if _promises_nothing_changed(cache, name, result):
            assert now == before, f"{name}() has changed the cache"

    _wrap(cache, CACHE_CALLS, snapshot, verify)
    return cache


def _promises_nothing_changed(cache: PagedCache, name: str, result: Any) -> bool:
    if name == "lookup":
        return not isinstance(cache, RadixCache)
    if name == "make_room":
        return False  # even in vain, it has evicted all that can be evicted
    return name in ("demand", "snapshot") or result is False  # what did not fit, or may not be reset


def checked_tree(tree: RadixTree) -> RadixTree:
    """The same tree, which must be empty; its methods check it from now on, knowing every lock that was taken."""
    locked: list[Node] = []

    def verify(name: str, _: None, result: Any, *args: Any) -> None:
        if name == "lock":
            locked.append(args[0])
        elif name == "unlock":
            locked.remove(args[0])
        elif name == "clear":
            locked.clear()
        tree.check(locked)

    _wrap(tree, TREE_CALLS, lambda: None, verify, pass_arguments=True)
    return tree


def _wrap(
    target: object,
    names: Sequence[str],
    before: Callable[[], Any],
    verify: Callable[..., None],
    pass_arguments: bool = False,
) -> None:
    """Replace methods of one object. Calls that they make among each other are not public, so they are let be."""
    inside = False

    def wrap(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside:
                return method(*args, **kwargs)
            inside, state = True, before()
            try:
                result = method(*args, **kwargs)
                verify(name, state, result, *(args if pass_arguments else ()))
            finally:
                inside = False
            return result

        return call

    for name in names:
        setattr(target, name, wrap(name, getattr(target, name)))
