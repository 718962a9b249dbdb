"""The breakers experiment: six habits that silently break a prefix, each compared with its repaired form.

The prompt of a support bot has instructions, tool schemas, examples and a question. Each breaker changes one part of it
from request to request, and every token after this part is computed again:

    broken      | changing part | instructions | tools | examples | question
    repaired    | instructions | tools | examples | changing part, or its stable half | question

Some changing parts can be removed: a request id belongs in a header, and an order need not vary.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import cycle
from random import Random
from statistics import median_low
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.padding import Padding

from minicache.bench.charts import Chart, Panel
from minicache.bench.conditions import Conditions
from minicache.bench.experiment import CACHES, CacheNames, Experiment, ModelName, Option, Result, Show, discard
from minicache.bench.measure import BLOCK_SIZES, Chat, Row, Tokens, ask, engine_for, messages
from minicache.bench.support_bot import INTRODUCTION, article, question
from minicache.bench.tables import NAMES, bar
from minicache.bench.timestamp_stream import SECONDS_BETWEEN, clock
from minicache.common.progress import Counter, Progress, silent

if TYPE_CHECKING:
    from minicache.engine import Engine

FORMS = ("broken", "repaired")
MAX_TOKENS = 1  # an answer's length: only its first token is of interest
DATE = "2026-11-30"
CUSTOMERS = ("Zoë Martin", "Ali Demir", "Grace Obi", "Tom Berg", "Mei Tanaka", "Luis Ortega", "Anna Novak")
TIERS = ("gold", "silver", "bronze")
TOOLS = (
    ("find_order", "Look up an order.", ["order"]),
    ("print_label", "Send a return label.", ["order", "email"]),
    ("search_handbook", "Search the handbook.", ["words"]),
    ("stock_of", "How many are left.", ["article"]),
    ("to_colleague", "Hand the customer over.", ["reason"]),
)
EXAMPLES = (
    ("Can I change my address?", "Gladly, as long as the parcel has not left. Which order is it?"),
    ("Do you have the blue tent?", "It is sold out; two weeks from now we expect more."),
    ("My stove hisses.", "Please do not use it. A colleague calls you back within the hour."),
    ("Where is my refund?", "It was sent to your card on Monday and takes up to five working days."),
    ("Is the torch waterproof?", "It withstands rain, but please do not dive with it."),
    ("Can I pay in two parts?", "Yes, above a hundred euros: choose it at the checkout."),
)
NUM_EXAMPLES = 3


@dataclass(frozen=True)
class Visit:
    """The parts of a prompt that differ between one request and the next."""

    question: str
    time_of_day: str
    customer: str
    request_id: str
    tools: list[str]  # schemas, in another order each time
    passages: str
    examples: str


Parts = tuple[list[str], list[str]]  # of the system prompt, and of the user's turn


@dataclass(frozen=True)
class Breaker:
    """`broken` and `repaired` return the parts of the prompt of a visit. `repair` describes the repair, `why` the
    fault."""

    name: str
    repair: str
    why: str
    broken: Callable[[Visit], Parts]
    repaired: Callable[[Visit], Parts]


def schema(name: str, description: str, parameters: Sequence[str]) -> str:
    """One tool as JSON, its keys in fixed order."""
    properties = {parameter: {"type": "string"} for parameter in parameters}
    return json.dumps({"name": name, "description": description, "parameters": properties})


def examples(pairs: Sequence[tuple[str, str]]) -> str:
    return "Examples:\n" + "\n".join(f"Customer: {asked}\nYou: {answer}" for asked, answer in pairs)


def tool_list(schemas: Sequence[str]) -> str:
    return "\n".join(["Tools:", *schemas])


SCHEMAS = [schema(*tool) for tool in sorted(TOOLS)]
STATIC = [INTRODUCTION, tool_list(SCHEMAS), examples(EXAMPLES[:NUM_EXAMPLES])]

BREAKERS = (
    Breaker(
        "a timestamp with seconds",
        "the date by day, after everything static",
        "The first line is different every second, and no token after a different line can be found.",
        lambda visit: ([f"{DATE} {visit.time_of_day}", *STATIC], [visit.question]),
        lambda visit: ([*STATIC, f"Today is {DATE}."], [visit.question]),
    ),
    Breaker(
        "name and tier in the first line",
        "name and tier in the user's turn",
        "Each customer has separate copies of the same instructions, tools and examples in the cache.",
        lambda visit: ([f"You are helping {visit.customer}.", *STATIC], [visit.question]),
        lambda visit: (STATIC, [f"This is {visit.customer}.", visit.question]),
    ),
    Breaker(
        "tool schemas in varying order",
        "tools sorted by name, keys in fixed order",
        "The same tools in a different order are different tokens: only the instructions before them are found.",
        lambda visit: ([STATIC[0], tool_list(visit.tools), STATIC[2]], [visit.question]),
        lambda visit: (STATIC, [visit.question]),
    ),
    Breaker(
        "retrieved passages first",
        "passages in the user's turn, before the question",
        "Each question retrieves different passages, so the instructions after them are computed every time.",
        lambda visit: ([visit.passages, *STATIC], [visit.question]),
        lambda visit: (STATIC, [visit.passages, visit.question]),
    ),
    Breaker(
        "a request id in the prompt",
        "the id goes into a header, not into the prompt",
        "Every id is new, so no token after it can be found; and the model does not need the id.",
        lambda visit: ([f"Request {visit.request_id}", *STATIC], [visit.question]),
        lambda visit: (STATIC, [visit.question]),
    ),
    Breaker(
        "random few-shot examples",
        f"the same {NUM_EXAMPLES} examples in the same order",
        "Instructions and tools are found, but the examples are not, although any examples would do.",
        lambda visit: ([*STATIC[:2], visit.examples], [visit.question]),
        lambda visit: (STATIC, [visit.question]),
    ),
)


Stream = dict[str, list[Tokens]]  # form -> prompts


@dataclass(frozen=True)
class Breakers(Experiment):
    """Six habits that silently break a prefix, each compared with its repaired form: reused tokens before and after."""

    model: ModelName
    caches: CacheNames = CACHES
    requests: Annotated[int, Option("Requests of each form; the first fills the cache and is not counted.", min=2)] = 6
    seed: Annotated[int, Option("Seed of the ids, orders and samples.")] = 0

    def visits(self) -> list[Visit]:
        """The visits; the same for equal seeds."""
        random = Random(self.seed)
        return [
            Visit(
                question=question(number),
                time_of_day=clock(number * SECONDS_BETWEEN),
                customer=f"{customer}, {random.choice(TIERS)} customer, account {1001 + number}",
                request_id=random.randbytes(8).hex(),
                tools=random.sample(SCHEMAS, len(SCHEMAS)),
                passages="\n".join(["Passages:", *(article(2 * number + place) for place in (0, 1))]),
                examples=examples(random.sample(EXAMPLES, NUM_EXAMPLES)),
            )
            for number, customer in zip(range(self.requests), cycle(CUSTOMERS), strict=False)
        ]

    @cached_property
    def streams(self) -> list[Stream]:
        """The prompts of each breaker. Raises as `Chat` does, and `RequestTooLong` for a model with a short context."""
        chat, each = Chat(self.model), self.visits()
        streams = [{form: prompts(chat, getattr(b, form), each) for form in FORMS} for b in BREAKERS]
        chat.require_room((p for stream in streams for form in FORMS for p in stream[form]), MAX_TOKENS)
        return streams

    def header(self) -> str:
        requests = len(self.streams[0][FORMS[0]])
        return (
            f"Six habits that silently break a prefix, each in a support bot's prompt for {self.model}, and the same "
            f"prompt repaired: {requests} requests of each; the first fills the cache and is not counted."
        )

    def run(self, progress: Progress = silent, show: Show = discard) -> "Found":
        started = time.perf_counter()
        counter = Counter(progress, len(self.caches) * len(FORMS) * len(self.streams) * self.requests)
        runs = []
        for cache in self.caches:
            engines = {f: engine_for(self.model, cache, MAX_TOKENS, *(s[f] for s in self.streams)) for f in FORMS}
            cases = []
            for breaker, stream in zip(BREAKERS, self.streams, strict=True):
                rows = _measure(engines, stream, partial(counter.next, f"{cache} cache: {breaker.name}"))
                cases.append(Case(breaker, *rows))
            runs.append(Run(cache, BLOCK_SIZES[cache], cases))
        return Found(Conditions.of(engines[FORMS[0]], started), self.requests, runs)


def prompts(chat: Chat, build: Callable[[Visit], Parts], each: Sequence[Visit]) -> list[Tokens]:
    """The prompts of one form. Tools are part of the system prompt, because not every model's template has tools."""
    return [chat.prompt(messages(*("\n\n".join(part) for part in build(visit)))) for visit in each]


