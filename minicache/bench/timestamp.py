"""The timestamp experiment: one line with the time of day, in three places of a prompt of 150 full blocks.

    at the top     14:03:22 is the time … You are the support …     the first block differs: 0 blocks are reusable
    at the end     You are the support … The time is 14:03:22       the last block differs: 149 blocks are
    in the turn    You are the support …  |  14:03:22 Where is …    the system prompt never differs: 150 blocks are

In each form the rendered prompt has exactly 2,400 tokens up to the end of the system content, the time included where
it stands inside. Three measurements: what two requests at different seconds share; the hit rate over a stream of
requests (`timestamp_stream.py`), both through the caches without the model; and the time to first token with it.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Annotated, Any

from rich.console import Console

from minicache.bench.charts import Chart, Panel
from minicache.bench.conditions import Conditions
from minicache.bench.experiment import CACHES, CacheNames, Experiment, ModelName, Option, Result, Show, discard
from minicache.bench.measure import BLOCK_SIZES, Arm, Chat, Row, Tokens, ask, engine_for, messages
from minicache.bench.replay import Replay
from minicache.bench.support_bot import QUESTION, system_prompt
from minicache.bench.tables import NAMES, bar, plain_table, rows_table
from minicache.bench.timestamp_stream import SECONDS_BETWEEN, Stream, arrivals, clock
from minicache.common.progress import Counter, Progress, silent
from minicache.core.errors import InvalidArgument, require_int

FORMS = AT_TOP, AT_END, IN_TURN = "at the top", "at the end", "in the user turn"
SYSTEM_TOKENS = 2400
BLOCK_SIZE = 16
BLOCKS = SYSTEM_TOKENS // BLOCK_SIZE
EXPECTED_BLOCKS = {AT_TOP: 0, AT_END: BLOCKS - 1, IN_TURN: BLOCKS}
ANSWER = "It left our warehouse this morning and should reach you within three working days."

STATED = Stream()
VARIATIONS: tuple[dict[str, Any], ...] = (
    *({"same_second": share} for share in (0.0, 0.1, 0.3)),
    *({"later_turns": share} for share in (0.0, 0.1, 0.3)),
    *({"turn_tokens": tokens} for tokens in (120, 960, 2400)),
)
DEFINITION = "hit tokens of looked-up tokens over the last 1,000 requests (vLLM's prefix cache hit rate)"


@dataclass(frozen=True)
class Timestamp(Experiment):
    """The time of day at the top of a system prompt, at its end, and in the user's turn: hit rates and times.

    Exit status 1 if two requests at different seconds do not share 0 blocks (top), 149 (end) and 150 (user's turn).
    """

    model: ModelName
    caches: CacheNames = CACHES
    seed: Annotated[int, Option("Seed of the order of the stream's requests.")] = 0
    timed_requests: int = 3
    max_tokens: int = 8
    variations: tuple[dict[str, Any], ...] = VARIATIONS  # of the stated stream, one change at a time

    def __post_init__(self) -> None:
        super().__post_init__()
        require_int("timed_requests", self.timed_requests, 1)
        require_int("max_tokens", self.max_tokens, 1)

    @cached_property
    def prompts(self) -> "Prompts":
        """Raises as `Prompts` does, and `RequestTooLong` for a model with a short context."""
        prompts = Prompts(Chat(self.model))
        prompts.chat.require_room((prompts.single(form, 0, QUESTION) for form in FORMS), self.max_tokens)
        return prompts

    def header(self) -> str:
        model = self.prompts.chat.model
        return (
            f"A support bot's prompt contains the time of day, such as {clock(0)}, at the top of its system prompt, at "
            f"its end, or in the user's turn. Rendered by {model}'s chat template, each form has exactly "
            f"{SYSTEM_TOKENS:,} tokens up to the end of the system prompt: {BLOCKS} blocks of {BLOCK_SIZE}."
        )

    def run(self, progress: Progress = silent, show: Show = discard) -> "Found":
        started = time.perf_counter()
        stated = replace(STATED, seed=self.seed)
        streams = [stated, *(replace(stated, **change) for change in self.variations)]
        counter = Counter(progress, len(streams) + len(self.caches) * len(FORMS) * (1 + self.timed_requests))

        rates: dict[str, list[StreamRates]] = {cache: [] for cache in self.caches}
        for stream in streams:
            counter.next("streams of requests through the caches, without the model")
            forms = FORMS if stream == stated else (AT_TOP, IN_TURN)
            rendered = {form: render(self.prompts, form, stream) for form in forms}
            for cache in self.caches:
                rates[cache].append(stream_rates(cache, stream, rendered, self.prompts.answer))
        runs = []
        for cache in self.caches:
            conditions, rows = self._timed(cache, counter, started)
            reusable = {form: reusable_blocks(self.prompts, form, cache) for form in FORMS}
            stated_rates, *variations = rates[cache]
            runs.append(Run(Arm(cache, BLOCK_SIZES[cache], rows), reusable, stated_rates, variations))
        return Found(conditions, runs)

    def _timed(self, cache: str, counter: Counter, started: float) -> tuple[Conditions, list[Row]]:
        """Measure round by round, each at a different second, so that a machine that slows down slows all forms. The
        first round fills the cache."""
        rounds = [
            {form: self.prompts.single(form, second, QUESTION) for form in FORMS}
            for second in range(1 + self.timed_requests)
        ]
        engine = engine_for(self.model, cache, self.max_tokens, [p for prompts in rounds for p in prompts.values()])
        rows = {form: Row(form, len(rounds[0][form])) for form in FORMS}
        for number, prompts in enumerate(rounds):
            for form, prompt in prompts.items():
                counter.next(f"{cache} cache: time {form}" if number else f"{cache} cache: filling the cache")
                answer = ask(engine, prompt, self.max_tokens)
                if number:
                    rows[form].answers.append(answer)
        return Conditions.of(engine, started), list(rows.values())


@dataclass(frozen=True)
class StreamRates:
    """The hit rate of one stream by form. `mean_prompt_tokens` belongs to the form with the time at the top."""

    stream: Stream
    mean_prompt_tokens: float
    hit_rates: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        rates = {form: round(rate, 6) for form, rate in self.hit_rates.items()}
        return {**asdict(self.stream), "mean_prompt_tokens": round(self.mean_prompt_tokens, 1), "hit_rates": rates}


class Prompts:
    """The three forms in one model's chat template. Raises `InvalidArgument` if its tokenizer cannot reach the
    length."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.answer = tuple(chat.tokenizer.encode(ANSWER))
        self._static = {form: self._static_part(form) for form in FORMS}

    def _static_part(self, form: str) -> str:
        return system_prompt(lambda text: self.chat.system_length(_system(form, clock(0), text)), SYSTEM_TOKENS)

    def system(self, form: str, time_of_day: str) -> str:
        """The system content. Rendered, with the template's text before it, it has exactly 2,400 tokens."""
        system = _system(form, time_of_day, self._static[form])
        if self.chat.system_length(system) != SYSTEM_TOKENS:
            raise InvalidArgument(f"with this tokenizer {time_of_day} has another number of tokens than {clock(0)}")
        return system

    @staticmethod
    def user(form: str, time_of_day: str, text: str) -> str:
        return f"{time_of_day} {text}" if form == IN_TURN else text

    def single(self, form: str, second: int, text: str) -> Tokens:
        """A conversation of one turn."""
        now = clock(second)
        return self.chat.prompt(messages(self.system(form, now), self.user(form, now, text)))


def _system(form: str, time_of_day: str, static: str) -> str:
    """At the top the time alone comes first, so that even with one token per byte the first 16 contain the seconds."""
    if form == AT_TOP:
        return f"{time_of_day} is the time of day.\n{static}"
    return f"{static}\nThe time is {time_of_day}" if form == AT_END else static


def reusable_blocks(prompts: Prompts, form: str, cache: str) -> int:
    """The blocks of 16 that a request hits one second after an equal one, found by a lookup in the cache itself."""
    one, other = (prompts.single(form, second, QUESTION) for second in (0, 1))
    replay = Replay(cache, 2 * len(one), BLOCK_SIZE)
    replay.send(one, (0,))
    return replay.reusable_tokens(other) // BLOCK_SIZE


def render(prompts: Prompts, form: str, stream: Stream) -> list[Tokens]:
    """The prompts of a stream, in order. A conversation keeps its first system prompt."""
    chat = prompts.chat
    fill = system_prompt(
        lambda text: chat.turn_length("You help.", _question(0, text)), stream.turn_tokens, introduction=""
    )
    conversations: dict[int, list[dict[str, str]]] = {}
    rendered = []
    for number, arrival in enumerate(arrivals(stream)):
        now = clock(arrival.second)
        turn = {"role": "user", "content": prompts.user(form, now, _question(number, fill))}
        earlier = conversations.get(arrival.conversation)
        if earlier is None:
            conversation = [{"role": "system", "content": prompts.system(form, now)}, turn]
        else:
            conversation = [*earlier, {"role": "assistant", "content": ANSWER}, turn]
        conversations[arrival.conversation] = conversation
        rendered.append(chat.prompt(conversation))
    return rendered


def _question(number: int, passages: str) -> str:
    return f"Order {4711 + number}: {QUESTION}\nPassages that the search found:\n{passages}"


def stream_rates(cache: str, stream: Stream, rendered: dict[str, list[Tokens]], answer: Tokens) -> StreamRates:
    """The hit rate of each form's prompts, each request answered with `answer`."""
    lengths = [len(prompt) for prompt in rendered[AT_TOP]]
    rates = {form: _hit_rate(cache, stream, prompts, answer) for form, prompts in rendered.items()}
    return StreamRates(stream, sum(lengths) / len(lengths), rates)


def _hit_rate(cache: str, stream: Stream, prompts: list[Tokens], answer: Tokens) -> float:
    """The hit rate of a stream. Requests of the same second overlap: the next one comes when the previous one has its
    first token."""
    replay = Replay(cache, sum(len(prompt) + len(answer) + BLOCK_SIZE for prompt in prompts))
    seconds = [arrival.second for arrival in arrivals(stream)]
    for prompt, second, following in zip(prompts, seconds, [*seconds[1:], -1], strict=True):
        replay.send(prompt, answer, finish=second != following)
    return replay.hit_rate


@dataclass(frozen=True)
class Run:
    """One cache. `reusable` maps each form to blocks of 16 tokens."""

    timed: Arm
    reusable: dict[str, int]
    stated: StreamRates
    variations: list[StreamRates]

    @property
    def cache(self) -> str:
        return self.timed.cache

    def to_json(self) -> dict[str, Any]:
        return {
            "cache": self.cache,
            "block_size": self.timed.block_size,
            "reusable_blocks": self.reusable,
            "expected_blocks": EXPECTED_BLOCKS,
            "reuse_block_size": BLOCK_SIZE,
            "hit_rate_definition": DEFINITION,
            "stream": self.stated.to_json(),
            "variations": [rates.to_json() for rates in self.variations],
            "rows": [row.to_json() for row in self.timed.rows],
        }


@dataclass(frozen=True)
class Found(Result):
    conditions: Conditions
    runs: list[Run]

    @property
    def holds(self) -> bool:
        return all(run.reusable == EXPECTED_BLOCKS for run in self.runs)

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": "timestamp",
            **self.conditions.to_json(),
            "system_tokens": SYSTEM_TOKENS,
            "runs": [run.to_json() for run in self.runs],
            "as_expected": self.holds,
        }

    def table(self, console: Console) -> None:
        for run in self.runs:
            _print_run(run, console)
        _print_stream(self.runs[0].stated, console)
        expected = ", ".join(f"{blocks} {form}" for form, blocks in EXPECTED_BLOCKS.items())
        console.print()
        console.print(f"reusable blocks as expected ({expected}): {'yes' if self.holds else 'no'}", style="bold")
        console.print(str(self.conditions))

    def chart(self) -> Chart:
        def series(value: Callable[[Run, str], float]) -> dict[str, list[float]]:
            return {NAMES[run.cache]: [value(run, form) for form in FORMS] for run in self.runs}

        reusable, rates = series(lambda run, form: run.reusable[form]), series(_hit_percent)
        panels = [
            Panel(f"reusable blocks, of {BLOCKS}", FORMS, reusable, float(BLOCKS)),
            Panel("hit rate, %", FORMS, rates, 100.0),
            Panel("median TTFT, ms", FORMS, series(lambda run, form: run.timed.row(form).median_ttft_ms)),
        ]
        return Chart(f"The time of day in a system prompt, {self.conditions.model}", panels, str(self.conditions))


