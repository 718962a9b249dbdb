"""The cold-warm experiment: one long system prompt, and nobody asks the same question twice.

Each round forgets everything cached and then asks two new questions:

    cold    the cache is empty: the whole prompt is prefilled
    warm    the system prompt is there: only the question is prefilled

The control arm asks the same questions without a cache. The arms take turns, so that a machine that slows down slows
all of them. Decoding reads all the KV of its prompt either way: a cache cannot make it faster.
"""

import time
from dataclasses import dataclass

from minicache.bench.cold_warm_result import COLD, NO_CACHE, WARM, Result, SpeedRow
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
from minicache.bench.support_bot import question, system_prompt
from minicache.bench.three_forms_result import Arm
from minicache.core.errors import InvalidArgument, require_int

SYSTEM_TOKENS = 8500


@dataclass(frozen=True)
class Settings:
    """What to run. `system_tokens` are counted from the prompt's beginning to the end of the system content; None is
    8,500, or as many as the model's context holds. Raises `InvalidArgument`."""

    model: str
    caches: tuple[str, ...] = ("hash", "radix")
    system_tokens: int | None = None
    rounds: int = 5
    max_tokens: int = 32

    def __post_init__(self) -> None:
        if self.system_tokens is not None:
            require_int("system_tokens", self.system_tokens, 1)
        require_int("rounds", self.rounds, 1)
        require_int("max_tokens", self.max_tokens, 2)  # a speed of decoding needs two
        require_caches(self.caches)


@dataclass(frozen=True)
class Plan:
    """The prompts of each round, cold and warm, all with one system prompt. `cut` says whether the model's `context`
    made that shorter than 8,500 tokens."""

    system_tokens: int
    context: int
    cut: bool
    rounds: list[tuple[Tokens, Tokens]]

    @property
    def prompts(self) -> list[Tokens]:
        return [prompt for pair in self.rounds for prompt in pair]


def plan(settings: Settings) -> Plan:
    """Make the prompts; loads no model. Raises `InvalidArgument` if `system_tokens` do not fit the model's context."""
    chat = Chat(settings.model)
    questions = [question(number) for number in range(2 * settings.rounds)]
    room = chat.context - settings.max_tokens - max(chat.turn_length("You help.", text) for text in questions)
    wanted = settings.system_tokens
    if room < 1:
        raise InvalidArgument(
            f"the context of {settings.model}, {chat.context:,} tokens, has no room for a system prompt"
        )
    if wanted is not None and wanted > room:
        raise InvalidArgument(
            f"system_tokens {wanted:,}: beside a question and an answer of {settings.max_tokens} tokens, {room:,} fit "
            f"into the context of {chat.context:,} of {settings.model}"
        )
    length = wanted or min(SYSTEM_TOKENS, room)
    cut = wanted is None and room < SYSTEM_TOKENS
    system = system_prompt(chat.system_length, length)
    prompts = [chat.prompt(messages(system, text)) for text in questions]
    return Plan(length, chat.context, cut, list(zip(prompts[::2], prompts[1::2], strict=True)))


def run(settings: Settings, prepared: Plan, progress: Progress = lambda what, done, total: None) -> Result:
    """Run the experiment: `prepared` is the `plan` of these settings. Raises as the model store and the engine do."""
    started = time.perf_counter()
    arms = (*settings.caches, "none")
    counter = Counter(progress, len(arms) * (1 + 2 * len(prepared.rounds)))
    engines = {}
    for cache in arms:
        counter.next("loading, and warming up with another prompt")
        engines[cache] = engine_for(settings.model, cache, prepared.prompts[:2], settings.max_tokens)
        ask(engines[cache], prepared.prompts[0][:64], 2)
    length = len(prepared.prompts[0])
    rows = {cache: {form: SpeedRow(form, length) for form in _forms(cache)} for cache in arms}
    for pair in prepared.rounds:
        for cache in arms:
            engines[cache].scheduler.reset_cache()
            for form, prompt in zip((COLD, WARM), pair, strict=True):
                form = form if cache != "none" else NO_CACHE
                counter.next(f"{cache} cache: {form}" if cache != "none" else "no cache: the same prompts")
                rows[cache][form].add(len(prompt), ask(engines[cache], prompt, settings.max_tokens))
    runs = [Arm(cache, BLOCK_SIZES[cache], list(rows[cache].values())) for cache in settings.caches]
    control = Arm("none", BLOCK_SIZES["none"], list(rows["none"].values()))
    return Result(
        conditions=Conditions.now(settings.model, started),
        system_tokens=prepared.system_tokens,
        context=prepared.context,
        runs=runs,
        control=control,
        differences=[line for arm in runs for line in _differences(arm, control)],
    )


def _forms(cache: str) -> tuple[str, ...]:
    return (NO_CACHE,) if cache == "none" else (COLD, WARM)


def _differences(arm: Arm, control: Arm) -> list[str]:
    plain = control.row(NO_CACHE).answers
    lines = []
    for form, others in ((COLD, plain[::2]), (WARM, plain[1::2])):
        for number, (answer, other) in enumerate(zip(arm.row(form).answers, others, strict=True), start=1):
            if answer.token_ids != other.token_ids:
                where = f"{arm.cache} cache, {form}, round {number}"
                lines.append(f"{where}: {list(answer.token_ids)} with the cache, {list(other.token_ids)} without")
    return lines