def _measure(engines: dict[str, "Engine"], stream: Stream, before: Callable[[], None]) -> list[Row]:
    """The rows of both forms, without the first answer. Each form has its own engine, and the two take turns, so that a
    machine that slows down slows both."""
    rows = [Row(form, median_low(len(prompt) for prompt in stream[form][1:])) for form in FORMS]
    for engine in engines.values():
        engine.scheduler.reset_cache()
    for pair in zip(*(stream[form] for form in FORMS), strict=True):
        for row, prompt in zip(rows, pair, strict=True):
            before()
            row.answers.append(ask(engines[row.form], prompt, MAX_TOKENS))
    for row in rows:
        del row.answers[0]
    return rows


@dataclass(frozen=True)
class Case:
    """The figures of one breaker. `prompt_tokens` of its rows are medians, because the changing part differs in
    length."""

    breaker: Breaker
    broken: Row
    repaired: Row

    @property
    def gain(self) -> int:
        """By how many tokens the repair raises the median of cached tokens."""
        return self.repaired.median_cached_tokens - self.broken.median_cached_tokens

    @property
    def speed_up(self) -> float:
        """By what factor the repair shortens the time to first token."""
        return self.broken.median_ttft_ms / self.repaired.median_ttft_ms

    def to_json(self) -> dict[str, Any]:
        rows = {row.form: row.to_json() for row in (self.broken, self.repaired)}
        return {"breaker": self.breaker.name, "repair": self.breaker.repair, "why": self.breaker.why, **rows}


