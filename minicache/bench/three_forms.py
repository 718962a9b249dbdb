"""The three-forms experiment: one system prompt with a request id in three places, and three very different hits.

    stable        You are the support assistant …              the same tokens each time: all but the last can hit
    id at start   Request id 3f9c… You are the support …       the first id token differs: nothing after it can hit
    id at end     You are the support … Request id 3f9c…       only the id and the tokens after it are computed

Two warm-ups with the stable form come first: one fills the cache, one hits it. Then each round sends the three forms
one after the other, so that a machine that slows down slows all three. The control arm sends the same prompts to an
engine without a cache; this remembers nothing, so equal prompts are sent to it only once.
"""

import random
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from rich.console import Console

from minicache.bench.charts import Chart, Panel
from minicache.bench.conditions import Conditions
from minicache.bench.experiment import CACHES, CacheNames, Experiment, ModelName, Option, Show, discard
from minicache.bench.measure import BLOCK_SIZES, Answer, Arm, Chat, Row, Tokens, ask, difference, engine_for, messages
from minicache.bench.support_bot import QUESTION, system_prompt
from minicache.bench.tables import NAMES, Compared, bar, rows_table
from minicache.common.progress import Counter, Progress, silent
from minicache.core.errors import require_int

if TYPE_CHECKING:
    from minicache.engine import Engine

FORMS = STABLE, ID_AT_START, ID_AT_END = "stable", "id at start", "id at end"
PROMPT_TOKENS = 2999  # of the stable form's whole rendered prompt
WARM_UPS = "stable, cold", "stable, warm-up"  # with an empty cache, and with the prompt in it

Round = dict[str, Tokens]  # form -> prompt


@dataclass(frozen=True)
class ThreeForms(Experiment):
    """One system prompt without a request id, with one at its start, and at its end: reused tokens and times.

    Exit status 1 if an answer differs from the one without a cache.
    """

    model: ModelName
    caches: CacheNames = CACHES
    rounds: Annotated[int, Option("Each round sends every form once.", min=1)] = 5
    quick: Annotated[bool, Option("A tenth of the prompt length.")] = False
    seed: Annotated[int, Option("Seed of the request ids: the same seed gives the same prompts.")] = 0
    prompt_tokens: int = PROMPT_TOKENS  # before --quick
    max_tokens: int = 16

    demo: ClassVar = {"rounds": 1}

    def __post_init__(self) -> None:
        super().__post_init__()
        require_int("max_tokens", self.max_tokens, 1)

    @cached_property
    def prompts(self) -> list[Round]:
        """The prompts of each round. Raises as `Chat` does, and `RequestTooLong` for a model with a short context."""
        chat, ids = Chat(self.model), random.Random(self.seed)

        def prompt(system: str) -> Tokens:
            return chat.prompt(messages(system, QUESTION))

        stable = system_prompt(lambda system: len(prompt(system)), self.length)
        rounds = []
        for _ in range(self.rounds):
            sentence = f"Request id {ids.randbytes(16).hex()}."
            forms = (stable, f"{sentence} {stable}", f"{stable} {sentence}")
            rounds.append(dict(zip(FORMS, map(prompt, forms), strict=True)))
        chat.require_room((prompt for prompts in rounds for prompt in prompts.values()), self.max_tokens)
        return rounds

    @property
    def length(self) -> int:
        """The tokens of the stable form."""
        return self.prompt_tokens // 10 if self.quick else self.prompt_tokens

    def header(self) -> str:
        length = len(self.prompts[0][STABLE])
        quick = f" (--quick: a tenth of the full length, {self.prompt_tokens:,})" if self.quick else ""
        return (
            f"The same support bot is asked the same question in three forms, by {self.model}. Its system prompt never "
            f"changes, except for a request id: nowhere (stable), in the first line (id at start), or in the last (id "
            f"at end). The stable form's prompt is {length:,} tokens{quick}."
        )

    def run(self, progress: Progress = silent, show: Show = discard) -> "Found":
        """Measure. Takes minutes with a real model. `show` receives a line for each request."""
        started = time.perf_counter()
        sent = [prompt for prompts in self.prompts for prompt in prompts.values()]
        distinct = list(dict.fromkeys(sent))
        counter = Counter(progress, len(self.caches) * (len(WARM_UPS) + len(sent)) + len(distinct))
        measuring = Measuring(self, counter, show)
        runs = [measuring.arm(cache, sent) for cache in self.caches]
        engine, control, answers = measuring.control(distinct)
        lines = [
            line
            for arm in runs
            for row in arm.rows
            for number, (answer, prompts) in enumerate(zip(row.answers, self.prompts, strict=True), start=1)
            for line in difference(f"{arm.cache} cache, {row.form}, round {number}", answer, answers[prompts[row.form]])
        ]
        return Found(Conditions.of(engine, started), runs, control, lines)


