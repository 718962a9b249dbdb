"""SGLang's radix cache, queue policies and admission on a CPU: modules of the released wheel over stubs."""

import importlib.machinery
import logging
import sys
import time
from array import array
from typing import Any
from unittest.mock import MagicMock

from tests.differential.stubs import Fields, stub

for _name in ("triton", "triton.language", "sgl_kernel"):
    _module: Any = MagicMock(name=_name)
    _module.__spec__, _module.__path__ = importlib.machinery.ModuleSpec(_name, None), []
    sys.modules[_name] = _module
logging.disable(logging.CRITICAL)  # it warns of settings that are stubs
MEMORY = "sglang.srt.mem_cache"
stub(
    "sglang",
    f"sglang sglang.srt {MEMORY} {MEMORY}.radix_cache {MEMORY}.base_prefix_cache {MEMORY}.evict_policy {MEMORY}.utils "
    f"{MEMORY}.events {MEMORY}.cache_init_params {MEMORY}.unified_cache {MEMORY}.unified_cache.component_type "
    f"{MEMORY}.common {MEMORY}.prefill_budget sglang.srt.disaggregation sglang.srt.disaggregation.kv_events "
    "sglang.srt.managers sglang.srt.managers.schedule_batch sglang.srt.managers.schedule_policy "
    "sglang.srt.managers.scheduler_components sglang.srt.managers.scheduler_components.new_token_ratio_tracker",
)

import sglang.srt.managers.schedule_batch as batch  # noqa: E402
import sglang.srt.managers.schedule_policy as policy  # noqa: E402
import sglang.srt.managers.scheduler_components.new_token_ratio_tracker as ratio  # noqa: E402
import sglang.srt.mem_cache.common as common  # noqa: E402
import sglang.srt.mem_cache.radix_cache as radix  # noqa: E402
import torch  # noqa: E402
from sglang.srt.mem_cache.base_prefix_cache import (  # noqa: E402
    EvictParams,
    InsertParams,
    MatchPrefixParams,
)
from sglang.srt.mem_cache.cache_init_params import CacheInitParams  # noqa: E402
from sglang.srt.mem_cache.prefill_budget import PrefillBudget  # noqa: E402

from minicache.core import Namespace, RadixCache, Request  # noqa: E402
from minicache.core.radix_tree import Node, RadixTree  # noqa: E402
from tests.differential.histories import Differs, same  # noqa: E402


class Clock:
    """Every look at it is later than the one before: recency never ties."""

    now = 0.0

    def monotonic(self) -> float:
        Clock.now += 1
        return Clock.now

    perf_counter = staticmethod(time.perf_counter)


