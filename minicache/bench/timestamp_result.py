"""What the timestamp experiment measured."""

from dataclasses import asdict, dataclass
from typing import Any

from minicache.bench.conditions import Conditions
from minicache.bench.three_forms_result import Arm
from minicache.bench.timestamp_stream import Stream

DEFINITION = "hit tokens of looked-up tokens over the last 1,000 requests (vLLM's prefix cache hit rate)"


@dataclass(frozen=True)
class StreamRates:
    """The hit rate of one stream by form; `mean_prompt_tokens` is that of the form with the time at the top."""

    stream: Stream
    mean_prompt_tokens: float
    hit_rates: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        rates = {form: round(rate, 6) for form, rate in self.hit_rates.items()}
        return {**asdict(self.stream), "mean_prompt_tokens": round(self.mean_prompt_tokens, 1), "hit_rates": rates}


@dataclass(frozen=True)
class Run:
    """One cache. `reusable` and `expected` map each form to blocks of `reuse_block_size` tokens."""

    timed: Arm
    reusable: dict[str, int]
    expected: dict[str, int]
    reuse_block_size: int
    stated: StreamRates
    variations: list[StreamRates]

    @property
    def cache(self) -> str:
        return self.timed.cache

    @property
    def as_expected(self) -> bool:
        return self.reusable == self.expected

    def to_json(self) -> dict[str, Any]:
        return {
            "cache": self.cache,
            "block_size": self.timed.block_size,
            "reusable_blocks": self.reusable,
            "expected_blocks": self.expected,
            "reuse_block_size": self.reuse_block_size,
            "hit_rate_definition": DEFINITION,
            "stream": self.stated.to_json(),
            "variations": [rates.to_json() for rates in self.variations],
            "rows": [row.to_json() for row in self.timed.rows],
        }


@dataclass(frozen=True)
class Result:
    """`system_tokens` is the length of every form up to the end of the system content."""

    conditions: Conditions
    system_tokens: int
    runs: list[Run]

    @property
    def as_expected(self) -> bool:
        return all(run.as_expected for run in self.runs)

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "experiment": "timestamp",
            **self.conditions.to_json(),
            "system_tokens": self.system_tokens,
            "runs": [run.to_json() for run in self.runs],
            "as_expected": self.as_expected,
        }