class Measuring:
    """One run of the experiment. It shows each request when it is answered."""

    def __init__(self, settings: ThreeForms, counter: Counter, show: Show) -> None:
        self.settings, self.counter, self.show = settings, counter, show
        self.longest_ms = 0.0

    def arm(self, cache: str, sent: list[Tokens]) -> Arm:
        rounds = self.settings.prompts
        stable = rounds[0][STABLE]
        engine = self.engine(cache, [stable] * len(WARM_UPS) + sent)
        for form in WARM_UPS:
            self.ask(engine, f"{cache} cache: {form}", stable)
        rows = {form: Row(form, len(rounds[0][form])) for form in FORMS}
        for prompts in rounds:
            for form, prompt in prompts.items():
                rows[form].answers.append(self.ask(engine, f"{cache} cache: {form}", prompt))
        return Arm(cache, BLOCK_SIZES[cache], list(rows.values()))

    def control(self, distinct: list[Tokens]) -> "tuple[Engine, Arm, dict[Tokens, Answer]]":
        """Run the engine without a cache. Returns the engine, its rows, and its answer to each prompt."""
        engine = self.engine("none", distinct)
        rows: list[Row] = []
        answers: dict[Tokens, Answer] = {}
        for form in FORMS:
            prompts = list(dict.fromkeys(prompts[form] for prompts in self.settings.prompts))
            found = [self.ask(engine, f"no cache: {form}", prompt) for prompt in prompts]
            rows.append(Row(form, len(prompts[0]), found))
            answers.update(zip(prompts, found, strict=True))
        return engine, Arm("none", BLOCK_SIZES["none"], rows), answers

    def engine(self, cache: str, sent: list[Tokens]) -> "Engine":
        return engine_for(self.settings.model, cache, self.settings.max_tokens, sent)

    def ask(self, engine: "Engine", what: str, prompt: Tokens) -> Answer:
        self.counter.next(what)
        answer = ask(engine, prompt, self.settings.max_tokens)
        self.longest_ms = max(self.longest_ms, answer.ttft_ms)
        reused = f"reused {answer.cached_tokens:>6,} of {len(prompt):>6,}"
        self.show(f"{what:<27}  {reused}  {bar(answer.ttft_ms / self.longest_ms, 14)} {answer.ttft_ms:>7,.0f} ms")
        return answer


class Found(Compared):
    """The result. The control arm has an answer for each distinct prompt."""

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "three-forms",
            **self.conditions.to_json(),
            "runs": [arm.to_json() for arm in self.runs],
            "outputs_identical": self.holds,
        }

    def table(self, console: Console) -> None:
        for arm in self.runs:
            _print_arm(arm, console)
        requests = sum(len(row.answers) for row in self.control.rows)
        once = f"the same prompts, each distinct one once ({requests} requests)"
        console.print()
        console.print(f"{NAMES['none']}: {once}", style="bold")
        console.print(rows_table(self.control.rows))
        answer = self.control.row(STABLE).answers[0]
        console.print()
        console.print(f"{self.conditions.model} is asked {QUESTION!r} and begins to answer: {answer.text!r}")
        self.verdict(console)

    def chart(self) -> Chart:
        arms = {NAMES[arm.cache]: [arm.row(form) for form in FORMS] for arm in (*self.runs, self.control)}
        longest = max(row.prompt_tokens for row in self.control.rows)
        cached = {name: [float(row.median_cached_tokens) for row in rows] for name, rows in arms.items()}
        waited = {name: [row.median_ttft_ms for row in rows] for name, rows in arms.items()}
        panels = [
            Panel(f"median cached tokens, prompts of up to {longest:,}", FORMS, cached, float(longest)),
            Panel("median TTFT, ms", FORMS, waited),
        ]
        return Chart(f"A request id in a system prompt, {self.conditions.model}", panels, str(self.conditions))


def _print_arm(arm: Arm, console: Console) -> None:
    console.print()
    console.print(f"{NAMES[arm.cache]}, block size {arm.block_size}", style="bold")
    console.print(rows_table(arm.rows))
    console.print()
    for row in arm.rows:
        last = row.answers[-1]
        new = row.prompt_tokens - last.cached_tokens
        line = f"Prefill batch, #new-seq: 1, #new-token: {new}, #cached-token: {last.cached_tokens}"
        console.print(f"{row.form:<11}  {line}", soft_wrap=True)
    console.print()
    slowest = max(row.median_ttft_ms for row in arm.rows)
    for row in arm.rows:
        reused, prompt, waited = row.median_cached_tokens, row.prompt_tokens, row.median_ttft_ms
        console.print(f"{row.form:<11}  reused {bar(reused / prompt)} {reused:>5,} of {prompt:,}", soft_wrap=True)
        console.print(f"{'':<11}  waited {bar(waited / slowest)} {waited:>5,.0f} ms", soft_wrap=True)
    console.print()
    console.print(sentence(arm), style="bold")


def sentence(arm: Arm) -> str:
    """The figures of one cache in a sentence."""
    stable, start, end = map(arm.row, (STABLE, ID_AT_START, ID_AT_END))
    moved, gone = (start.median_ttft_ms / row.median_ttft_ms for row in (end, stable))
    return (
        f"With an id in the first line {start.median_cached_tokens:,} of {start.prompt_tokens:,} tokens are reused; "
        f"with the id in the last line {end.median_cached_tokens:,} are, and the first token comes {moved:,.1f} times "
        f"sooner; with no id it comes {gone:,.1f} times sooner."
    )


EXPERIMENT = ThreeForms
