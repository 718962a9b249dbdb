"""Part `admission`: `Scheduler` with the profile `sglang`, and SGLang's `PrefillAdder`, `SchedulePolicy` and ratio.

SGLang's scheduler itself needs its model runner and its processes. Its loop is followed here step by step (from
`scheduler.py`: `get_new_batch_prefill` and `update_running_batch`), with the real parts for every decision: the order
of the queue, who is admitted, the size of a chunk, what is reserved, who is retracted, what is evicted. After every
step the batch, both queues, the ratio, the counts of hits, the whole tree, the blocks of each request and the free
blocks are compared.

These deviations are played by both sides: a step holds decode and prefill, the requests that decode first; a prompt
that an earlier step has begun is not cut to the room left, and may be retracted; an abort of a request that decodes
releases it at once; no request is admitted that would not fit alone with its reserve.
"""

from random import Random
from typing import Any

from minicache.core import Request, Scheduler, SchedulerConfig
from tests.differential import sglang
from tests.differential.histories import DONE, Differs, Operation, Pair, Part, same
from tests.differential.stubs import Fields

LEAST_RATIO, DECAY_STEPS = 0.14, 600  # SGLang's defaults; the least as a fraction of the first
Batch = list[tuple[str, int]]


class Admissions(Pair):
    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings, self.size = settings, settings["block_size"]
        self.both = sglang.Caches(settings["num_blocks"], self.size, settings["strategy"])
        self.requests = self.both.requests
        self.ours = Scheduler(
            self.both.ours,
            SchedulerConfig.sglang(
                max_num_batched_tokens=settings["budget"],
                max_num_seqs=settings["max_seqs"],
                queue_policy=settings["policy"],
                new_token_ratio=settings["ratio"],
            ),
        )
        self.tokens = Random(settings["tokens"])
        # SGLang's side
        self.policy = self.both.queue_policy(settings["policy"], settings["strategy"])
        first, least = settings["ratio"], settings["ratio"] * LEAST_RATIO
        self.ratio = sglang.ratio.NewTokenRatioTracker(
            init=first, min=least, decay=(first - least) / DECAY_STEPS, current=first
        )
        self.waiting: list[str] = []
        self.running: list[str] = []
        self.prefill_end: dict[str, int] = {}
        self.is_full = False

    def state(self) -> str:
        queues = f"waiting {self.waiting}, running {self.running}, full {self.is_full}, ratio {self.ratio.current}"
        ours = f"{self.ours.snapshot()}, full {self.ours.desk.is_full}, ratio {self.ours.new_token_ratio}"
        return f"minicache {ours}\nSGLang    {queues}\n{self.both.state()}"

    def compare(self) -> None:
        same("waiting", [request.id for request in self.ours.waiting], self.waiting)
        same("running", [request.id for request in self.ours.running], self.running)
        if abs(self.ours.new_token_ratio - self.ratio.current) > 1e-9:
            raise Differs(f"ratio: minicache {self.ours.new_token_ratio}, the engine {self.ratio.current}")
        self.both.compare()

    # Operations

    def add(self, id: str, tokens: list[int], max_tokens: int) -> Any:
        if id in self.requests or len(tokens) + max_tokens + self.size >= self.both.ours.capacity * self.size:
            return False
        ours = Request(id, tokens, max_tokens)
        self.requests[id] = ours, sglang.request(id, tokens, None, None, 0, None, max_tokens)
        self.ours.add(ours)
        self.waiting.append(id)
        return True

    def abort(self, id: str) -> Any:
        if id not in self.requests:
            return False
        self.ours.abort(id)
        self._leave(id, publishes=id in self.running and self._decodes(id))
        DONE["aborts"] += 1
        return True

    def step(self) -> bool:
        before = {id: len(ours.block_table) for id, (ours, _) in self.requests.items()}
        plan = self.ours.schedule()
        batch = [(item.request.id, item.num_tokens) for item in plan.scheduled]
        counted = self._follow(batch, before)
        if counted is not None:
            same("counts of hits", (plan.num_prefilled, plan.admitted.hits), counted)
        DONE["steps"] += 1
        DONE["hit tokens"] += plan.admitted.hits
        tokens = {item.request.id: self.tokens.choice((0, 1, 1, 2)) for item in plan.scheduled if item.samples}
        self.ours.update(plan, tokens)
        for id, count in batch:
            self._computed(id, count, tokens.get(id))
        if not self.requests:
            self.ratio.reset()
        return bool(batch)

    def end(self) -> None:
        while self.requests:
            if not self.step():
                raise Differs(f"stuck: nothing is scheduled for {list(self.requests)}")
            self.compare()

    # SGLang's side

    def _theirs(self, id: str) -> Any:
        return self.requests[id][1]

    def _length(self, id: str) -> int:
        """The tokens of SGLang's request."""
        return len(self._theirs(id).origin_input_ids) + len(self._theirs(id).output_ids)

    def _decodes(self, id: str) -> bool:
        return bool(self._theirs(id).kv.kv_committed_len >= self.prefill_end[id])

    def _follow(self, batch: Batch, held: dict[str, int]) -> tuple[int, int] | None:
        """Plan SGLang's step. `batch` is ours, which must come out; `held` counts the blocks of each request before.

        Returns the prompt tokens computed and hit in it, by requests that were never retracted; `None` after a
        retraction, when a chunk of ours goes on and SGLang would only decode."""
        decoding, chunks, budget, num_retracted = self._retract_until_the_rest_fits(held)
        if decoding and not num_retracted:
            self.ratio.decay_step()
        self.both.make_room(len(decoding) * self.size)
        self._take(decoding, held)
        newcomers, counted = ([], None) if num_retracted else self._admit(decoding, chunks, budget)
        prefill = [*chunks, *newcomers]
        same("batch", batch, [*decoding, *prefill])
        spare = len(prefill) * self.size if self.size > 1 else 0
        if prefill:
            self.both.make_room(sum(count for _, count in prefill) + spare)
        for id, _ in newcomers:
            self.both.start(id)
            held[id] = len(self.both.row(id))
        self._take(prefill, held)
        return counted

    def _retract_until_the_rest_fits(self, held: dict[str, int]) -> tuple[Batch, Batch, int, int]:
        num_retracted = 0
        while True:
            budget = self.settings["budget"]
            decoding = [(id, 1) for id in self.running if self._decodes(id)][:budget]
            budget -= len(decoding)
            chunks: Batch = []
            for id in self.running:
                if budget > 0 and not self._decodes(id):
                    chunks.append((id, min(budget, self._length(id) - self._theirs(id).kv.kv_committed_len)))
                    budget -= -(-chunks[-1][1] // self.size) * self.size
            pages = sum(self._pages(id, count) - held[id] for id, count in [*decoding, *chunks])
            if self.both.make_room(pages * self.size):
                break
            reals = [self._theirs(id) for id in self.running]
            victim = self.running[sglang.batch.ScheduleBatch._get_decode_retraction_order(reals)[-1]]
            self._retract(victim)
            held[victim] = 0
            num_retracted += 1
        if num_retracted:
            self.ratio.current = self.ratio.estimate_new_token_ratio_after_retract(
                [self._theirs(id) for id in self.running]
            )
        return decoding, chunks, budget, num_retracted

    def _pages(self, id: str, count: int) -> int:
        """The pages that the request needs for `count` tokens more, those that it holds included."""
        return int(-(-(self._theirs(id).kv.kv_committed_len + count) // self.size))

    def _retract(self, id: str) -> None:
        real = self._theirs(id)
        self.running.remove(id)
        self.waiting.append(id)
        self.is_full = False
        self.both.release(id, publishes=False)
        self.both.make_room(len(self.running) * sglang.RETRACT_DECODE_STEPS)
        real.reset_for_retract()
        real.kv.kv_committed_len = 0
        DONE["retractions"] += 1

    def _admit(self, decoding: Batch, chunks: Batch, budget: int) -> tuple[Batch, tuple[int, int]]:
        """`get_new_batch_prefill`: the newcomers, and the tokens computed and hit. `chunks` are the prompts begun
        earlier: none or one."""
        if (self.is_full or not self.waiting) and not chunks:
            return [], (0, 0)
        if len(self.running) >= self.settings["max_seqs"] and not chunks:
            self.is_full = True
            return [], (0, 0)
        self._order()
        rest = budget + sum(-(-count // self.size) * self.size for _, count in chunks)
        batch = Fields(reqs=[self._theirs(id) for id, _ in decoding])
        adder = sglang.policy.PrefillAdder(
            self.size, self.both.theirs, self.both.slots, batch, self.ratio.current, 10**9, rest
        )
        adder.memory_budget.available_chunk_tokens = lambda limit: limit
        for id, count in chunks:
            self._theirs(id).init_next_round_input()
            adder.add_chunked_req(self._theirs(id))
            same("size of a later chunk", count, self._theirs(id).extend_len)
        result = sglang.policy.AddReqResult
        newcomers: Batch = []
        for id in list(self.waiting):
            real = self._theirs(id)
            if adder.budget_state() == result.OTHER:
                break
            if len(self.running) >= self.settings["max_seqs"]:
                self.is_full = True
            if self.is_full:
                break
            real.init_next_round_input(self.both.theirs, cow_mamba=False)
            answer = adder.add_one_req(real, bool(chunks), None)
            if adder.can_run_list and adder.can_run_list[-1] is real:
                newcomers.append((id, int(real.extend_end - real.prefix_len)))
                self.waiting.remove(id)
                self.running.append(id)
                self.prefill_end[id] = self._length(id)
                DONE["admissions"] += 1
                DONE["chunks"] += real.extend_end < self._length(id)
            if answer != result.CONTINUE:
                if answer == result.NO_TOKEN:
                    self.is_full = bool(adder.can_run_list or decoding)
                    DONE["refusals"] += 1
                break
        computed = adder.log_input_tokens - adder.reprocessed_log_input_tokens
        return newcomers, (computed, adder.log_hit_tokens - adder.reprocessed_log_hit_tokens)

    def _order(self) -> None:
        reals = [self._theirs(id) for id in self.waiting]
        self.both.order(self.policy, reals)
        self.waiting = [real.rid for real in reals]

    def _take(self, items: Batch, held: dict[str, int]) -> None:
        for id, count in items:
            ours, real = self.requests[id]
            blocks = ours.block_table[held[id] : self._pages(id, count)]
            self.both.take(id, blocks, real.kv.kv_committed_len + count)

    def _computed(self, id: str, count: int, token: int | None) -> None:
        real = self._theirs(id)
        is_prefill = not self._decodes(id)
        real.kv.kv_committed_len += count
        real.extend_end = real.kv.kv_committed_len
        if is_prefill:
            self.both.publish(id)
        if token is None:
            return
        real.output_ids.append(token)
        if len(real.output_ids) >= real.sampling_params.max_new_tokens:
            real.finished_reason = "length"
            self._leave(id, publishes=True)

    def _leave(self, id: str, publishes: bool) -> None:
        if id in self.running:
            self.running.remove(id)
            self.is_full = False
            self.both.release(id, publishes)
        else:
            self.waiting.remove(id)
        del self.requests[id]
        if not self.requests:
            self.ratio.reset()


def draw(random: Random) -> tuple[dict[str, Any], list[Operation]]:
    size = random.choice([1, 1, 1, 2, 4])
    num_blocks = random.choice([12, 20, 40, 80])
    room = (num_blocks - 1) * size
    settings = {
        "block_size": size,
        "num_blocks": num_blocks,
        "strategy": random.choice(["lru", "lru", "lru", "lfu", "fifo", "mru"]),
        "policy": random.choice(["fcfs-retouch", "fcfs-retouch", "lpm"]),
        "budget": random.choice([size, 5, 9, 20, 64, 1000]),
        "max_seqs": random.choice([1, 2, 3, 6, 60]),
        "ratio": random.choice([0.0, 0.0, 0.1, 0.3, 0.7]),
        "tokens": random.randrange(10**6),
    }
    settings["budget"] = max(settings["budget"], size)
    alphabet = random.choice([1, 2, 2, 3])
    longest = max(1, min(room * 2 // 3, random.choice([6, 20, 90])))
    bases = [[random.randrange(alphabet) for _ in range(longest)] for _ in range(random.randint(1, 3))]
    operations: list[Operation] = []
    live: list[str] = []
    for number in range(random.choice([10, 25, 50])):
        kind = random.choices(["add", "step", "abort"], [10, 22, 1.2])[0]
        if kind == "add":
            base = random.choice(bases)
            tail = [random.randrange(alphabet) for _ in range(random.randint(0, 2 * size + 2))]
            live.append(f"r{number}")
            tokens = (base[: random.randint(0, len(base))] + tail) or [0]
            operations.append(("add", live[-1], tokens, random.choice([1, 2, 5, 12, 30, 30])))
        elif kind == "abort" and live:
            operations.append(("abort", live.pop(random.randrange(len(live)))))
        elif kind == "step":
            operations += [("step",)] * random.randint(1, 4)
    return settings, operations


PART = Part("admission", draw, Admissions)
