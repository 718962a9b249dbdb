"""Does a cache hit change an answer? Fast mode compared with exact mode, in three number formats.

Each prompt is asked cold (no cache) and warm (its system prompt is cached), and the logits of every generated token
are compared bit for bit. In exact mode none may differ. How many do in fast mode depends on the CPU and on the model's
sizes, so that is only printed; `tests/properties/engine/test_exact_mode.py` has a model with which float32 does differ.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from rich.console import Console

from minicache.bench.conditions import Conditions
from minicache.bench.experiment import Experiment, ModelName, Option, Result, Show, discard
from minicache.bench.measure import Chat, Tokens, messages
from minicache.bench.support_bot import QUESTION, system_prompt
from minicache.bench.tables import plain_table
from minicache.common.progress import Counter, Progress, silent

if TYPE_CHECKING:
    from torch import Tensor

    from minicache.core import StepPlan
    from minicache.engine import Engine

DTYPES = ("float64", "float32", "bfloat16")
BLOCK_SIZE = 16


@dataclass(frozen=True)
class Exactness(Experiment):
    """Whether a cache hit changes the bits of an answer: fast mode and exact mode, in three number formats.

    Exit status 1 if a bit differs in exact mode.
    """

    model: ModelName
    prompts: Annotated[int, Option("Prompts to compare.", min=1, max=99)] = 8
    system_tokens: int = 200
    max_tokens: int = 16

    has_chart: ClassVar = False

    @cached_property
    def chats(self) -> list[Tokens]:
        """One prompt that fills the cache, then those to compare, with the same system prompt and questions of several
        lengths."""
        chat = Chat(self.model)
        system = system_prompt(chat.system_length, self.system_tokens)
        questions = [QUESTION, *(" ".join([QUESTION, "It is late."] * (turn % 5) + [str(turn)]) for turn in range(99))]
        prompts = [chat.prompt(messages(system, question)) for question in questions[: self.prompts + 1]]
        chat.require_room(prompts, self.max_tokens)
        return prompts

    def header(self) -> str:
        compared = len(self.chats) - 1
        return f"{compared} prompts, cold and after a cache hit: are the logits the same, bit for bit?"

    def run(self, progress: Progress = silent, show: Show = discard) -> "Found":
        from minicache.engine.exact import TiledRows

        started = time.perf_counter()
        counter = Counter(progress, 2 * 2 * len(DTYPES) * len(self.chats))
        arms, stacked = [], {}
        for dtype in DTYPES:
            for exact in (False, True):
                cold_engine, warm_engine = (self._engine(cache, dtype, exact) for cache in ("none", "hash"))
                if isinstance(cold_engine.runner.model.rows, TiledRows):
                    stacked[dtype] = cold_engine.runner.model.rows.stacked
                ask = self._asker(counter, f"{dtype}, {'exact' if exact else 'fast'}")
                ask(warm_engine, self.chats[0])  # the system prompt is in the cache from here on
                pairs = [(ask(cold_engine, prompt), ask(warm_engine, prompt)) for prompt in self.chats[1:]]
                arms.append(_compare(dtype, exact, pairs))
        conditions = replace(Conditions.of(cold_engine, started), dtype=", ".join(DTYPES))
        return Found(arms, stacked, conditions)

    def _engine(self, cache: str, dtype: str, exact: bool) -> "Engine":
        from minicache.engine import Engine, EngineConfig

        num_blocks = 1 + sum(-(-(len(prompt) + self.max_tokens) // BLOCK_SIZE) for prompt in self.chats)
        return Engine(
            EngineConfig(
                model=self.model, cache=cache, block_size=BLOCK_SIZE, num_blocks=num_blocks, dtype=dtype, exact=exact
            )
        )

    def _asker(self, counter: Counter, what: str) -> "Callable[[Engine, Tokens], Answer]":
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
                [output] = engine.generate([prompt], SamplingParams(max_tokens=self.max_tokens, ignore_eos=True))
            finally:
                engine.runner.logits = inner  # type: ignore[method-assign]
            rate = output.timings.decode_rate(len(output.token_ids))
            return Answer(
                tuple(output.token_ids), seen, 1000 * (output.timings.ttft or 0.0), 1000 / rate if rate else 0.0
            )

        return ask


@dataclass
class Answer:
    tokens: tuple[int, ...]
    logits: "list[Tensor]"
    prefill_ms: float
    token_ms: float


@dataclass(frozen=True)
class Arm:
    """One number format in one mode. Of `requests` requests, `different` had a logit whose bits differ from the cold
    run, and `flipped` a different greedy token. Times are medians over the requests, in milliseconds, without a
    cache."""

    dtype: str
    exact: bool
    requests: int
    different: int
    flipped: int
    largest_difference: float
    prefill_ms: float
    token_ms: float


@dataclass(frozen=True)
class Found(Result):
    """The result. `stacked` says for each number format whether exact mode may compute several tiles at once here."""

    arms: list[Arm]
    stacked: dict[str, bool]
    conditions: Conditions

    @property
    def holds(self) -> bool:
        """Whether no bit differs in exact mode."""
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

    def table(self, console: Console) -> None:
        table = plain_table(
            ["\nformat", "\nmode"],
            [
                "requests with\nother bits",
                "with another\ntoken",
                "largest\ndifference",
                "prefill, ms\n(cold)",
                "a token,\nms",
            ],
        )
        for arm in self.arms:
            table.add_row(
                arm.dtype,
                "exact" if arm.exact else "fast",
                f"{arm.different} of {arm.requests}",
                f"{arm.flipped} of {arm.requests}",
                f"{arm.largest_difference:.2g}",
                f"{arm.prefill_ms:,.1f}",
                f"{arm.token_ms:,.1f}",
            )
        console.print()
        console.print(table)
        console.print()
        console.print(sentence(self), style="bold")
        ways = {True: "several tiles at once", False: "tile by tile"}
        computed = ", ".join(f"{dtype} {ways[several]}" for dtype, several in self.stacked.items())
        console.print(f"exact mode computes {computed}")
        console.print(str(self.conditions))


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


def sentence(found: Found) -> str:
    fast = {arm.dtype: arm for arm in found.arms if not arm.exact}
    exact = {arm.dtype: arm for arm in found.arms if arm.exact}
    bits = sum(arm.different for arm in exact.values())
    cost = exact["float32"].prefill_ms / fast["float32"].prefill_ms
    decode = exact["float32"].token_ms / fast["float32"].token_ms
    return (
        f"In fast mode a hit changes the bits of {fast['float32'].different} of {fast['float32'].requests} answers in "
        f"float32; in exact mode it changes {bits} in any format. In float32 exact mode takes {cost:.1f} times as long "
        f"to prefill and {decode:.1f} times as long a token."
    )


EXPERIMENT = Exactness
