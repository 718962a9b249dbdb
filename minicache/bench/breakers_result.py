"""What the breakers experiment measured."""

from dataclasses import dataclass
from typing import Any

from minicache.bench.conditions import Conditions
from minicache.bench.three_forms_result import Row


@dataclass(frozen=True)
class Case:
    """One breaker; `prompt_tokens` of its rows are medians, for what varies has not always the same length."""

    name: str
    repair: str
    why: str
    broken: Row
    repaired: Row

    @property
    def gain(self) -> int:
        """Median cached tokens won by the repair."""
        return self.repaired.median_cached_tokens - self.broken.median_cached_tokens

    @property
    def speed_up(self) -> float:
        """How many times sooner the first token comes."""
        return self.broken.median_ttft_ms / self.repaired.median_ttft_ms

    def to_json(self) -> dict[str, Any]:
        rows = {row.form: row.to_json() for row in (self.broken, self.repaired)}
        return {"breaker": self.name, "repair": self.repair, "why": self.why, **rows}


@dataclass(frozen=True)
class Run:
    cache: str
    block_size: int
    cases: list[Case]


@dataclass(frozen=True)
class Result:
    """`requests` of each form were sent; the first is in no row."""

    conditions: Conditions
    requests: int
    runs: list[Run]

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "experiment": "breakers",
            **self.conditions.to_json(),
            "requests": self.requests,
            "runs": [
                {"cache": run.cache, "block_size": run.block_size, "rows": [case.to_json() for case in run.cases]}
                for run in self.runs
            ],
        }
