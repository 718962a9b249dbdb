"""The settings in which vLLM's scheduler and SGLang's differ, and their two profiles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from minicache.core.errors import InvalidArgument, require_int, require_number
from minicache.core.prefix_cache import PrefixCache
from minicache.core.queue_policy import POLICIES
from minicache.core.request import Request

CLIP_MAX_NEW_TOKENS = 4096  # SGLang reserves at most this much for an output
RETRACT_DECODE_STEPS = 20  # decode steps of every survivor that the ratio counts in after a preemption
RATIO_DECAY_STEPS = 600  # steps in which the reserve falls from its first to its least value
LEAST_RATIO = 0.14  # of the first value

VICTIMS: dict[str, Callable[[Sequence[Request]], Request]] = {
    "last": lambda running: running[-1],
    "lowest_priority": lambda running: max(running, key=lambda r: (r.priority, r.arrival)),
    "least_output": lambda running: min(reversed(running), key=lambda r: (r.num_output_tokens, -r.num_prompt_tokens)),
}


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """`max_num_batched_tokens`: the token budget of a step. `max_num_seqs`: requests that run at once.
    `long_prefill_token_threshold`: the longest chunk of one request (0: the budget).

    `publish_at`: KV becomes findable when it is scheduled (vLLM; hash chain only) or when it is computed.
    `publish_outputs`: generated tokens become findable as each block fills (vLLM) or when the request ends (SGLang).
    `queue_policy`: see `queue_policy.py`.

    `admission`: a waiting request is admitted if its first chunk fits (vLLM 0.11), if all its tokens do
    (`full_sequence`, vLLM), or if they do beside what the running outputs may still need (`output_reserve`, SGLang).
    `watermark`: part of the pool that an admission beside running requests must leave free.
    `new_token_ratio`: the part of the running requests' remaining output that SGLang reserves, at first.

    `victim`: who is preempted: the request admitted last, the one of the lowest priority, or the one that has
    generated least (the longest prompt among equals). `preempted_to`: which end of the queue it goes to. (SGLang also
    evicts cached blocks for the survivors' next 20 tokens at once; here they are evicted when they are needed.)
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
        """vLLM 0.33's choices: the defaults. With `queue_policy="priority"` the lowest priority is preempted."""
        if changes.get("queue_policy") == "priority":
            changes.setdefault("victim", "lowest_priority")
        return cls(**changes)

    @classmethod
    def sglang(cls, **changes: Any) -> "SchedulerConfig":
        """SGLang 0.5.23's choices."""
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
        """Raises `InvalidArgument` for a cache that cannot do what these settings ask."""
        if self.publish_at == "schedule" and not cache.publishes_scheduled:
            raise InvalidArgument("publish_at: this cache publishes computed tokens only; use publish_at='compute'")

    def choose_victim(self, running: Sequence[Request]) -> Request:
        return VICTIMS[self.victim](running)

    def output_reserve(self, request: Request, running: Sequence[Request], ratio: float) -> int:
        """Tokens that admission leaves free for outputs: all of the candidate's, and a part of the running ones'."""
        remaining = sum(_remaining(other) for other in running)
        return _remaining(request) + round(remaining * ratio)

    def next_ratio(self, ratio: float) -> float:
        """The part falls with each step that decodes: most outputs end before their limit."""
        least = self.new_token_ratio * LEAST_RATIO
        return max(least, ratio - (self.new_token_ratio - least) / RATIO_DECAY_STEPS)

    def ratio_after_preemption(self, survivors: Sequence[Request]) -> float:
        """The part that the survivors have used, and a few steps more."""
        used = sum(r.num_output_tokens for r in survivors) + RETRACT_DECODE_STEPS * len(survivors)
        return min(1.0, used / (sum(r.max_tokens for r in survivors) + 1))


def _remaining(request: Request) -> int:
    return min(request.max_tokens - request.num_output_tokens, CLIP_MAX_NEW_TOKENS)