def _hit_percent(run: Run, form: str) -> float:
    return 100 * run.stated.hit_rates[form]


def _print_run(run: Run, console: Console) -> None:
    console.print()
    console.print(f"{NAMES[run.cache]}, block size {run.timed.block_size}", style="bold")
    console.print()
    console.print(f"What a request finds of one a second earlier, in blocks of {BLOCK_SIZE}")
    for form, blocks in run.reusable.items():
        console.print(f"  {form:<17} {bar(blocks / BLOCKS)} {blocks:>5} of {BLOCKS}", soft_wrap=True)
    console.print()
    console.print(f"Hit rate over {run.stated.stream.requests} requests")
    for form, rate in run.stated.hit_rates.items():
        console.print(f"  {form:<17} {bar(rate)} {rate:>6.1%}", soft_wrap=True)
    slowest = max(row.median_ttft_ms for row in run.timed.rows)
    console.print()
    console.print(f"Time to first token, median of {len(run.timed.rows[0].answers)} requests a form")
    for row in run.timed.rows:
        waited = row.median_ttft_ms
        console.print(f"  {row.form:<17} {bar(waited / slowest)} {waited:>5,.0f} ms", soft_wrap=True)
    console.print()
    console.print(rows_table(run.timed.rows))
    console.print()
    console.print(sentence(run), style="bold")
    if run.variations:
        console.print()
        console.print("What the hit rate depends on: the stated stream, and one thing changed at a time")
        _print_variations(run, console)
        console.print()
        console.print(dependence(run), style="bold")


