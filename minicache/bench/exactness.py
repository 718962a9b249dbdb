"""Does a cache hit change an answer? Fast mode against exact mode, in three number formats.

Each prompt is asked cold (no cache) and warm (its system prompt is cached), and the logits of every generated token
are compared bit for bit. In exact mode none may differ. How many do in fast mode depends on the CPU and on the model's
sizes, so that is only printed; `tests/properties/test_exact_mode.py` has a model with which float32 does differ.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from minicache.bench.conditions import Conditions
from minicache.bench.measure import Chat, Counter, Progress, Tokens, messages
from minicache.bench.support_bot import QUESTION, system_prompt

if TYPE_CHECKING:
    from torch import Tensor

    from minicache.core import StepPlan
    from minicache.engine import Engine

DTYPES = ("float64", "float32", "bfloat16")
BLOCK_SIZE = 16


@dataclass(frozen=True)
class Settings:
    """`prompts` prompts of about `system_tokens` tokens and more, `max_tokens` tokens each."""

    model: str
    prompts: int = 8
    system_tokens: int = 200
    max_tokens: int = 16


@dataclass(frozen=True)
class Arm:
    """One number format in one mode. Of `requests` requests, `different` had a logit with other bits than the cold run,
    and `flipped` another greedy token. Times are medians over the requests, in milliseconds, without a cache."""

    dtype: str
    exact: bool
    requests: int
    different: int
    flipped: int
    largest_difference: float
    prefill_ms: float
    token_ms: float


@dataclass(frozen=True)
class Result:
    """`stacked` says of each number format whether exact mode may compute several tiles at once on this machine."""

    arms: list[Arm]
    stacked: dict[str, bool]
    conditions: Conditions

    @property
    def holds(self) -> bool:
        """No bit differs in exact mode."""
        return all(not arm.different for arm in self.arms if arm.exact)

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "exactness",
            **self.conditions.to_json(),
            "dtype": list(DTYPES),
            "stacked": self.stacked,
            "runs": [asdict(arm) for arm in self.arms],
            "holds": self.holds,
        }


@dataclass
class Answer:
    tokens: tuple[int, ...]
    logits: "list[Tensor]"
    prefill_ms: float
    token_ms: float


def run(settings: Settings, progress: Progress = lambda what, done, total: None) -> Result:
    """Run the experiment; raises as the model store and the engine do."""
    from minicache.engine.exact import TiledRows

    started = time.perf_counter()
    prompts = make_prompts(settings)
    counter = Counter(progress, 2 * 2 * len(DTYPES) * len(prompts))
    arms, stacked = [], {}
    for dtype in DTYPES:
        for exact in (False, True):
            cold_engine = _engine(settings, prompts, "none", dtype, exact)
            warm_engine = _engine(settings, prompts, "hash", dtype, exact)
            if isinstance(cold_engine.runner.model.rows, TiledRows):
                stacked[dtype] = cold_engine.runner.model.rows.stacked
            mode = "exact" if exact else "fast"
            ask = _asker(settings, counter, f"{dtype}, {mode}")
            ask(warm_engine, prompts[0])  # the system prompt is in the cache from here on
            pairs = [(ask(cold_engine, prompt), ask(warm_engine, prompt)) for prompt in prompts[1:]]
            arms.append(_compare(dtype, exact, pairs))
    return Result(arms, stacked, Conditions.now(settings.model, started))


def make_prompts(settings: Settings) -> list[Tokens]:
    """One prompt to fill the cache, then those to compare: a shared system prompt, and questions of several lengths."""
    chat = Chat(settings.model)
    system = system_prompt(chat.system_length, settings.system_tokens)
    questions = [QUESTION, *(" ".join([QUESTION, "It is late."] * (turn % 5) + [str(turn)]) for turn in range(99))]
    prompts = [chat.prompt(messages(system, question)) for question in questions[: settings.prompts + 1]]
    chat.require_room(prompts, settings.max_tokens)
    return prompts


def _engine(settings: Settings, prompts: list[Tokens], cache: str, dtype: str, exact: bool) -> "Engine":
    from minicache.engine import Engine, EngineConfig

    blocks = sum(-(-(len(prompt) + settings.max_tokens) // BLOCK_SIZE) for prompt in prompts)
    return Engine(
        EngineConfig(
            model=settings.model, cache=cache, block_size=BLOCK_SIZE, num_blocks=blocks + 1, dtype=dtype, exact=exact
        )
    )


def _asker(settings: Settings, counter: Counter, what: str) -> "Callable[[Engine, Tokens], Answer]":
    from minicache.engine import SamplingParams

    def ask(engine: "Engine", prompt: Tokens) -> Answer:
        counter.next(what)
        seen: list[Tensor] = []
        inner = engine.runner.logits

        def recorded(plan: "StepPlan", hidden: "Tensor") -> "Tensor":
            seen.append(inner(plan, hidden))
            return seen[-1]

        engine.runner.logits = recorded  # type: ignore[method-assign]
        try:
            [output] = engine.generate([prompt], SamplingParams(max_tokens=settings.max_tokens, ignore_eos=True))
        finally:
            engine.runner.logits = inner  # type: ignore[method-assign]
        rate = output.timings.decode_rate(len(output.token_ids))
        return Answer(tuple(output.token_ids), seen, 1000 * (output.timings.ttft or 0.0), 1000 / rate if rate else 0.0)

    return ask


def _compare(dtype: str, exact: bool, pairs: list[tuple[Answer, Answer]]) -> Arm:
    import torch

    different = flipped = 0
    largest = 0.0
    for cold, warm in pairs:
        flipped += cold.tokens != warm.tokens
        unequal = False
        for index, (a, b) in enumerate(zip(cold.logits, warm.logits, strict=True)):
            if cold.tokens[:index] != warm.tokens[:index]:
                break  # after a flip the two read different texts
            unequal = unequal or not torch.equal(a, b)
            largest = max(largest, float((a - b).abs().max()))
        different += unequal
    return Arm(
        dtype,
        exact,
        len(pairs),
        different,
        flipped,
        largest,
        statistics.median(cold.prefill_ms for cold, _ in pairs),
        statistics.median(cold.token_ms for cold, _ in pairs),
    )
