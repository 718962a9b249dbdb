"""The waiting and the running requests over one cache: the state from which a step is planned.

    add --> waiting --> running --> finished
               ^           |
               +-preempted-+

`step_plan.py` admits and preempts requests; `scheduler.py` adds and ends them.
"""

from minicache.core.event_stream import EventStream
from minicache.core.events import PreemptionCause, RequestPreempted
from minicache.core.prefix_cache import PrefixCache
from minicache.core.queue_policy import policy_named
from minicache.core.request import Request, RequestStatus
from minicache.core.scheduler_config import SchedulerConfig


class Queues:
    """The waiting and the running requests, and the settings that order them.

    `waiting` starts with the next request to be admitted, `running` with the request admitted first. `step` counts the
    steps begun. `new_token_ratio` is the fraction of the running requests' remaining output that SGLang's admission
    reserves now; it starts at the value of `config` and changes with each step. `prefill_end` maps each running request
    to its length at its latest admission: it decodes from this position on.

    Raises `InvalidArgument` if `cache` cannot follow `config`.
    """

    def __init__(self, cache: PrefixCache, config: SchedulerConfig, events: EventStream) -> None:
        config.require_possible_with(cache)
        self.cache = cache
        self.config = config
        self.events = events
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.step = 0
        self.new_token_ratio = config.new_token_ratio
        self.order = policy_named(config.queue_policy, cache)
        self.prefill_end: dict[str, int] = {}

    def publishes(self, request: Request, start: int) -> bool:
        """Whether the request's tokens from position `start` on are published now: always during prefill, and during
        decode if `publish_outputs` is `as_filled`. Pure."""
        return start < self.prefill_end[request.id] or self.config.publish_outputs == "as_filled"

    def _preempt(
        self,
        request: Request,
        cause: PreemptionCause,
        front: bool,
        needed_by: str | None = None,
        error: str | None = None,
    ) -> None:
        """Release a running request's blocks and put it back into the queue, at the front or at the back. When it is
        admitted again, it computes the tokens that it cannot hit. `cause`, `needed_by` and `error` are those of
        `RequestPreempted`."""
        self.running.remove(request)
        request.status = RequestStatus.PREEMPTED
        request.num_preemptions += 1
        if front:
            self.waiting.insert(0, request)
        else:
            self.waiting.append(request)
        if self.events:
            self.events.emit(RequestPreempted(request.id, front, cause, needed_by, error))
        self.cache.release(request)
        request.num_computed_tokens = 0