@dataclass(frozen=True)
class Run:
    cache: str
    block_size: int
    cases: list[Case]

    def to_json(self) -> dict[str, Any]:
        return {"cache": self.cache, "block_size": self.block_size, "rows": [case.to_json() for case in self.cases]}


@dataclass(frozen=True)
class Found(Result):
    """The result. `requests` of each form were sent; the first is in no row."""

    conditions: Conditions
    requests: int
    runs: list[Run]

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "breakers",
            **self.conditions.to_json(),
            "requests": self.requests,
            "runs": [run.to_json() for run in self.runs],
        }

    def table(self, console: Console) -> None:
        for run in self.runs:
            title = f"{NAMES[run.cache]}, block size {run.block_size}: median cached tokens and TTFT"
            console.print("", title, sep="\n", style="bold")
            for case in run.cases:
                console.print()
                console.print(f"{case.breaker.name} → {case.breaker.repair}", soft_wrap=True)
                for row in (case.broken, case.repaired):
                    console.print(_line(row), soft_wrap=True)
                console.print(Padding(case.breaker.why, (0, 0, 0, 2)))
            console.print()
            console.print(sentence(run), style="bold")
        console.print(str(self.conditions))

    def chart(self) -> Chart:
        panels = [
            Panel(
                f"{NAMES[run.cache]}: median cached tokens a request, % of the prompt",
                [case.breaker.name for case in run.cases],
                {form: [100 * _share([getattr(case, form)]) for case in run.cases] for form in FORMS},
                100.0,
            )
            for run in self.runs
        ]
        return Chart(f"Six breakers of a prefix, {self.conditions.model}", panels, str(self.conditions))


def _line(row: Row) -> str:
    reused, prompt = row.median_cached_tokens, row.prompt_tokens
    return f"  {row.form:<8} {bar(reused / prompt)} {reused:>5,} of {prompt:,} {row.median_ttft_ms:>6,.0f} ms"


def sentence(run: Run) -> str:
    """The figures of one cache in a sentence."""
    most, least = max(run.cases, key=lambda case: case.gain), min(run.cases, key=lambda case: case.gain)
    broken, repaired = (_share([getattr(case, form) for case in run.cases]) for form in FORMS)
    fastest, slowest = max(case.speed_up for case in run.cases), min(case.speed_up for case in run.cases)
    return (
        f"Broken, the prompts reuse {broken:.0%} of their tokens; repaired, {repaired:.0%}, and the first token comes "
        f"{slowest:,.1f} to {fastest:,.1f} times sooner. A breaker costs what comes after it: {most.gain:,} tokens a "
        f"request for {most.breaker.name}, {least.gain:,} for {least.breaker.name}."
    )


def _share(rows: list[Row]) -> float:
    return sum(row.median_cached_tokens for row in rows) / sum(row.prompt_tokens for row in rows)


EXPERIMENT = Breakers
