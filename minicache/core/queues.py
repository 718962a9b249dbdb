"""The desk: the waiting and the running requests, and the books of the step that is being planned.

    add --> waiting --admit--> running --leave--> finished or aborted
               ^                  |
               +------preempt-----+

`planner.py` decides which requests are admitted, compute and are preempted. It says so by calling the verbs of the
desk, which keep the queues and the books in order and emit the events.
"""

from minicache.core.event_stream import EventStream
from minicache.core.events import (
    AdmissionFailed,
    PreemptionCause,
    QueueReordered,
    RequestAdmitted,
    RequestPreempted,
)
from minicache.core.hit_rate import AdmissionStats
from minicache.core.output_reserve import OutputReserve
from minicache.core.prefix_cache import Match, PrefixCache
from minicache.core.queue_policy import policy_named
from minicache.core.request import Request, RequestStatus
from minicache.core.scheduler_config import SchedulerConfig
from minicache.core.step_plan import ScheduledRequest, StepPlan


class Desk:
    """The queues over one cache, and the plan of the current step as it grows.

    `waiting` starts with the next request to be admitted, `running` with the request admitted first. `prefill_end` maps
    each running request to its length at its latest admission: it decodes from this position on. `is_full` is set by a
    planner that admits no request until a running one leaves. `num_preempted` counts the preemptions of this step.
    Raises `InvalidArgument` if `cache` cannot follow `config`.
    """

    def __init__(self, cache: PrefixCache, config: SchedulerConfig, events: EventStream) -> None:
        config.require_possible_with(cache)
        self.cache = cache
        self.config = config
        self.events = events
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.prefill_end: dict[str, int] = {}
        self.is_full = False
        self.reserve = OutputReserve(config.new_token_ratio)
        self.order = policy_named(config.queue_policy, cache)
        self.begin_step(0)

    # The books of a step

    def begin_step(self, step: int) -> None:
        """Open the books of step number `step`."""
        self.step = step
        self.num_preempted = 0
        self._work: dict[str, ScheduledRequest] = {}
        self._admitted = AdmissionStats()
        self._newcomers: list[Request] = []

    def plan(self) -> StepPlan:
        """The step as planned so far. Pure."""
        work = tuple(self._work.values())
        return StepPlan(
            self.step,
            work,
            self._admitted,
            any(not self.is_decoding(item.request) for item in work),
            sum(self._num_prefilled(item) for item in work),
            tuple(self._newcomers),
        )

    def is_decoding(self, request: Request) -> bool:
        """Whether a request runs and has computed all tokens that it had when it was admitted. Pure."""
        end = self.prefill_end.get(request.id)
        return end is not None and request.num_computed_tokens >= end

    def _num_prefilled(self, item: ScheduledRequest) -> int:
        request = item.request
        return 0 if request.num_preemptions else min(item.num_tokens, max(0, request.num_prompt_tokens - item.start))

    def publishes(self, request: Request, start: int) -> bool:
        """Whether the request's tokens from position `start` on are published now: always during prefill, and during
        decode if `publish_outputs` is `as_filled`. Pure."""
        return start < self.prefill_end[request.id] or self.config.publish_outputs == "as_filled"

    # The verbs of a planner

    def sort_waiting(self) -> None:
        """Let the queue policy order the waiting requests. The cache-aware policies look them up."""
        before = list(self.waiting)
        self.order(self.waiting, self.cache)
        if self.events and self.waiting != before:
            self.events.emit(QueueReordered(tuple(request.id for request in self.waiting)))

    def admit(self, request: Request, match: Match, num_tokens: int) -> None:
        """Move a waiting request, whose `match` the cache has adopted, to the running ones. It will compute
        `num_tokens` tokens in this step."""
        resumed = request.num_cached_tokens is not None
        if match.num_tokens or match.end != "skipped":  # a request that reads nothing asks nothing
            self._admitted.record(request.num_tokens, match.num_tokens, resumed)
        if not resumed:
            self._newcomers.append(request)
            request.num_cached_tokens, request.match_end = match.num_tokens, match.end
        self.waiting.remove(request)
        self.running.append(request)
        self.prefill_end[request.id] = request.num_tokens
        request.status = RequestStatus.RUNNING
        if self.events:
            self.events.emit(RequestAdmitted(request.id, match.num_tokens, num_tokens, resumed))

    def refuse(self, request: Request, needed: int) -> None:
        """Leave a request waiting, because it needs `needed` free blocks and fewer are free."""
        if self.events:
            self.events.emit(AdmissionFailed(request.id, needed, self.cache.num_free))

    def compute(self, request: Request, num_tokens: int) -> None:
        """Let a running request compute its next `num_tokens` tokens, for which it holds blocks. Tokens are published
        here if `publish_at` is `schedule`."""
        start = request.num_computed_tokens
        end = start + num_tokens
        if self.config.publish_at == "schedule" and self.publishes(request, start):
            self.cache.publish(request, end)
        self._work[request.id] = ScheduledRequest(
            request, start, num_tokens, tuple(request.block_table), samples=end == request.num_tokens
        )

    def preempt(
        self,
        request: Request,
        needed_by: str | None = None,
        *,
        cause: PreemptionCause = "no_free_block",
        front: bool | None = None,
        error: str | None = None,
    ) -> int:
        """Release a running request's blocks and put it back into the queue, at the front or at the back (`None`: as
        `preempted_to` says). When it is admitted again, it computes the tokens that it cannot hit. `cause`, `needed_by`
        and `error` are those of `RequestPreempted`.

        Returns the number of tokens that it was to compute in this step, which another request may compute now.
        """
        if front is None:
            front = self.config.preempted_to == "front"
        self.running.remove(request)
        del self.prefill_end[request.id]
        request.status = RequestStatus.PREEMPTED
        request.num_preemptions += 1
        self.waiting.insert(0 if front else len(self.waiting), request)
        self.num_preempted += 1
        self.is_full = False
        planned = self._work.pop(request.id, None)
        if self.events:
            self.events.emit(RequestPreempted(request.id, front, cause, needed_by, error))
        self.cache.release(request)
        request.num_computed_tokens = 0
        return planned.num_tokens if planned else 0

    # Other verbs

    def leave(self, request: Request) -> None:
        """Take a request, waiting or running, out of its queue for ever. The caller releases its blocks."""
        if request.status is RequestStatus.RUNNING:
            self.running.remove(request)
            self.is_full = False
        else:
            self.waiting.remove(request)
        self.prefill_end.pop(request.id, None)
        if not (self.running or self.waiting):
            self.reserve.reset()
