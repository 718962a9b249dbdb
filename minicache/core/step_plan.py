"""The plan of one step: which tokens the model computes, and how the scheduler decides it.

Running requests come first, in order. Then waiting requests are admitted while the token budget lasts and the head of
the queue fits. Sources: those of `scheduler.py`.
"""

from dataclasses import dataclass, field

from minicache.core.events import AdmissionFailed, QueueReordered, RequestAdmitted
from minicache.core.hit_rate import AdmissionStats
from minicache.core.prefix_cache import Match
from minicache.core.queues import Queues
from minicache.core.request import Request, RequestStatus


@dataclass(frozen=True, slots=True)
class ScheduledRequest:
    """One request's part in a step: compute the KV of positions `[start, start + num_tokens)`, reading and writing
    through `block_table`.

    The block table is complete and valid for this step only, because a cache may rewrite it. If `samples`, the logits
    of the last position give the request's next token.
    """

    request: Request
    start: int
    num_tokens: int
    block_table: tuple[int, ...]
    samples: bool


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The work of one step, in batch order. Valid until `Scheduler.update`. Empty, and then false, if no request can
    compute anything.

    `admitted` counts the admissions of the step. `num_prefilled` counts the prompt tokens that it computes for requests
    that were never preempted. `newcomers` are the requests admitted for the first time. The scheduler counts these only
    if the step succeeds.
    """

    step: int
    scheduled: tuple[ScheduledRequest, ...]
    admitted: AdmissionStats = field(default_factory=AdmissionStats)
    num_prefilled: int = 0
    newcomers: tuple[Request, ...] = ()

    @property
    def num_tokens(self) -> int:
        """The number of tokens that the step computes."""
        return sum(item.num_tokens for item in self.scheduled)

    def __bool__(self) -> bool:
        return bool(self.scheduled)


class StepPlanner:
    """One call of `Scheduler.schedule()`: the plan as it grows, and the rest of the token budget."""

    def __init__(self, queues: Queues) -> None:
        self.queues = queues
        self.config = queues.config
        self.cache = queues.cache
        self.events = queues.events
        self.budget = self.config.max_num_batched_tokens
        self.items: dict[str, ScheduledRequest] = {}
        self.admitted = AdmissionStats()
        self.newcomers: list[Request] = []
        self.num_preempted = 0

    def plan(self) -> StepPlan:
        self._continue_running()
        if not self.num_preempted:  # a preemption has shown that there is no room
            self._admit_waiting()
        items = tuple(self.items.values())
        if not self.num_preempted and any(item.start >= item.request.num_prompt_tokens for item in items):
            self.queues.new_token_ratio = self.config.next_ratio(self.queues.new_token_ratio)
        return StepPlan(self.queues.step, items, self.admitted, self._num_prefilled(), tuple(self.newcomers))

    def _num_prefilled(self) -> int:
        """The number of prompt tokens that this step computes for requests that were never preempted."""
        return sum(
            min(item.num_tokens, max(0, item.request.num_prompt_tokens - item.start))
            for item in self.items.values()
            if not item.request.num_preemptions
        )

    def _share(self, num_missing: int) -> int:
        """The number of tokens that a request may compute in this step, of the `num_missing` that have no KV."""
        cap = self.config.long_prefill_token_threshold or num_missing
        return min(num_missing, cap, self.budget)

    # Running requests

    def _continue_running(self) -> None:
        for request in list(self.queues.running):
            if not self.budget:
                break
            if request.status is not RequestStatus.RUNNING:
                continue  # preempted in this step, to free blocks for a request before it
            count = self._share(request.num_tokens - request.num_computed_tokens)
            if self._make_room(request, count):
                self._schedule(request, count)
            elif self.config.victim != "least_output":
                break  # it preempted itself: vLLM leaves the rest of the running requests to the next step

    def _make_room(self, request: Request, count: int) -> bool:
        """Allocate blocks for `count` tokens, preempting requests until they fit. `False` if `request` itself was
        preempted."""
        while not self.cache.allocate(request, None, count):
            victim = self.config.choose_victim(self.queues.running)
            planned = self.items.pop(victim.id, None)
            if planned is not None:
                self.budget += planned.num_tokens
            front = self.config.preempted_to == "front"
            self.queues._preempt(victim, "no_free_block", front, needed_by=request.id)
            self.num_preempted += 1
            self.queues.new_token_ratio = self.config.ratio_after_preemption(self.queues.running)
            if victim is request:
                return False
        return True

    # Waiting requests

    def _admit_waiting(self) -> None:
        waiting = self.queues.waiting
        if not waiting:
            return
        before = list(waiting)
        self.queues.order(waiting, self.cache)
        if self.events and waiting != before:
            self.events.emit(QueueReordered(tuple(request.id for request in waiting)))
        while waiting and self.budget and len(self.queues.running) < self.config.max_num_seqs:
            if not self._admit(waiting[0]):
                break  # no request overtakes the head of the queue

    def _admit(self, request: Request) -> bool:
        match = self.cache.lookup(request)
        missing = request.num_tokens - match.num_tokens
        count = self._share(missing)
        needed = self._needed(request, match, count, missing)
        if needed > self.cache.num_free or not self.cache.allocate(request, match, count):
            if self.events:
                self.events.emit(AdmissionFailed(request.id, needed, self.cache.num_free))
            return False
        resumed = request.num_cached_tokens is not None
        self.admitted.record(request.num_tokens, match.num_tokens, resumed)
        if not resumed:
            self.newcomers.append(request)
            request.num_cached_tokens, request.match_end = match.num_tokens, match.end
        self.queues.waiting.remove(request)
        self.queues.running.append(request)
        self.queues.prefill_end[request.id] = request.num_tokens
        request.status = RequestStatus.RUNNING
        if self.events:
            self.events.emit(RequestAdmitted(request.id, match.num_tokens, count, resumed))
        self._schedule(request, count)
        return True

    def _needed(self, request: Request, match: Match, count: int, missing: int) -> int:
        """The number of blocks that must be free to admit the request, which computes `count` of its `missing` tokens
        in this step."""
        whole = self.config.admission != "first_chunk"
        demand = self.cache.demand(request, match, missing if whole else count)
        running = self.queues.running
        if not running:
            return demand  # a request that runs alone always fits, so no request waits for ever
        if self.config.admission != "output_reserve":
            return demand + int(self.config.watermark * (self.cache.capacity + 1))
        tokens = self.config.output_reserve(request, running, self.queues.new_token_ratio)
        # SGLang: tokens to compute + reserve + one block < free tokens. The comparison is strict, hence 1 + 1.
        return demand + tokens // self.cache.block_size + 1 + 1

    def _schedule(self, request: Request, count: int) -> None:
        start = request.num_computed_tokens
        end = start + count
        if self.config.publish_at == "schedule" and self.queues.publishes(request, start):
            self.cache.publish(request, end)
        self.items[request.id] = ScheduledRequest(
            request, start, count, tuple(request.block_table), samples=end == request.num_tokens
        )
        self.budget -= count
