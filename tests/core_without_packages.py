"""The core with nothing but the standard library: `python -I -S tests/core_without_packages.py`, from anywhere.

Imports every module of `minicache.core`, runs a small workload over each cache with `check()` after every call, and
fails if a module that is neither Python's nor the core's was imported.
"""

import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def import_core() -> list[str]:
    core = import_module("minicache.core")
    names = [f"minicache.core.{module.name}" for module in iter_modules(core.__path__)]
    for name in names:
        import_module(name)
    return names


def foreign_modules() -> list[str]:
    """Modules that are neither Python's nor the core's (`minicache` itself is its version number)."""
    ours = ("minicache.core",)
    return sorted(
        name
        for name in sys.modules
        if name not in ("__main__", "minicache")
        and not name.startswith(ours)
        and name.partition(".")[0] not in sys.stdlib_module_names
    )


def run_workload(cache) -> int:
    """Three requests, two with a shared prefix, one after the other, then eviction. Returns the hit tokens."""
    from minicache.core.request import Request

    hits = 0
    system_prompt = list(range(64))
    for number, question in enumerate(([100] * 9, [101] * 5, [100] * 9)):
        request = Request(f"request-{number}", system_prompt + question, max_tokens=4)
        match = cache.lookup(request)
        cache.check()
        hits += match.num_tokens
        assert cache.allocate(request, match, request.num_tokens - match.num_tokens), "the pool is large enough"
        cache.check()
        request.num_computed_tokens = request.num_tokens
        cache.publish(request, request.num_tokens)
        cache.check()
        cache.release(request)
        cache.check()
    cache.evict(2)
    cache.check()
    assert cache.num_free == cache.capacity, "every block came back"
    assert cache.reset(), "no request holds a block"
    cache.check()
    return hits


def run_scheduler(cache, config, events) -> str:
    """Three requests through the scheduler, with a view and a history. Returns why no more of the last one matched."""
    from minicache.core import Request, Scheduler
    from minicache.core.explain import explain
    from minicache.core.history import History
    from minicache.core.views import EngineView

    view = EngineView(cache.capacity + 1, cache.block_size)
    history = History()
    events.sinks += [view, lambda event: history.on(event, view)]
    scheduler = Scheduler(cache, config, events=events)
    for number, question in enumerate(([100] * 9, [101] * 5, [100] * 9)):
        scheduler.add(Request(f"request-{number}", list(range(64)) + question, max_tokens=4))
        while scheduler.has_unfinished:
            plan = scheduler.schedule()
            cache.check()
            scheduler.update(plan, {item.request.id: 7 for item in plan.scheduled if item.samples})
            cache.check()
            assert view.snapshot() == cache.snapshot(), "the view equals the snapshot"
            assert view.scheduler_snapshot() == scheduler.snapshot(), "the view equals the snapshot"
    assert cache.num_free == cache.capacity, "every block came back"
    return explain("request-2", history).reason


def main() -> int:
    modules = import_core()
    from minicache.core import HashChainCache, NoCache, RadixCache

    hits = {
        "HashChainCache, 16": run_workload(HashChainCache(40, block_size=16)),
        "RadixCache, 1": run_workload(RadixCache(400, block_size=1)),
        "RadixCache, 4": run_workload(RadixCache(100, block_size=4)),
        "NoCache, 16": run_workload(NoCache(40, block_size=16)),
    }
    expected = {"HashChainCache, 16": 64 + 64, "RadixCache, 1": 64 + 72, "RadixCache, 4": 64 + 72, "NoCache, 16": 0}
    assert hits == expected, f"hits {hits}, expected {expected}"
    from minicache.core import EventStream, SchedulerConfig

    events = EventStream()
    assert run_scheduler(HashChainCache(40, events=events), SchedulerConfig.vllm(), events) == "whole"
    events = EventStream()
    assert run_scheduler(RadixCache(400, events=events), SchedulerConfig.sglang(), events) == "last_token"
    foreign = foreign_modules()
    if foreign:
        print(f"the core imported more than the standard library: {', '.join(foreign)}", file=sys.stderr)
        return 1
    print(f"core alone: {len(modules)} modules, {len(hits)} caches, no package imported")
    return 0


if __name__ == "__main__":
    sys.exit(main())
