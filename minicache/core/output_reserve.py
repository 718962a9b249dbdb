"""SGLang's reserve: slots that an admission leaves free for outputs that are still to come.

A request that decodes needs one more slot in each step, and nobody knows when it will stop. To reserve `max_tokens` for
all would leave most of the pool empty, so SGLang reserves a fraction of it for requests that run already. The fraction
falls with each decoding step, because most outputs end early, and rises when requests had to be preempted. Source:
SGLang 0.5.23, `sglang/srt/managers/schedule_policy.py` and `scheduler_components/new_token_ratio_tracker.py`.
"""

from collections.abc import Sequence

from minicache.core.request import Request

CLIP_MAX_NEW_TOKENS = 4096  # tokens reserved for one output, at most
RATIO_DECAY_STEPS = 600  # decoding steps in which the ratio falls from its first value to its least
LEAST_RATIO = 0.14  # the least value, as a fraction of the first
RETRACT_DECODE_STEPS = 20  # decoding steps of each surviving request that a preemption makes room for


def whole_output(request: Request) -> int:
    """The number of tokens that the output may have, as far as they are reserved. Pure."""
    return min(request.max_tokens, CLIP_MAX_NEW_TOKENS)


def remaining_output(request: Request) -> int:
    """The number of tokens that the output may still grow by, as far as they are reserved. Pure."""
    return min(request.max_tokens - request.num_output_tokens, CLIP_MAX_NEW_TOKENS)


class OutputReserve:
    """`ratio` is the fraction of the running requests' remaining outputs that is reserved now. It starts at
    `first_ratio`."""

    def __init__(self, first_ratio: float) -> None:
        self.first_ratio = first_ratio
        self.ratio = first_ratio

    def tokens(self, running: Sequence[Request]) -> float:
        """The number of tokens reserved for the outputs of the requests that decode, fractions included. Pure."""
        return sum(remaining_output(request) * self.ratio for request in running)

    def decay(self) -> None:
        """A decoding step has passed."""
        least = self.first_ratio * LEAST_RATIO
        self.ratio = max(least, self.ratio - (self.first_ratio - least) / RATIO_DECAY_STEPS)

    def after_preemption(self, survivors: Sequence[Request]) -> None:
        """Take the fraction of their `max_tokens` that the surviving requests have used, and need for
        `RETRACT_DECODE_STEPS` more."""
        used = sum(request.num_output_tokens for request in survivors) + RETRACT_DECODE_STEPS * len(survivors)
        self.ratio = min(1.0, used / (sum(request.max_tokens for request in survivors) + 1))

    def reset(self) -> None:
        """The scheduler is idle: start again from `first_ratio`."""
        self.ratio = self.first_ratio
