"""Who waits and who runs, in order, over one cache: what a step is planned from.

    add --> waiting --> running --> finished
               ^           |
               +-preempted-+

`step_plan.py` moves requests from waiting to running and preempts; `scheduler.py` does the rest.
"""

from minicache.core.event_stream import EventStream
from minicache.core.events import PreemptionCause, RequestPreempted
from minicache.core.prefix_cache import PrefixCache
from minicache.core.queue_policy import policy_named
from minicache.core.request import Request, RequestStatus
from minicache.core.scheduler_config import SchedulerConfig


class Queues:
    """The waiting and the running requests, and the settings by which they are ordered.

    `waiting` and `running` are in order, the next to be admitted (the first admitted) first. `step` counts the steps
    begun. `new_token_ratio` is the part of the running requests' remaining output that SGLang's admission reserves now;
    it begins at the config's and changes with each step. `prefill_end`: request -> its length at its latest admission;
    it decodes from there on.
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
        admitted again, it computes the tokens that it cannot hit. The cause is that of `RequestPreempted`."""
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
