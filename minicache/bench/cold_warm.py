"""The cold-warm experiment: one long system prompt, and a new question each time.

Each round forgets everything cached and then asks two new questions:

    cold    the cache is empty: the whole prompt is prefilled
    warm    the system prompt is cached: only the question is prefilled

The control arm asks the same questions without a cache. The arms take turns, so that a machine that slows down slows
all of them. Decoding reads the KV of the whole prompt in any case, so a cache cannot make it faster.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Annotated, Any, cast

from rich.console import Console

from minicache.bench.charts import Chart, Panel
from minicache.bench.conditions import Conditions
from minicache.bench.experiment import CACHES, CacheNames, Experiment, ModelName, Option, Show, discard
from minicache.bench.measure import BLOCK_SIZES, Answer, Arm, Chat, Row, Tokens, ask, difference, engine_for, messages
from minicache.bench.support_bot import question, system_prompt
from minicache.bench.tables import NAMES, Compared, bar, plain_table, ttft_cells
from minicache.common.progress import Counter, Progress, silent
from minicache.core.errors import InvalidArgument, require_int

SYSTEM_TOKENS = 8500
COLD, WARM, NO_CACHE = "cold", "warm", "no cache"


@dataclass(frozen=True)
class Plan:
    """The prompts of each round, cold and warm, all with one system prompt of `system_tokens`. `cut` says whether the
    model's `context` made that shorter than 8,500 tokens."""

    system_tokens: int
    context: int
    cut: bool
    rounds: list[tuple[Tokens, Tokens]]

    @property
    def prompts(self) -> list[Tokens]:
        return [prompt for pair in self.rounds for prompt in pair]


@dataclass(frozen=True)
class ColdWarm(Experiment):
    """One long system prompt and a new question each time: time to first token and speeds, cold, warm, without a cache.

    Exit status 1 if an answer differs from the one without a cache.
    """

    model: ModelName
    caches: CacheNames = CACHES
    system_tokens: Annotated[int | None, Option("Length of the system prompt: 8,500, or all that fit.", min=1)] = None
    rounds: Annotated[int, Option("Each round is a cold request and a warm one.", min=1)] = 5
    max_tokens: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        require_int("max_tokens", self.max_tokens, 2)  # a speed of decoding needs two

    @cached_property
    def plan(self) -> Plan:
        """Raises as `Chat` does, and `InvalidArgument` if `system_tokens` do not fit into the model's context."""
        chat = Chat(self.model)
        questions = [question(number) for number in range(2 * self.rounds)]
        room = chat.context - self.max_tokens - max(chat.turn_length("You help.", text) for text in questions)
        wanted = self.system_tokens
        if room < 1:
            raise InvalidArgument(
                f"the context of {self.model}, {chat.context:,} tokens, has no room for a system prompt"
            )
        if wanted is not None and wanted > room:
            raise InvalidArgument(
                f"system_tokens {wanted:,}: besides a question and an answer of {self.max_tokens} tokens, {room:,} fit "
                f"into the context of {chat.context:,} of {self.model}"
            )
        length = wanted or min(SYSTEM_TOKENS, room)
        system = system_prompt(chat.system_length, length)
        prompts = [chat.prompt(messages(system, text)) for text in questions]
        cut = wanted is None and room < SYSTEM_TOKENS
        return Plan(length, chat.context, cut, list(zip(prompts[::2], prompts[1::2], strict=True)))

    def header(self) -> str:
        text = (
            f"{self.model} answers with a system prompt of {self.plan.system_tokens:,} tokens and a new question each "
            f"time: with an empty cache (cold), with the system prompt in it (warm), and without a cache."
        )
        if not self.plan.cut:
            return text
        return (
            f"{text} {SYSTEM_TOKENS:,} tokens are the full length; the context of {self.model} is "
            f"{self.plan.context:,} tokens, which the question and the answer share."
        )

    def run(self, progress: Progress = silent, show: Show = discard) -> "Found":
        started = time.perf_counter()
        arms = (*self.caches, "none")
        counter = Counter(progress, len(arms) * (1 + 2 * self.rounds))
        engines = {}
        for cache in arms:
            counter.next("loading, and warming up with another prompt")
            engines[cache] = engine_for(self.model, cache, self.max_tokens, *self.plan.rounds)
            ask(engines[cache], self.plan.prompts[0][:64], 2)
        length = len(self.plan.prompts[0])
        rows = {cache: {form: SpeedRow(form, length) for form in _forms(cache)} for cache in arms}
        for pair in self.plan.rounds:
            for cache in arms:
                engines[cache].scheduler.reset_cache()
                for form, prompt in zip((COLD, WARM), pair, strict=True):
                    form = form if cache != "none" else NO_CACHE
                    counter.next(f"{cache} cache: {form}" if cache != "none" else "no cache: the same prompts")
                    rows[cache][form].add(len(prompt), ask(engines[cache], prompt, self.max_tokens))
        runs = [Arm(cache, BLOCK_SIZES[cache], list(rows[cache].values())) for cache in self.caches]
        control = Arm("none", BLOCK_SIZES["none"], list(rows["none"].values()))
        differences = [line for arm in runs for line in _differences(arm, control)]
        conditions = Conditions.of(engines["none"], started)
        return Found(conditions, runs, control, differences, self.plan.system_tokens, self.plan.context)


