"""What the three-forms experiment measured. Times are in milliseconds, tokens as the model's tokenizer counts them."""

from dataclasses import dataclass, field
from statistics import median, median_low
from typing import Any

from minicache.bench.conditions import Conditions


@dataclass(frozen=True)
class Answer:
    """One request's result; `ttft_ms` is the time from its submission to its first token, `decode_rate` the tokens a
    second after that."""

    token_ids: tuple[int, ...]
    text: str
    cached_tokens: int
    ttft_ms: float
    decode_rate: float | None = None


@dataclass
class Row:
    """One form's requests in one arm; an answer a round, or one for each distinct prompt in the control arm."""

    form: str
    prompt_tokens: int
    answers: list[Answer] = field(default_factory=list)

    @property
    def cached_tokens(self) -> list[int]:
        return [answer.cached_tokens for answer in self.answers]

    @property
    def median_cached_tokens(self) -> int:
        return median_low(self.cached_tokens)

    @property
    def ttft_ms(self) -> list[float]:
        return [answer.ttft_ms for answer in self.answers]

    @property
    def median_ttft_ms(self) -> float:
        return median(self.ttft_ms)

    def to_json(self) -> dict[str, Any]:
        samples = [round(sample, 3) for sample in self.ttft_ms]
        return {
            "form": self.form,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "median_cached_tokens": self.median_cached_tokens,
            "ttft_ms": {
                "median": round(self.median_ttft_ms, 3),
                "min": min(samples),
                "max": max(samples),
                "samples": samples,
            },
        }


@dataclass(frozen=True)
class Arm:
    """One engine's rows; `cache` is "hash", "radix" or, for the control arm, "none"."""

    cache: str
    block_size: int
    rows: list[Row]

    def row(self, form: str) -> Row:
        return next(row for row in self.rows if row.form == form)

    def to_json(self) -> dict[str, Any]:
        return {"cache": self.cache, "block_size": self.block_size, "rows": [row.to_json() for row in self.rows]}


@dataclass(frozen=True)
class Result:
    """All arms. `differences` has a line for each answer that is not the control arm's."""

    conditions: Conditions
    runs: list[Arm]
    control: Arm
    differences: list[str]

    @property
    def outputs_identical(self) -> bool:
        return not self.differences

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "experiment": "three-forms",
            **self.conditions.to_json(),
            "runs": [arm.to_json() for arm in self.runs],
            "outputs_identical": self.outputs_identical,
        }
