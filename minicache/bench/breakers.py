"""The breakers experiment: six habits that break a prefix in silence, each against its repaired form.

A support bot's prompt is instructions, tool schemas, examples and a question. Each breaker changes one thing in it from
request to request, and everything after that is computed anew:

    broken      | what changes | instructions | tools | examples | question
    repaired    | instructions | tools | examples | what changes, or its stable part | question

Some can simply go: a request id belongs into a header, and an order that varies need not.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import median_low
from typing import TYPE_CHECKING

from minicache.bench.breakers_result import Case, Result, Run
from minicache.bench.conditions import Conditions
from minicache.bench.measure import (
    BLOCK_SIZES,
    Chat,
    Counter,
    Progress,
    Tokens,
    ask,
    engine_for,
    messages,
    require_caches,
)
from minicache.bench.support_bot import INTRODUCTION, article, question
from minicache.bench.three_forms_result import Row
from minicache.bench.timestamp_stream import SECONDS_BETWEEN, clock
from minicache.core.errors import require_int

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
    """What differs between one request and the next."""

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
    """`broken` and `repaired` give the parts of a visit's prompt; `repair` says what was done, `why` what was wrong."""

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
        "Each second is another first line, and nothing after a line that differs is found again.",
        lambda visit: ([f"{DATE} {visit.time_of_day}", *STATIC], [visit.question]),
        lambda visit: ([*STATIC, f"Today is {DATE}."], [visit.question]),
    ),
    Breaker(
        "name and tier in the first line",
        "who asks is said in the user's turn",
        "Each customer fills the cache with instructions, tools and examples of their own, all the same.",
        lambda visit: ([f"You are helping {visit.customer}.", *STATIC], [visit.question]),
        lambda visit: (STATIC, [f"This is {visit.customer}.", visit.question]),
    ),
    Breaker(
        "tool schemas in varying order",
        "tools sorted by name, keys in fixed order",
        "The same tools in another order are other tokens: only the instructions before them are found.",
        lambda visit: ([STATIC[0], tool_list(visit.tools), STATIC[2]], [visit.question]),
        lambda visit: (STATIC, [visit.question]),
    ),
    Breaker(
        "retrieved passages first",
        "passages in the user's turn, before the question",
        "Each question finds other passages, so that the instructions after them are computed each time.",
        lambda visit: ([visit.passages, *STATIC], [visit.question]),
        lambda visit: (STATIC, [visit.passages, visit.question]),
    ),
    Breaker(
        "a request id in the prompt",
        "the id goes into a header, not into the prompt",
        "An id never comes twice, and so nothing after it does; the model has no use for it.",
        lambda visit: ([f"Request {visit.request_id}", *STATIC], [visit.question]),
        lambda visit: (STATIC, [visit.question]),
    ),
    Breaker(
        "random few-shot examples",
        f"the same {NUM_EXAMPLES} examples in the same order",
        "Instructions and tools are found; the examples are not, although any of them would do.",
        lambda visit: ([*STATIC[:2], visit.examples], [visit.question]),
        lambda visit: (STATIC, [visit.question]),
    ),
)


@dataclass(frozen=True)
class Settings:
    """What to run: `requests` of each form; the first fills the cache and is not counted. `seed` makes what varies.
    Raises `InvalidArgument`."""

    model: str
    caches: tuple[str, ...] = ("hash", "radix")
    requests: int = 6
    seed: int = 0

    def __post_init__(self) -> None:
        require_int("requests", self.requests, 2)
        require_caches(self.caches)


def visits(settings: Settings) -> list[Visit]:
    """The requests' circumstances; the same for equal seeds."""
    random = Random(settings.seed)
    return [
        Visit(
            question=question(number),
            time_of_day=clock(number * SECONDS_BETWEEN),
            customer=f"{CUSTOMERS[number % len(CUSTOMERS)]}, {random.choice(TIERS)} customer, account {1001 + number}",
            request_id=random.randbytes(8).hex(),
            tools=random.sample(SCHEMAS, len(SCHEMAS)),
            passages="\n".join(["Passages:", *(article(2 * number + place) for place in (0, 1))]),
            examples=examples(random.sample(EXAMPLES, NUM_EXAMPLES)),
        )
        for number in range(settings.requests)
    ]


def prompts(chat: Chat, build: Callable[[Visit], Parts], each: Sequence[Visit]) -> list[Tokens]:
    """The tools are rendered by us, as part of the system prompt: not every model's template knows them."""
    return [chat.prompt(messages(*("\n\n".join(part) for part in build(visit)))) for visit in each]


Stream = dict[str, list[Tokens]]  # form -> prompts


def prepare(settings: Settings) -> list[Stream]:
    """Each breaker's prompts; loads no model. Raises as the model store does, and `RequestTooLong` for a short
    context."""
    chat, each = Chat(settings.model), visits(settings)
    streams = [{form: prompts(chat, getattr(b, form), each) for form in FORMS} for b in BREAKERS]
    chat.require_room((p for stream in streams for form in FORMS for p in stream[form]), MAX_TOKENS)
    return streams


def run(settings: Settings, streams: Sequence[Stream], progress: Progress = lambda what, done, total: None) -> Result:
    """Run the experiment: `streams` are what `prepare` gave. Raises as the engine does."""
    started = time.perf_counter()
    counter = Counter(progress, len(settings.caches) * len(FORMS) * len(streams) * settings.requests)
    runs = []
    for cache in settings.caches:
        engines = {
            form: engine_for(settings.model, cache, max((s[form] for s in streams), key=num_tokens), MAX_TOKENS)
            for form in FORMS
        }
        cases = []
        for breaker, stream in zip(BREAKERS, streams, strict=True):
            what = f"{cache} cache: {breaker.name}"
            rows = _measure(engines, stream, partial(counter.next, what))
            cases.append(Case(breaker.name, breaker.repair, breaker.why, *rows))
        runs.append(Run(cache, BLOCK_SIZES[cache], cases))
    return Result(Conditions.now(settings.model, started), settings.requests, runs)


def num_tokens(stream: Iterable[Tokens]) -> int:
    return sum(map(len, stream))


def _measure(engines: dict[str, "Engine"], stream: Stream, before: Callable[[], None]) -> list[Row]:
    """The rows of either form, without the first answer. Each form has an engine of its own, and they take turns, so
    that a machine that slows down slows both."""
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