RETRACT_DECODE_STEPS = 20  # SGLang's default
SETTINGS = Fields(radix_eviction_policy="lru")  # of the memory: the policies ask for the eviction strategy
radix.time = Clock()
common.envs.SGLANG_RADIX_FORCE_MISS.get = policy.envs.SGLANG_RADIX_FORCE_MISS.get = lambda: False
policy.envs.SGLANG_ENABLE_WAITING_PREFIX_REFRESH.get = lambda: True
policy.get_disagg = lambda: Fields(disaggregation_mode="null")
policy.get_memory = lambda: SETTINGS
policy.get_exec = lambda: Fields(features=Fields(enable_encoder_swa_bounded_replay=False))
policy.get_schedule = lambda: Fields(schedule_policy="fcfs")
policy._IS_HIP = False
policy._use_exact_chunk_fill = lambda: False
policy.mamba_prefill_chunk_grid = lambda: 1
policy.page_interleave_shard_size = common.page_interleave_shard_size = lambda allocator: 1
batch.get_schedule = lambda: Fields(retraction_policy="length")
ratio.envs.SGLANG_RETRACT_DECODE_STEPS.get = lambda: RETRACT_DECODE_STEPS
batch.get_serving = common.get_serving = lambda: Fields(strip_thinking_cache=False)
batch.SchedulerReqTimeStats = lambda **fields: MagicMock()
batch.Req.init_diffusion_llm = lambda self, config: None
batch.Req.is_dllm = lambda self: False
batch.Req.dllm_config = None
common.ceil_align = batch.ceil_align = radix.ceil_align = lambda number, to: -(-number // to) * to
common.get_spec = lambda: Fields(speculative_algorithm=None)


class Slots:
    """The slot allocator: it knows the free pages, and in which order pages were freed. Pages are taken as minicache's
    pool takes its blocks, so that both sides name the same ones."""

    device = "cpu"

    def __init__(self, page_size: int, free: set[int] | None = None) -> None:
        self.page_size, self.free_pages, self.freed = page_size, free or set(), list[int]()

    def free_segment(self, slots: Any, start_pos: int = 0) -> None:
        self.free_segments([(slots, start_pos)])

    def free_segments(self, segments: Any) -> None:
        for slots, start in segments:
            for index, slot in enumerate(slots.tolist()):
                if index and (start + index) % self.page_size:
                    continue
                page = slot // self.page_size
                if page in self.free_pages:
                    raise Differs(f"SGLang frees page {page} twice")
                self.free_pages.add(page)
                self.freed.append(page)

    def available_size(self) -> int:
        return len(self.free_pages) * self.page_size

    def create_prefill_budget(self, tree: Any, num_mixed_decode_tokens: int = 0) -> Any:
        return PrefillBudget(self, tree, num_mixed_decode_tokens=num_mixed_decode_tokens)

    def request_slot_reserve(self, **fields: Any) -> int:
        return 0


class Rows:
    """The table of slots, one row for each request."""

    def __init__(self, count: int = 64, width: int = 1024) -> None:
        self.req_to_token = torch.zeros((count, width), dtype=torch.int64)
        self.idle = list(range(count))

    def alloc(self, request: Any) -> None:
        request.kv.req_pool_idx = self.idle.pop()

    def write(self, at: Any, values: Any) -> None:
        self.req_to_token[at] = values

    def free(self, request: Any) -> None:
        self.idle.append(request.kv.req_pool_idx)
        request.kv.req_pool_idx = None


def tree(page_size: int, strategy: str, slots: Slots, rows: Rows | None = None) -> Any:
    real = radix.RadixCache(
        CacheInitParams(
            disable=False,
            req_to_token_pool=rows,
            token_to_kv_pool_allocator=slots,
            page_size=page_size,
            eviction_policy=strategy,
            eviction_policy_config=None,
            enable_kv_cache_events=False,
        )
    )
    real.supports_fast_match_prefix = lambda: False
    real.supports_prefix_sharing = lambda: True
    real.supports_mamba = lambda: False
    real.finish_storage_prefetch_admission = lambda *a, **more: None
    return real


def key(tokens: Any, extra_key: str | None, salt: str | None, limit: int | None = None) -> Any:
    return radix.RadixKey(array("q", tokens), extra_key, cache_salt=salt, limit=limit)


def insert(
    real: Any, tokens: Any, slots: list[int], extra_key: str | None, salt: str | None, priority: int, inserted: int
) -> int:
    """The tokens that were in the tree before."""
    value = torch.tensor(slots, dtype=torch.int64)
    params = InsertParams(key=key(tokens, extra_key, salt), value=value, priority=priority, inserted_len=inserted)
    return int(real.insert(params).prefix_len)


def match(real: Any, tokens: Any, extra_key: str | None, salt: str | None, limit: int | None = None) -> Any:
    """The tokens matched, their slots, and the node."""
    found = real.match_prefix(MatchPrefixParams(key=key(tokens, extra_key, salt, limit)))
    node = found.last_device_node
    return found.device_prefix_len, real.path_device_indices(node).tolist(), node


def evict(real: Any, num_tokens: int) -> int:
    return int(real.evict(EvictParams(num_tokens=num_tokens)).num_tokens_evicted)


def request(
    id: str, tokens: Any, extra_key: str | None, salt: str | None, priority: int, logprobs: int | None, max_tokens: int
) -> Any:
    params = Fields(max_new_tokens=max_tokens, custom_params=None, ignore_eos=False)
    real = batch.Req(
        id,
        "",
        array("q", tokens),
        params,
        return_logprob=logprobs is not None,
        extra_key=extra_key,
        cache_salt=salt,
        priority=priority,
    )
    real.logprob_start_len = -1 if logprobs is None else logprobs
    return real


def namespace(extra_key: str | None, salt: str | None) -> Namespace:
    return Namespace(extra=() if extra_key is None else (extra_key,), salt=salt)


def slots_of(blocks: list[int], page_size: int) -> list[int]:
    return [block * page_size + index for block in blocks for index in range(page_size)]


def pages_of(slots: list[int], page_size: int) -> list[int]:
    pages = [slot // page_size for slot in slots[::page_size]]
    same("slots are whole pages", slots, slots_of(pages, page_size)[: len(slots)])
    return pages


# Trees


def our_nodes(ours: RadixTree) -> list[tuple[Any, ...]]:
    """Every node, children in their order, parents first."""

    def below(node: Node, depth: int) -> Any:
        for child in node.children.values():
            space = child.namespace.extra[0] if child.namespace.extra else None, child.namespace.salt
            counts = child.lock_count, child.hit_count, child.priority, child.id in ours._evictable_leaves
            yield depth, list(child.tokens), list(child.blocks), *counts, space
            yield from below(child, depth + 1)

    return list(below(ours.root, 0))


def their_nodes(real: Any, page_size: int) -> list[tuple[Any, ...]]:
    def below(node: Any, depth: int) -> Any:
        for child in node.children.values():
            counts = child.lock_ref, child.hit_count, child.priority, child in real.evictable_leaves
            pages = pages_of(child.value.tolist(), page_size)
            space = child.key.extra_key, child.key.cache_salt
            yield depth, list(child.key.token_ids), pages, *counts, space
            yield from below(child, depth + 1)

    return list(below(real.root_node, 0))


def compare_trees(ours: RadixTree, real: Any, page_size: int) -> None:
    """Everything, but ticks: SGLang's clock is finer than ours, and may not run against it."""
    same("tree", our_nodes(ours), their_nodes(real, page_size))
    same("evictable", ours.num_evictable * page_size, real.evictable_size())
    same("protected", ours.num_protected * page_size, real.protected_size())
    same("size", ours.num_blocks * page_size, real.total_size())

    def pairs(one: Node, other: Any) -> Any:
        for a, b in zip(one.children.values(), other.children.values(), strict=True):
            yield a, b
            yield from pairs(a, b)

    nodes = list(pairs(ours.root, real.root_node))
    accesses = [tick for _, tick in sorted((b.last_access_time, a.last_access) for a, b in nodes)]
    creations = [tick for _, tick in sorted((b.creation_time, a.created) for a, b in nodes)]
    if accesses != sorted(accesses) or creations != sorted(creations):
        raise Differs(f"order of ticks: accesses {accesses}, creations {creations}, in SGLang's order")


class Caches:
    """`RadixCache` and SGLang's, over the same blocks, and the requests of both."""

    def __init__(self, num_blocks: int, page_size: int, strategy: str) -> None:
        Clock.now = 0.0
        self.size = page_size
        self.ours = RadixCache(num_blocks, page_size, strategy)
        self.slots, self.rows = Slots(page_size, set(range(1, num_blocks))), Rows()
        self.theirs = tree(page_size, strategy, self.slots, self.rows)
        self.requests: dict[str, tuple[Request, Any]] = {}

    def row(self, id: str) -> list[int]:
        """The blocks of SGLang's request."""
        kv = self.requests[id][1].kv
        if kv.req_pool_idx is None:
            return []
        return pages_of(self.rows.req_to_token[kv.req_pool_idx, : kv.kv_allocated_len].tolist(), self.size)

    def compare(self) -> None:
        compare_trees(self.ours.tree, self.theirs, self.size)
        same("free blocks", sorted(self.ours.pool.free_queue), sorted(self.slots.free_pages))
        same("room", self.ours.num_free * self.size, self.slots.available_size() + self.theirs.evictable_size())
        for id, (ours, _) in self.requests.items():
            same(f"blocks of {id}", list(ours.block_table), self.row(id))
        self.ours.check()

    def state(self) -> str:
        tables = {id: list(ours.block_table) for id, (ours, _) in self.requests.items()}
        rows = {id: self.row(id) for id in self.requests}
        theirs = their_nodes(self.theirs, self.size)
        return f"minicache {our_nodes(self.ours.tree)} {tables}\nSGLang    {theirs} {rows}"

    def queue_policy(self, name: str, strategy: str) -> Any:
        """SGLang's policy in the place of ours called `name`."""
        SETTINGS.radix_eviction_policy = strategy
        return policy.SchedulePolicy("lpm" if name == "lpm" else "fcfs", self.theirs, False, False, False)

    def order(self, queue_policy: Any, waiting: list[Any]) -> None:
        """Sort SGLang's waiting requests. Its lookups leave the last token out, as those of our policies do."""
        self.theirs.swa_reprefill_tail_tokens = lambda request: 1
        queue_policy.calc_priority(waiting)
        self.theirs.swa_reprefill_tail_tokens = lambda request: 0

    def make_room(self, num_tokens: int) -> bool:
        """SGLang's `evict_to_free_tokens`: evict what is short, and say whether there is room then."""
        short = num_tokens - self.slots.available_size()
        if short > 0:
            evict(self.theirs, short)
        return self.slots.available_size() >= num_tokens

    def start(self, id: str) -> None:
        """Give SGLang's request a row that begins with what it hit."""
        theirs = self.requests[id][1]
        self.rows.alloc(theirs)
        prefix = self.theirs.prefix_device_indices(theirs)
        self.rows.write((theirs.kv.req_pool_idx, slice(0, len(prefix))), prefix)
        theirs.kv.kv_allocated_len = theirs.kv.kv_committed_len = len(prefix)

    def take(self, id: str, blocks: list[int], end: int) -> None:
        """Give SGLang's request the very blocks that ours took; it has room for `end` tokens then."""
        kv = self.requests[id][1].kv
        if not set(blocks) <= self.slots.free_pages:
            raise Differs(f"minicache takes {blocks}, of which some are not free in SGLang")
        self.slots.free_pages -= set(blocks)
        first = -(-kv.kv_allocated_len // self.size) * self.size
        slots = slots_of(blocks, self.size)
        place = slice(first, first + len(slots))
        self.rows.write((kv.req_pool_idx, place), torch.tensor(slots, dtype=torch.int64))
        kv.kv_allocated_len = end

    def publish(self, id: str) -> None:
        """SGLang's side of `publish`."""
        theirs = self.requests[id][1]
        theirs.refresh_fill_ids()
        common.checkpoint_kv_cache(theirs, self.theirs)

    def release(self, id: str, publishes: bool) -> None:
        """SGLang's side of `release`, after a publication if `publishes`."""
        theirs = self.requests[id][1]
        if theirs.kv.holds_kv:
            common.release_kv_cache(theirs, self.theirs, checkpoint=publishes)
