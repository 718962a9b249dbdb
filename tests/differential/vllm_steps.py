"""Part `scheduler`: `Scheduler` with the profile `vllm`, and vLLM's `Scheduler`.

After every step the batch in order, its block tables, both queues, computed lengths, preemptions, the free queue, the
reference counts, the hashes and the counts of the hit rate are compared. The deviation of `hash_chain.py` is played
here, too: just before vLLM preempts a request, it is told to evict what that request published and never computed.
"""

from random import Random
from typing import Any

from minicache.core import HashChainCache, Namespace, Request, Scheduler, SchedulerConfig
from minicache.core.hit_rate import RecentHitRate
from tests.differential import vllm
from tests.differential.histories import DONE, Differs, Operation, Pair, Part, same

WINDOW = 7  # requests that the hit rate looks back on


class Schedulers(Pair):
    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings, self.size = settings, settings["block_size"]
        self.cache = HashChainCache(settings["num_blocks"], self.size)
        self.ours = Scheduler(
            self.cache,
            SchedulerConfig.vllm(
                max_num_batched_tokens=settings["budget"],
                max_num_seqs=settings["max_seqs"],
                long_prefill_token_threshold=settings["threshold"],
                queue_policy="priority" if settings["by_priority"] else "fcfs",
                watermark=settings["watermark"],
                admission="full_sequence" if settings["whole"] else "first_chunk",
            ),
        )
        self.ours.recent_hit_rate = RecentHitRate(WINDOW)
        self.window = vllm.CachingMetrics(WINDOW)
        names = ("budget", "max_seqs", "threshold", "watermark", "whole", "by_priority")
        self.theirs = vllm.scheduler(settings["num_blocks"], self.size, **{name: settings[name] for name in names})
        self.hasher = vllm.utils.get_request_block_hasher(self.size, vllm.sha256_cbor)
        self.tokens = Random(settings["tokens"])
        self.requests: dict[str, tuple[Request, Any]] = {}
        self._unpublish_at_preemption()

    def _unpublish_at_preemption(self) -> None:
        preempt, kept = self.theirs._preempt_request, self.theirs.kv_cache_manager
        manager = kept.coordinator.single_type_managers[0]

        def deviate(request: Any, *args: Any, **more: Any) -> Any:
            table, end = manager.req_to_blocks[request.request_id], manager.num_cached_block.get(request.request_id, 0)
            uncomputed = table[request.num_computed_tokens // self.size : end]
            if gone := {block.block_id for block in uncomputed if block.block_hash}:
                DONE["unpublished blocks"] += len(gone)
                kept.evict_blocks(gone)
            return preempt(request, *args, **more)

        self.theirs._preempt_request = deviate

    # Both states

    def our_state(self) -> dict[str, Any]:
        if self.settings["by_priority"]:  # ours is sorted when requests are admitted, vLLM's queue always
            self.ours.desk.sort_waiting()
        ours = {id: pair[0] for id, pair in self.requests.items()}
        return {
            "running": [request.id for request in self.ours.running],
            "waiting": [request.id for request in self.ours.waiting],
            "tables": {id: list(request.block_table) for id, request in ours.items()},
            "computed": {id: request.num_computed_tokens for id, request in ours.items()},
            "tokens": {id: request.num_tokens for id, request in ours.items()},
            "preemptions": {id: request.num_preemptions for id, request in ours.items()},
            "queue": list(self.cache.pool.free_queue),
            "references": [block.ref_count for block in self.cache.pool.blocks[1:]],
            "hashes": [block.hash for block in self.cache.pool.blocks[1:]],
        }

    def their_state(self) -> dict[str, Any]:
        theirs, kept = {id: pair[1] for id, pair in self.requests.items()}, self.theirs.kv_cache_manager
        blocks = kept.block_pool.blocks[1:]
        return {
            "running": [request.request_id for request in self.theirs.running],
            "waiting": [request.request_id for request in self.theirs.waiting],
            "tables": {id: kept.get_block_ids(id)[0] for id in theirs},
            "computed": {id: request.num_computed_tokens for id, request in theirs.items()},
            "tokens": {id: request.num_tokens for id, request in theirs.items()},
            "preemptions": {id: request.num_preemptions for id, request in theirs.items()},
            "queue": vllm.free_queue(kept),
            "references": [block.ref_cnt for block in blocks],
            "hashes": [bytes(block.block_hash[:-4]) if block.block_hash else None for block in blocks],
        }

    def state(self) -> str:
        return f"minicache {self.our_state()}\nvLLM      {self.their_state()}"

    def compare(self) -> None:
        ours, theirs = self.our_state(), self.their_state()
        for what, value in ours.items():
            same(what, value, theirs[what])
        self.cache.check()

    # Operations

    def add(
        self, id: str, tokens: list[int], max_tokens: int, salt: str | None, skips: bool, priority: int, arrival: float
    ) -> Any:
        needed = -(-(len(tokens) + max_tokens - 1) // self.size)
        if id in self.requests or needed > self.cache.capacity:
            return False
        ours = Request(
            id,
            tokens,
            max_tokens,
            namespace=Namespace(salt=salt),
            priority=priority,
            arrival=arrival,
            skip_cache_read=skips,
            stop_tokens=(vllm.STOP,),
        )
        theirs = vllm.scheduler_request(id, tokens, max_tokens, salt, skips, priority, arrival, self.hasher)
        self.requests[id] = ours, theirs
        self.ours.add(ours)
        self.theirs.add_request(theirs)
        return True

    def step(self, abort: int | None = None) -> bool:
        """One step; `abort`: the number of the request in the batch that is aborted while the model runs."""
        before = sum(ours.num_preemptions for ours, _ in self.requests.values())
        plan, output = self.ours.schedule(), self.theirs.schedule()
        batch = [(item.request.id, item.num_tokens) for item in plan.scheduled]
        same("batch", batch, list(output.num_scheduled_tokens.items()))
        kept = self.theirs.kv_cache_manager
        tables = {item.request.id: list(item.block_table) for item in plan.scheduled}
        same("tables of the batch", tables, {id: kept.get_block_ids(id)[0] for id, _ in batch})
        stats = self._compare_counts(plan.admitted, kept.make_prefix_cache_stats())
        DONE["steps"] += 1
        DONE["preemptions"] += sum(ours.num_preemptions for ours, _ in self.requests.values()) - before
        samples = {item.request.id for item in plan.scheduled if item.samples}
        tokens = {id: self.tokens.choice((0, 0, 0, 0, 1, 1, 1, 1, 2, 2, vllm.STOP)) for id in sorted(samples)}
        aborted = batch[abort % len(batch)][0] if batch and abort is not None else None
        if aborted:
            self.ours.abort(aborted)
            DONE["aborts"] += 1
        finished = self.ours.update(plan, tokens)
        self._compare_hit_rate(stats)
        sampled = []
        for id, _ in batch:
            theirs = self.requests[id][1]
            is_done = theirs.num_computed_tokens >= theirs.num_tokens
            same(f"whether {id} samples", id in samples, is_done)
            sampled.append([tokens[id]] if is_done and id != aborted else [])
        self.theirs.update_from_output(output, vllm.step_result([id for id, _ in batch], sampled))
        if aborted:
            self.theirs.finish_requests(aborted, vllm.RequestStatus.FINISHED_ABORTED)
            del self.requests[aborted]
        gone = sorted(id for id, (_, theirs) in self.requests.items() if theirs.is_finished())
        same("finished", sorted(request.id for request in finished), gone)
        for id in gone:
            del self.requests[id]
        return bool(batch)

    def _compare_counts(self, ours: Any, theirs: Any) -> Any:
        names = ("requests", "queries", "hits", "preempted_requests", "preempted_queries", "preempted_hits")
        same("counts", [getattr(ours, name) for name in names], [getattr(theirs, name) for name in names])
        for id, (request, real) in self.requests.items():
            if request.num_cached_tokens is not None and real.prefill_stats is not None:
                same(f"cached tokens of {id}", request.num_cached_tokens, real.prefill_stats.num_cached_tokens)
        DONE["admissions"] += ours.requests + ours.preempted_requests
        DONE["hit tokens"] += ours.hits + ours.preempted_hits
        return theirs

    def _compare_hit_rate(self, stats: Any) -> None:
        self.window.observe(stats)
        ours, theirs = self.ours.recent_hit_rate, self.window
        counted = theirs.aggregated_requests, theirs.aggregated_query_total, theirs.aggregated_query_hit
        same("recent hit rate", (ours.requests, ours.queries, ours.hits), counted)

    def abort(self, id: str) -> Any:
        if id not in self.requests:
            return False
        self.ours.abort(id)
        self.theirs.finish_requests(id, vllm.RequestStatus.FINISHED_ABORTED)
        del self.requests[id]
        DONE["aborts"] += 1
        return True

    def reset(self, running: bool) -> Any:
        theirs = self.theirs.reset_prefix_cache(reset_running_requests=running)
        same("reset", self.ours.reset_cache(preempt_running=running), theirs)
        return True

    def end(self) -> None:
        while self.requests:
            if not self.step():
                raise Differs(f"stuck: nothing is scheduled for {list(self.requests)}")
            self.compare()


def draw(random: Random) -> tuple[dict[str, Any], list[Operation]]:
    size, num_blocks = random.choice([1, 2, 3, 4, 16]), random.choice([5, 8, 10, 12, 16, 20, 40])
    settings = {
        "block_size": size,
        "num_blocks": num_blocks,
        "budget": random.choice([2, 5, 9, 20, 64, 1000]),
        "max_seqs": random.choice([1, 2, 3, 6, 100]),
        "threshold": random.choice([0, 0, 0, 3, 10]),
        "watermark": random.choice([0.0, 0.0, 0.1, 0.25]),
        "whole": random.random() < 0.5,
        "by_priority": random.random() < 0.4,
        "tokens": random.randrange(10**6),
    }
    skips = random.random() < 0.5
    longest = max(1, min((num_blocks - 1) * size, 90) * 2 // 3)
    bases = [[random.randrange(2) for _ in range(longest)] for _ in range(random.randint(1, 3))]
    operations: list[Operation] = []
    live: list[str] = []
    for number in range(random.choice([10, 25, 50])):
        kind = random.choices(["add", "step", "abort", "reset"], [10, 22, 1.2, 0.5])[0]
        if kind == "add":
            base = random.choice(bases)
            tail = [random.randrange(2) for _ in range(random.randint(0, 2 * size))]
            tokens = (base[: random.randint(0, len(base))] + tail) or [0]
            live.append(f"{random.choice('rst')}{number:02}")
            operations.append(
                (
                    "add",
                    live[-1],
                    tokens,
                    random.choice([1, 2, 5, 12, 30, 30]),
                    random.choice([None] * 6 + ["a"]),
                    skips and random.random() < 0.15,
                    random.choice([0, 0, 1, 2]),
                    float(number) if random.random() < 0.9 else 0.0,
                )
            )
        elif kind == "abort" and live:
            operations.append(("abort", live.pop(random.randrange(len(live)))))
        elif kind == "reset":
            operations.append(("reset", random.random() < 0.6))
        elif kind == "step":
            operations += [("step",)] * random.randint(1, 4)
            if random.random() < 0.04:
                operations.append(("step", random.randrange(5)))
    return settings, operations


PART = Part("scheduler", draw, Schedulers)
