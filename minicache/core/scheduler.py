"""The scheduler: which requests compute how many tokens in this step.

Prefill and decode are not separate phases. Every request has tokens, and the first of them have KV; each step gives
each request a share of one token budget to compute the KV of the next ones. Running requests come first, then waiting
requests are admitted. A waiting request that does not fit waits on. If a running request does not fit, a running
request gives up its KV and waits again (preemption).

    schedule() -> StepPlan --> (the model runs) --> update(plan, sampled)

*When* KV becomes findable is the main difference between the engines, so it is a setting: see `SchedulerConfig`.
Sources: vLLM 0.33, `vllm/v1/core/sched/scheduler.py`; SGLang 0.5.23, `sglang/srt/managers/schedule_batch.py`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from minicache.core.errors import InvalidArgument, RequestTooLong, UnknownRequest
from minicache.core.event_stream import EventStream
from minicache.core.events import (
    RequestAborted,
    RequestArrived,
    RequestFinished,
    RequestRejected,
    StepFinished,
    StepStarted,
    TokensComputed,
    TokensSampled,
)
from minicache.core.hit_rate import LastPrefillHitRate, RecentHitRate
from minicache.core.output_reserve import OutputReserve
from minicache.core.planner import plan_step
from minicache.core.prefix_cache import PrefixCache
from minicache.core.queue_policy import policy_named
from minicache.core.queues import Desk
from minicache.core.request import Request, RequestStatus, token_array
from minicache.core.scheduler_config import SchedulerConfig
from minicache.core.step_plan import ScheduledRequest, StepPlan


@dataclass(frozen=True, slots=True)
class SchedulerSnapshot:
    """The state of a scheduler, as a copy. `waiting` and `running` are in order. `status` and `lengths` have an entry
    for each request that has not ended; a length is (tokens, computed tokens, preemptions)."""

    step: int
    waiting: tuple[str, ...]
    running: tuple[str, ...]
    status: dict[str, str]
    lengths: dict[str, tuple[int, int, int]]


class Scheduler:
    """Schedules requests over one cache, as vLLM or as SGLang does, depending on `config`.

    Not thread-safe. A step is in flight from `schedule()` to `update()`, or to an error inside `undo_on_error`; until
    then only `add`, `abort` and `snapshot` are legal, and all other calls raise `InvalidArgument`.
    """

    def __init__(
        self, cache: PrefixCache, config: SchedulerConfig | None = None, *, events: EventStream | None = None
    ) -> None:
        self.events = events if events is not None else EventStream()
        self.desk = Desk(cache, config if config is not None else SchedulerConfig(), self.events)
        self.step = 0  # the number of steps begun
        self.recent_hit_rate = RecentHitRate()
        self.last_prefill_hit_rate = LastPrefillHitRate()
        self._num_added = 0
        self._requests: dict[str, Request] = {}  # every request that is not finished or aborted
        # Aborted while a step is in flight, released at its end; whether each publishes its computed tokens first.
        self._aborting: list[tuple[Request, bool]] = []
        self._in_flight: StepPlan | None = None

    @property
    def cache(self) -> PrefixCache:
        return self.desk.cache

    @property
    def config(self) -> SchedulerConfig:
        return self.desk.config

    @property
    def waiting(self) -> list[Request]:
        """The waiting requests, the next one to be admitted first. Read only."""
        return self.desk.waiting

    @property
    def running(self) -> list[Request]:
        """The running requests, in the order of their admission. Read only."""
        return self.desk.running

    @property
    def new_token_ratio(self) -> float:
        """The fraction of the running requests' remaining outputs that SGLang's admission reserves now."""
        return self.desk.reserve.ratio

    @new_token_ratio.setter
    def new_token_ratio(self, ratio: float) -> None:
        self.desk.reserve.ratio = ratio

    @property
    def has_unfinished(self) -> bool:
        """Whether any request is waiting or running."""
        return bool(self._requests)

    # Requests come and go

    def add(self, request: Request) -> None:
        """Append a new request to the waiting queue. If it has no `arrival`, that becomes the number of requests added
        before it. Raises `InvalidArgument` for an id in use, and `RequestTooLong`
        for a request that could not run even alone; then nothing has changed."""
        if request.id in self._requests or request.status is not RequestStatus.WAITING:
            raise InvalidArgument(f"request {request.id!r} was added before: make a new Request with its own id")
        self.require_possible(request)
        self._requests[request.id] = request
        if request.arrival is None:
            request.arrival = float(self._num_added)
        self._num_added += 1
        self.waiting.append(request)
        if self.events:
            self.events.emit(
                RequestArrived(
                    request.id,
                    tuple(request.tokens),
                    request.max_tokens,
                    request.namespace,
                    request.priority,
                    request.arrival,
                    request.prompt_logprobs,
                    request.skip_cache_read,
                    tuple(sorted(request.stop_tokens)),
                )
            )

    def require_possible(self, request: Request) -> None:
        """Raise `RequestTooLong` for a request that could not run even alone."""
        needed = _blocks_needed(self.cache, request)
        if needed > self.cache.capacity:
            if self.events:
                self.events.emit(
                    RequestRejected(
                        request.id, request.num_prompt_tokens, request.max_tokens, needed, self.cache.capacity
                    )
                )
            raise _too_long(self.cache, request, needed)

    def abort(self, request_id: str) -> None:
        """Drop a request. If the step in flight computes for it, its blocks are released when that step ends, because
        the model may be writing to them; otherwise at once. If outputs are published at the end (`publish_outputs`),
        a request that decodes publishes what it has computed first. Raises `UnknownRequest`."""
        request = self._live(request_id)
        in_flight = self._in_flight is not None and any(item.request is request for item in self._in_flight.scheduled)
        publishes = self.config.publish_outputs == "at_finish" and self.desk.is_decoding(request)
        request.finish_reason = "abort"
        self._leave(request, RequestStatus.ABORTED)
        if self.events:
            self.events.emit(RequestAborted(request_id))
        if in_flight:
            self._aborting.append((request, publishes))
        else:
            self._drop(request, publishes)

    def finish(self, request: Request, reason: str) -> None:
        """End a request early, as complete: publish its computed tokens, then release its blocks. `reason` becomes its
        `finish_reason`. Raises `UnknownRequest`."""
        self._require_at_rest()
        if self._live(request.id) is not request:
            raise UnknownRequest(f"request {request.id!r} is not the Request object that was added under this id")
        self._finish(request, reason)

    def preempt_all(self) -> None:
        """Preempt every running request, so that the cache can be reset. They wait at the front of the queue, in the
        order in which they ran."""
        self._require_at_rest()
        for request in reversed(list(self.running)):
            self.desk.preempt(request, cause="preempt_all", front=True)

    def reset_cache(self, preempt_running: bool = False) -> bool:
        """Forget everything cached, and the hit rates. Returns `False`, with nothing changed, while requests hold
        blocks.

        With `preempt_running` it preempts the running requests first; they compute everything again. Use it when the
        model's weights change (vLLM's `reset_prefix_cache(reset_running_requests=True)`).
        """
        self._require_at_rest()
        if preempt_running:
            self.preempt_all()
        if not self.cache.reset():
            return False
        self._forget_hit_rates()
        return True

    def _forget_hit_rates(self) -> None:
        self.recent_hit_rate.observe(0, 0, 0, reset=True)
        self.last_prefill_hit_rate = LastPrefillHitRate()

    # Other settings, another cache

    def reconfigure(self, config: SchedulerConfig) -> None:
        """Use the settings `config` from the next step on. If the queue policy stays the same, it keeps its counts; if
        `new_token_ratio` stays the same, its current value continues. Raises `InvalidArgument`, with nothing changed,
        for settings that the cache cannot follow."""
        self._require_at_rest()
        config.require_possible_with(self.cache)
        before, self.desk.config = self.config, config
        if config != before:
            self.desk.is_full = False
        if config.queue_policy != before.queue_policy:
            self.desk.order = policy_named(config.queue_policy, self.cache)
        if config.new_token_ratio != before.new_token_ratio:
            self.desk.reserve = OutputReserve(config.new_token_ratio)

    def replace_cache(self, cache: PrefixCache) -> None:
        """Use `cache`, in which no request holds blocks yet, from the next step on. Running requests are preempted
        first, and the hit rates start again at 0.

        Raises `InvalidArgument` for a cache that cannot follow the settings, and `RequestTooLong` if a request of this
        scheduler could not run even alone in it; then nothing has changed.
        """
        self._require_at_rest()
        self.config.require_possible_with(cache)
        for request in self._requests.values():
            if (needed := _blocks_needed(cache, request)) > cache.capacity:
                raise _too_long(cache, request, needed)
        self.preempt_all()
        self.desk.cache = cache
        self.desk.order = policy_named(self.config.queue_policy, cache)
        self.desk.is_full = False
        self._forget_hit_rates()

    def _live(self, request_id: str) -> Request:
        try:
            return self._requests[request_id]
        except KeyError:
            raise UnknownRequest(f"request {request_id!r} is not waiting or running here") from None

    def _leave(self, request: Request, status: RequestStatus) -> None:
        self.desk.leave(request)
        request.status = status
        del self._requests[request.id]

    def _finish(self, request: Request, reason: str) -> None:
        request.finish_reason = reason
        self.cache.publish(request, request.num_computed_tokens)
        self._leave(request, RequestStatus.FINISHED)
        if self.events:
            self.events.emit(RequestFinished(request.id, reason))
        self.cache.release(request)

    # One step

    def schedule(self) -> StepPlan:
        """Plan the next step and allocate its blocks. Call `update` with the plan after the model has run, before the
        next `schedule`. The plan is false if no request can compute anything."""
        self._require_at_rest()
        self.step += 1
        self.events.step = self.step
        if self.events:
            self.events.emit(StepStarted())
        self.desk.begin_step(self.step)
        plan_step(self.desk, self.cache, self.config)
        self._in_flight = self.desk.plan()
        return self._in_flight

    def update(self, plan: StepPlan, sampled: Mapping[str, int]) -> list[Request]:
        """End the step in flight: count its tokens as computed, publish them, and append one token to each request of
        the plan that `samples`. `sampled` maps the ids of these requests to their tokens.

        Returns the requests that finished; their blocks are released. Requests aborted in the meantime get no token,
        and are released here. Raises `InvalidArgument` for another plan, a missing token, or a value that is not a
        token; the step is still in flight then.
        """
        if plan is not self._in_flight:
            raise InvalidArgument(f"plan: the plan of step {plan.step} is not the one in flight")
        missing = [i.request.id for i in plan.scheduled if i.samples and i.request.id not in sampled]
        if missing:
            raise InvalidArgument(f"sampled: no token for {', '.join(missing)}, which must sample in step {plan.step}")
        token_array([sampled[item.request.id] for item in plan.scheduled if item.samples], "sampled")
        self._in_flight = None
        admitted = plan.admitted
        self.recent_hit_rate.observe(admitted.requests, admitted.queries, admitted.hits)
        if plan.prefills:
            self.last_prefill_hit_rate.observe(plan.num_prefilled, admitted.hits)
        finished = []
        for item in plan.scheduled:
            request = item.request
            if request.status.is_final:  # aborted meanwhile; other requests may share its computed blocks, so they stay
                request.num_computed_tokens = item.start + item.num_tokens
                continue
            self._account(item)
            if item.samples and (reason := self._sample(request, sampled[request.id])):
                self._finish(request, reason)
                finished.append(request)
        self._release_aborted()
        if self.events:
            self.events.emit(StepFinished(plan.num_tokens))
        return finished

    def _account(self, item: ScheduledRequest) -> None:
        request, end = item.request, item.start + item.num_tokens
        request.num_computed_tokens = end
        if self.events:
            self.events.emit(TokensComputed(request.id, item.start, item.num_tokens))
        if self.config.publish_at == "compute" and self.desk.publishes(request, item.start):
            self.cache.publish(request, end)

    def _sample(self, request: Request, token: int) -> str | None:
        """Append the token. Returns the reason to finish, or `None`."""
        request.append(token)
        if self.events:
            self.events.emit(TokensSampled(request.id, (token,)))
        if token in request.stop_tokens:
            return "stop"
        return "length" if request.num_output_tokens >= request.max_tokens else None

    def _release_aborted(self) -> None:
        for request, publishes in self._aborting:
            self._drop(request, publishes)
        self._aborting.clear()

    def _drop(self, request: Request, publishes: bool) -> None:
        if publishes:
            self.cache.publish(request, request.num_computed_tokens)
        self.cache.release(request)

    @contextmanager
    def undo_on_error(self, plan: StepPlan) -> Iterator[None]:
        """Run the model inside this context. If it raises, the step is undone and the error propagates.

        Undone: every scheduled request gives its blocks up and waits again, at the front of the queue, in the old
        order. Blocks computed in earlier steps may still be findable; those of this step are not.
        """
        try:
            yield
        except BaseException as error:
            self._in_flight = None
            scheduled = {item.request for item in plan.scheduled}
            for request in reversed(list(self.running)):
                if request in scheduled:
                    self.desk.preempt(request, cause="step_failed", front=True, error=repr(error))
            for newcomer in plan.newcomers:  # as if it was never admitted
                newcomer.num_cached_tokens = newcomer.match_end = None
            self._release_aborted()
            raise

    def _require_at_rest(self) -> None:
        if self._in_flight is not None:
            raise InvalidArgument(f"step {self._in_flight.step} is in flight: call update() with its plan first")

    # Looking

    def snapshot(self) -> SchedulerSnapshot:
        """A copy of the scheduler's state. Pure."""
        return SchedulerSnapshot(
            step=self.step,
            waiting=tuple(request.id for request in self.waiting),
            running=tuple(request.id for request in self.running),
            status={id: request.status.value for id, request in self._requests.items()},
            lengths={
                id: (request.num_tokens, request.num_computed_tokens, request.num_preemptions)
                for id, request in self._requests.items()
            },
        )


def _blocks_needed(cache: PrefixCache, request: Request) -> int:
    """The number of blocks that a request needs at its greatest length."""
    return -(-(request.num_prompt_tokens + request.max_tokens - 1) // cache.block_size)


def _too_long(cache: PrefixCache, request: Request, needed: int) -> RequestTooLong:
    return RequestTooLong(
        f"request {request.id!r} needs {needed} blocks of {cache.block_size} tokens "
        f"({request.num_prompt_tokens} prompt tokens, max_tokens {request.max_tokens}) and the pool has "
        f"{cache.capacity}: raise num_blocks, or shorten the prompt or max_tokens"
    )