def _forms(cache: str) -> tuple[str, ...]:
    return (NO_CACHE,) if cache == "none" else (COLD, WARM)


def _differences(arm: Arm, control: Arm) -> Iterator[str]:
    plain = control.row(NO_CACHE).answers
    for form, others in ((COLD, plain[::2]), (WARM, plain[1::2])):
        for number, (answer, other) in enumerate(zip(arm.row(form).answers, others, strict=True), start=1):
            yield from difference(f"{arm.cache} cache, {form}, round {number}", answer, other)


@dataclass
class SpeedRow(Row):
    """A row with speeds in tokens per second, medians over its answers. Questions differ in length: `lengths` holds the
    prompt tokens of each answer, `prompt_tokens` those of the first."""

    lengths: list[int] = field(default_factory=list)

    def add(self, length: int, answer: Answer) -> None:
        self.lengths.append(length)
        self.answers.append(answer)

    @property
    def prefill_rate(self) -> float:
        """Computed prompt tokens per second until the first token."""
        return self._rate([a.cached_tokens for a in self.answers])

    @property
    def prompt_rate(self) -> float:
        """All prompt tokens, reused ones too, per second until the first token: the speed that a client sees."""
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
class Found(Compared):
    """The result, with `SpeedRow`s; `context` is the context of the model."""

    system_tokens: int
    context: int

    def to_json(self) -> dict[str, Any]:
        """The last run is the control arm."""
        return {
            "experiment": "cold-warm",
            **self.conditions.to_json(),
            "system_tokens": self.system_tokens,
            "context": self.context,
            "runs": [arm.to_json() for arm in (*self.runs, self.control)],
            "outputs_identical": self.holds,
        }

    def table(self, console: Console) -> None:
        for arm in self.runs:
            rows = _rows(arm, self.control)
            slowest = max(row.median_ttft_ms for row in rows.values())
            console.print()
            console.print(f"{NAMES[arm.cache]}, block size {arm.block_size}", style="bold")
            _print_rows(rows, console)
            console.print()
            for form, row in rows.items():
                waited = row.median_ttft_ms
                console.print(f"{form:<9} waited {bar(waited / slowest)} {waited:>7,.0f} ms", soft_wrap=True)
            console.print()
            console.print(sentence(arm, self.control), style="bold")
        console.print()
        console.print(
            "Prefill speed: prompt tokens computed for each second until the first token; a warm request computes so "
            "few that fixed costs decide. As seen: all prompt tokens, reused ones too, for each such second. Decode: "
            "tokens a second after the first."
        )
        self.verdict(console)

    def chart(self) -> Chart:
        caches = {NAMES[arm.cache]: _rows(arm, self.control) for arm in self.runs}
        forms = [COLD, WARM, NO_CACHE]
        panels = [
            Panel(title, forms, {name: [getattr(rows[form], field) for form in forms] for name, rows in caches.items()})
            for title, field in (
                ("median TTFT, ms", "median_ttft_ms"),
                ("prefill speed, computed tokens a second", "prefill_rate"),
                ("decode speed, tokens a second", "decode_rate"),
            )
        ]
        return Chart(f"A long system prompt, cold and warm, {self.conditions.model}", panels, str(self.conditions))


def _rows(*arms: Arm) -> dict[str, SpeedRow]:
    return {row.form: cast(SpeedRow, row) for arm in arms for row in arm.rows}


def _print_rows(rows: dict[str, SpeedRow], console: Console) -> None:
    headings = ("prompt\ntokens", "cached", "TTFT, ms\nmedian", "min", "max")
    speeds = ("prefill\ntokens\nper s", "as seen\ntokens\nper s", "decode\ntokens\nper s")  # narrow: 80 columns
    table = plain_table([""], [*headings, *speeds])
    for form, row in rows.items():
        rates = (f"{value:,.0f}" for value in (row.prefill_rate, row.prompt_rate, row.decode_rate))
        table.add_row(form, f"{row.prompt_tokens:,}", f"{row.median_cached_tokens:,}", *ttft_cells(row), *rates)
    console.print(table)


def sentence(arm: Arm, control: Arm) -> str:
    """The figures of one cache in a sentence."""
    rows = _rows(arm, control)
    cold, warm, plain = rows[COLD], rows[WARM], rows[NO_CACHE]
    sooner, slower = cold.median_ttft_ms / warm.median_ttft_ms, cold.median_ttft_ms / plain.median_ttft_ms
    return (
        f"Warm, {warm.median_cached_tokens:,} of {warm.prompt_tokens:,} tokens are reused and the first token comes "
        f"{sooner:,.1f} times sooner than cold. A cache does not change decoding: it ran at "
        f"{cold.decode_rate:,.0f} tokens a second cold and {warm.decode_rate:,.0f} warm. A cold cache took "
        f"{slower:.2f} times as long as none."
    )


EXPERIMENT = ColdWarm
