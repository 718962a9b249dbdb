"""The prefix caches and the scheduler. Standard library only.

Start with `request.py`, then `prefix_cache.py`, `block_pool.py` and `block_hash.py`. `hash_chain_cache.py` is vLLM's
cache and `radix_cache.py` SGLang's; `scheduler.py` drives either of them.
"""

from minicache.core.event_stream import EventStream
from minicache.core.hash_chain_cache import HashChainCache
from minicache.core.paged_cache import NoCache
from minicache.core.prefix_cache import CacheSnapshot, Match, PrefixCache
from minicache.core.radix_cache import RadixCache
from minicache.core.request import Adapter, Namespace, Request, RequestStatus
from minicache.core.scheduler import Scheduler
from minicache.core.scheduler_config import SchedulerConfig
from minicache.core.step_plan import ScheduledRequest, StepPlan

__all__ = [
    "Adapter",
    "CacheSnapshot",
    "EventStream",
    "HashChainCache",
    "Match",
    "Namespace",
    "NoCache",
    "PrefixCache",
    "RadixCache",
    "Request",
    "RequestStatus",
    "ScheduledRequest",
    "Scheduler",
    "SchedulerConfig",
    "StepPlan",
]
