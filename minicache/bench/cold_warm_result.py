"""What the cold-warm experiment measured."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from minicache.bench.conditions import Conditions
from minicache.bench.three_forms_result import Answer, Arm, Row

COLD, WARM, NO_CACHE = "cold", "warm", "no cache"


@dataclass
class SpeedRow(Row):
    """A row with speeds in tokens a second, medians over its answers. Questions differ in length: `lengths` has the
    prompt tokens of each answer, `prompt_tokens` those of the first."""

    lengths: list[int] = field(default_factory=list)

    def add(self, length: int, answer: Answer) -> None:
        self.lengths.append(length)
        self.answers.append(answer)

    @property
    def prefill_rate(self) -> float:
        """Prompt tokens that were computed, for each second until the first token."""
        return self._rate([a.cached_tokens for a in self.answers])

    @property
    def prompt_rate(self) -> float:
        """All prompt tokens, reused ones too, for each second until the first token: how fast it looks from outside."""
        return self._rate([0] * len(self.answers))

    def _rate(self, left_out: list[int]) -> float:
        each = zip(self.lengths, left_out, self.ttft_ms, strict=True)
        return median(1000 * (length - less) / ttft for length, less, ttft in each)

    @property
    def decode_rate(self) -> float:
        return median(answer.decode_rate or 0.0 for answer in self.answers)

    def to_json(self) -> dict[str, Any]:
        rates = {name: round(getattr(self, name), 2) for name in ("prefill_rate", "prompt_rate", "decode_rate")}
        names = {f"{name.removesuffix('_rate')}_tokens_per_s": value for name, value in rates.items()}
        return {**super().to_json(), "prompt_tokens": self.lengths, **names}


@dataclass(frozen=True)
class Result:
    """All arms, of `SpeedRow`s. `differences` has a line for each answer that is not the control arm's."""

    conditions: Conditions
    system_tokens: int
    context: int  # of the model
    runs: list[Arm]
    control: Arm
    differences: list[str]

    @property
    def outputs_identical(self) -> bool:
        return not self.differences

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints; the last run is the control arm."""
        return {
            "experiment": "cold-warm",
            **self.conditions.to_json(),
            "system_tokens": self.system_tokens,
            "context": self.context,
            "runs": [arm.to_json() for arm in (*self.runs, self.control)],
            "outputs_identical": self.outputs_identical,
        }