def sentence(run: Run) -> str:
    """The figures of one cache in a sentence."""
    rates, (top, turn) = run.stated.hit_rates, (run.timed.row(form) for form in (AT_TOP, IN_TURN))
    lost = run.reusable[IN_TURN] - run.reusable[AT_END]
    cost = f"{lost} block{'s' * (lost != 1)} of {BLOCK_SIZE} tokens"
    return (
        f"At the top of the system prompt the time makes the hit rate fall from {rates[IN_TURN]:.1%} to "
        f"{rates[AT_TOP]:.1%} and the first token come {top.median_ttft_ms / turn.median_ttft_ms:,.1f} times later; at "
        f"its end it costs {cost}; in the user's turn, none."
    )


def dependence(run: Run) -> str:
    """How much the variations change the two rates, in sentences."""
    sharing = [v for v in run.variations if v.stream.turn_tokens == run.stated.stream.turn_tokens]
    others = [v for v in run.variations if v not in sharing]
    sentences = []
    if sharing:
        least, most = _range(AT_TOP, sharing)
        sentences.append(
            f"With the time at the top the rate is little more than the share of requests that share a second or "
            f"reread their own turns: {least:.1%} to {most:.1%} here."
        )
    if others:
        least, most = _range(IN_TURN, others)
        sentences.append(
            f"With it in the user's turn the rate depends on how long the turns are: {least:.1%} to {most:.1%} here."
        )
    return " ".join(sentences)


