"""The timestamp experiment: one line with the time of day, in three places of a prompt of 150 full blocks.

    at the top     14:03:22 is the time … You are the support …     the first block differs: 0 blocks are reusable
    at the end     You are the support … The time is 14:03:22       the last block differs: 149 blocks are
    in the turn    You are the support …  |  14:03:22 Where is …    the system prompt never differs: 150 blocks are

In each form the rendered prompt has exactly 2,400 tokens up to the end of the system content, the time included where
it stands inside. Three measurements: what two requests at different seconds share; the hit rate over a stream of
requests (`timestamp_stream.py`), both through the caches without the model; and the time to first token with it.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

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
from minicache.bench.replay import Replay
from minicache.bench.support_bot import QUESTION, system_prompt
from minicache.bench.three_forms_result import Arm, Row
from minicache.bench.timestamp_result import Result, Run, StreamRates
from minicache.bench.timestamp_stream import Stream, arrivals, clock
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


@dataclass(frozen=True)
class Settings:
    """What to run: the stated stream, and what is changed in it one at a time. Raises `InvalidArgument`."""

    model: str
    caches: tuple[str, ...] = ("hash", "radix")
    timed_requests: int = 3
    max_tokens: int = 8
    stream: Stream = STATED
    variations: tuple[dict[str, Any], ...] = VARIATIONS

    def __post_init__(self) -> None:
        require_int("timed_requests", self.timed_requests, 1)
        require_int("max_tokens", self.max_tokens, 1)
        require_caches(self.caches)


def prepare(settings: Settings) -> "Prompts":
    """What `run` takes; loads no model. Raises as the model store does, and `RequestTooLong` for a short context."""
    prompts = Prompts(Chat(settings.model))
    prompts.chat.require_room((prompts.single(form, 0, QUESTION) for form in FORMS), settings.max_tokens)
    return prompts


def run(settings: Settings, prompts: "Prompts", progress: Progress = lambda what, done, total: None) -> Result:
    """Run the experiment: `prompts` are what `prepare` gave. Raises as the engine does."""
    started = time.perf_counter()
    streams = [settings.stream, *(replace(settings.stream, **change) for change in settings.variations)]
    timed = {form: _timed_prompts(prompts, form, settings) for form in FORMS}
    counter = Counter(progress, len(streams) + len(settings.caches) * len(FORMS) * (1 + settings.timed_requests))

    rates: dict[str, list[StreamRates]] = {cache: [] for cache in settings.caches}
    for stream in streams:
        counter.next("streams of requests through the caches, without the model")
        forms = FORMS if stream == settings.stream else (AT_TOP, IN_TURN)
        rendered = {form: render(prompts, form, stream) for form in forms}
        for cache in settings.caches:
            rates[cache].append(stream_rates(cache, stream, rendered, prompts.answer))
    runs = [
        Run(
            Arm(cache, BLOCK_SIZES[cache], _timed(settings, cache, timed, counter)),
            {form: reusable_blocks(prompts, form, cache) for form in FORMS},
            EXPECTED_BLOCKS,
            BLOCK_SIZE,
            stated=rates[cache][0],
            variations=rates[cache][1:],
        )
        for cache in settings.caches
    ]
    return Result(Conditions.now(settings.model, started), SYSTEM_TOKENS, runs)


class Prompts:
    """The three forms as one model is asked them. Raises `InvalidArgument` if its tokenizer cannot hit the length."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.answer = tuple(chat.tokenizer.encode(ANSWER))
        self._static = {form: self._static_part(form) for form in FORMS}

    def _static_part(self, form: str) -> str:
        return system_prompt(lambda text: self.chat.system_length(_system(form, clock(0), text)), SYSTEM_TOKENS)

    def system(self, form: str, time_of_day: str) -> str:
        """The system content; its rendering, the template's words before it included, has exactly 2,400 tokens."""
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
    """The bare time comes first at the top: even with a token a byte, the seconds are among the first 16 tokens."""
    if form == AT_TOP:
        return f"{time_of_day} is the time of day.\n{static}"
    return f"{static}\nThe time is {time_of_day}" if form == AT_END else static


def reusable_blocks(prompts: Prompts, form: str, cache: str) -> int:
    """Blocks of 16 that the second of two requests finds, a second after the first; asked of the cache itself."""
    one, other = (prompts.single(form, second, QUESTION) for second in (0, 1))
    replay = Replay(cache, 2 * len(one), BLOCK_SIZE)
    replay.send(one, (0,))
    return replay.reusable_tokens(other) // BLOCK_SIZE


def render(prompts: Prompts, form: str, stream: Stream) -> list[Tokens]:
    """The prompts of a stream, in order. A conversation keeps the system prompt that it began with."""
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
    """The requests of one second overlap: the next comes when the one before has its first token."""
    replay = Replay(cache, sum(len(prompt) + len(answer) + BLOCK_SIZE for prompt in prompts))
    seconds = [arrival.second for arrival in arrivals(stream)]
    for prompt, second, following in zip(prompts, seconds, [*seconds[1:], -1], strict=True):
        replay.send(prompt, answer, finish=second != following)
    return replay.hit_rate


def _timed_prompts(prompts: Prompts, form: str, settings: Settings) -> list[Tokens]:
    """The first fills the cache; each of the others comes at another second."""
    return [prompts.single(form, second, QUESTION) for second in range(1 + settings.timed_requests)]


def _timed(settings: Settings, cache: str, prompts: dict[str, list[Tokens]], counter: Counter) -> list[Row]:
    """Round by round, so that a machine that slows down slows all forms."""
    engine = engine_for(settings.model, cache, [p for form in FORMS for p in prompts[form]], settings.max_tokens)
    rows = {form: Row(form, len(prompts[form][0])) for form in FORMS}
    for number in range(1 + settings.timed_requests):
        for form in FORMS:
            what = f"time {form}" if number else "filling the cache"
            counter.next(f"{cache} cache: {what}")
            answer = ask(engine, prompts[form][number], settings.max_tokens)
            if number:
                rows[form].answers.append(answer)
    return list(rows.values())
