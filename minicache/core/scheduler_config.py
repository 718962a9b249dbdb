"""The settings of the scheduler, with vLLM's and SGLang's choices as two profiles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from minicache.core.errors import InvalidArgument, require_int, require_number
from minicache.core.prefix_cache import PrefixCache
from minicache.core.queue_policy import POLICIES
from minicache.core.request import Request

VICTIMS: dict[str, Callable[[Sequence[Request]], Request]] = {
    "last": lambda running: running[-1],
    "lowest_priority": lambda running: max(running, key=lambda r: (r.priority, r.arrival)),
    "least_output": lambda running: min(reversed(running), key=lambda r: (r.num_output_tokens, -r.num_prompt_tokens)),
}


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """Immutable settings of a `Scheduler`. Raises `InvalidArgument`, which names the setting, for a value out of range.

    `max_num_batched_tokens`: the token budget of a step, at least 1. `max_num_seqs`: the most requests that run at the
    same time, at least 1. `long_prefill_token_threshold`: the longest prefill chunk of one request (0: the budget).
    Unless `admission` is `output_reserve`, a request that is the only one may use the whole budget, as in vLLM.

    `publish_at`: KV becomes findable when it is scheduled (vLLM; hash chain only) or when it is computed.
    `publish_outputs`: generated tokens become findable as each block fills (vLLM) or when the request ends (SGLang).
    `queue_policy`: the order of the waiting queue (`queue_policy.py`).

    `admission`: a waiting request is admitted if its first chunk fits (`first_chunk`, vLLM 0.11), if all its tokens fit
    (`full_sequence`, vLLM), or if all its tokens fit and room is left for its own output and a part of the running
    requests' outputs (`output_reserve`, SGLang). `new_token_ratio`: that part at the start, 0 to 1.
    `watermark`: the fraction of the pool, 0 to 1, that an admission must leave free while other requests run.

    `victim`: the request to preempt: the one admitted last (`last`), the one with the lowest priority
    (`lowest_priority`), or the one that has generated least, with the longest prompt among equals (`least_output`).
    `preempted_to`: the end of the queue where it waits again.
    """

    max_num_batched_tokens: int = 2048
    max_num_seqs: int = 256
    long_prefill_token_threshold: int = 0
    publish_at: Literal["schedule", "compute"] = "schedule"
    publish_outputs: Literal["as_filled", "at_finish"] = "as_filled"
    queue_policy: Literal["fcfs", "fcfs-retouch", "priority", "lpm"] = "fcfs"
    admission: Literal["first_chunk", "full_sequence", "output_reserve"] = "full_sequence"
    watermark: float = 0.0
    new_token_ratio: float = 0.7
    victim: Literal["last", "lowest_priority", "least_output"] = "last"
    preempted_to: Literal["front", "back"] = "front"

    @classmethod
    def vllm(cls, **changes: Any) -> "SchedulerConfig":
        """vLLM 0.33's choices, which are the defaults, with `changes`. With `queue_policy="priority"` the victim is the
        request with the lowest priority."""
        if changes.get("queue_policy") == "priority":
            changes.setdefault("victim", "lowest_priority")
        return cls(**changes)

    @classmethod
    def sglang(cls, **changes: Any) -> "SchedulerConfig":
        """SGLang 0.5.23's choices, with `changes`."""
        choices: dict[str, Any] = {
            "publish_at": "compute",
            "publish_outputs": "at_finish",
            "queue_policy": "fcfs-retouch",
            "admission": "output_reserve",
            "victim": "least_output",
            "preempted_to": "back",
        }
        return cls(**(choices | changes))

    def __post_init__(self) -> None:
        require_int("max_num_batched_tokens", self.max_num_batched_tokens, 1)
        require_int("max_num_seqs", self.max_num_seqs, 1)
        require_int("long_prefill_token_threshold", self.long_prefill_token_threshold, 0)
        for name, allowed in (
            ("publish_at", ("schedule", "compute")),
            ("publish_outputs", ("as_filled", "at_finish")),
            ("admission", ("first_chunk", "full_sequence", "output_reserve")),
            ("victim", tuple(VICTIMS)),
            ("preempted_to", ("front", "back")),
        ):
            if getattr(self, name) not in allowed:
                raise InvalidArgument(f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}")
        if self.queue_policy not in POLICIES:
            raise InvalidArgument(f"queue_policy must be one of {', '.join(POLICIES)}, not {self.queue_policy!r}")
        for name in ("watermark", "new_token_ratio"):
            if not 0 <= require_number(name, getattr(self, name)) <= 1:
                raise InvalidArgument(f"{name} must be between 0 and 1, not {getattr(self, name)!r}")

    def require_possible_with(self, cache: PrefixCache) -> None:
        """Raises `InvalidArgument` if `cache` cannot follow these settings."""
        if self.publish_at == "schedule" and not cache.publishes_scheduled:
            raise InvalidArgument("publish_at: this cache publishes computed tokens only; use publish_at='compute'")

    @property
    def shares_within_step(self) -> bool:
        """Whether a request can hit what an earlier one computes in the same step: with `output_reserve` all are
        looked up before any is scheduled."""
        return self.publish_at == "schedule" and self.admission != "output_reserve"

    def choose_victim(self, running: Sequence[Request]) -> Request:
        """The request to preempt, of `running`, which is in the order of admission and not empty. Pure."""
        return VICTIMS[self.victim](running)