def _range(form: str, variations: list[StreamRates]) -> tuple[float, float]:
    rates = [rates.hit_rates[form] for rates in variations]
    return min(rates), max(rates)


def _print_variations(run: Run, console: Console) -> None:
    table = plain_table(["", f"hit rate\n{AT_TOP}", f"\n{IN_TURN}"], ["same\nsecond", "later\nturns", "turn,\ntokens"])
    for index, rates in enumerate((run.stated, *run.variations)):
        stream = rates.stream
        bars = (f"{bar(rates.hit_rates[form], 12)} {rates.hit_rates[form]:>6.1%}" for form in (AT_TOP, IN_TURN))
        figures = (f"{stream.same_second:.0%}", f"{stream.later_turns:.0%}", f"{stream.turn_tokens:,}")
        table.add_row("changed" if index else "as stated", *bars, *figures)
    console.print(table)


def _print_stream(rates: StreamRates, console: Console) -> None:
    stream = rates.stream
    console.print()
    console.print(
        f"Hit rate: {DEFINITION}; caches and scheduler only, no model. The stated stream (seed {stream.seed}): "
        f"{stream.requests} requests. {stream.num_new} begin a conversation, {SECONDS_BETWEEN} seconds apart; "
        f"{stream.num_same_second} more ({stream.same_second:.0%}) come in the same second as one of these, when that "
        f"one has its first token; {stream.num_later_turns} ({stream.later_turns:.0%}) are the next turn of an earlier "
        f"conversation, which keeps the system prompt it began with. A turn is {stream.turn_tokens} tokens (and the "
        f"time, where it stands there), an answer is {ANSWER!r}. "
        f"Production traffic in the report that this follows fell from about 89 % to about 3 %; in {stream.requests} "
        f"requests, one that hits at the top is about {SYSTEM_TOKENS / rates.mean_prompt_tokens / stream.requests:.1%}."
    )


EXPERIMENT = Timestamp
