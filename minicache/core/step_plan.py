"""The plan of one step: which tokens the model computes. Data only; `planner.py` decides."""

from dataclasses import dataclass, field

from minicache.core.hit_rate import AdmissionStats
from minicache.core.request import Request


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

    `admitted` counts the admissions of the step. `prefills` says whether it computes any token of a prompt, or of what
    a preempted request had before; `num_prefilled` counts the prompt tokens that it computes for requests that were
    never preempted. `newcomers` are the requests admitted for the first time. The scheduler counts these only if the
    step succeeds.
    """

    step: int
    scheduled: tuple[ScheduledRequest, ...]
    admitted: AdmissionStats = field(default_factory=AdmissionStats)
    prefills: bool = False
    num_prefilled: int = 0
    newcomers: tuple[Request, ...] = ()

    @property
    def num_tokens(self) -> int:
        """The number of tokens that the step computes."""
        return sum(item.num_tokens for item in self.scheduled)

    def __bool__(self) -> bool:
        return bool(self.scheduled)
