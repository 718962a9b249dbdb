"""The three-forms experiment: one system prompt, three places for a request id, three very different hits.

    stable        You are the support assistant …              the same tokens each time: all but the last can hit
    id at start   Request id 3f9c… You are the support …       the first id token differs: nothing after it can hit
    id at end     You are the support … Request id 3f9c…       only the id and what follows it are computed

Two warm-ups with the stable form come first: one fills the cache, one takes the path of a hit. Then each round sends
the three forms one after the other, so that a machine that slows down slows all three. The control arm sends the same
prompts to an engine without a cache; since that remembers nothing, equal prompts are sent to it once.
"""

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minicache.bench.conditions import Conditions
from minicache.bench.measure import BLOCK_SIZES, Chat, Counter, Progress, Tokens, messages, require_caches
from minicache.bench.measure import ask as _ask
from minicache.bench.support_bot import QUESTION, system_prompt
from minicache.bench.three_forms_result import Answer, Arm, Result, Row
from minicache.core.errors import require_int

if TYPE_CHECKING:
    from minicache.engine import Engine

FORMS = STABLE, ID_AT_START, ID_AT_END = "stable", "id at start", "id at end"
PROMPT_TOKENS = 2999  # of the stable form's whole rendered prompt
QUICK_PROMPT_TOKENS = PROMPT_TOKENS // 10
WARM_UPS = 2

Round = dict[str, Tokens]  # form -> prompt


@dataclass(frozen=True)
class Settings:
    """What to run. `seed` makes the request ids: equal seeds give equal prompts. Raises `InvalidArgument`."""

    model: str
    caches: tuple[str, ...] = ("hash", "radix")
    prompt_tokens: int = PROMPT_TOKENS
    rounds: int = 5
    max_tokens: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        require_int("rounds", self.rounds, 1)
        require_int("max_tokens", self.max_tokens, 1)
        require_caches(self.caches)


def run(settings: Settings, rounds: list[Round], progress: Progress = lambda what, done, total: None) -> Result:
    """Run the experiment, minutes with a real model: `rounds` are what `prepare` gave. Raises as the engine does."""
    started = time.perf_counter()
    distinct = list(dict.fromkeys(prompt for prompts in rounds for prompt in prompts.values()))
    counter = Counter(progress, len(settings.caches) * (WARM_UPS + len(FORMS) * len(rounds)) + len(distinct))

    runs = [_measure(settings, cache, rounds, counter) for cache in settings.caches]
    control = _control(settings, distinct, counter)
    return Result(
        conditions=Conditions.now(settings.model, started),
        runs=runs,
        control=Arm("none", BLOCK_SIZES["none"], _control_rows(rounds, control)),
        differences=[line for arm in runs for line in _differences(arm, rounds, control)],
    )


def prepare(settings: Settings) -> list[Round]:
    """The prompts of each round; loads no model. Raises as the model store does, and `RequestTooLong` for a short
    context."""
    chat, ids = Chat(settings.model), random.Random(settings.seed)

    def prompt(system: str) -> Tokens:
        return chat.prompt(messages(system, QUESTION))

    stable = system_prompt(lambda system: len(prompt(system)), settings.prompt_tokens)
    rounds = []
    for _ in range(settings.rounds):
        sentence = f"Request id {ids.randbytes(16).hex()}."
        forms = (stable, f"{sentence} {stable}", f"{stable} {sentence}")
        rounds.append(dict(zip(FORMS, map(prompt, forms), strict=True)))
    chat.require_room((prompt for prompts in rounds for prompt in prompts.values()), settings.max_tokens)
    return rounds


def _measure(settings: Settings, cache: str, rounds: list[Round], counter: Counter) -> Arm:
    engine = _engine(settings, cache, [prompt for prompts in rounds for prompt in prompts.values()])
    for _ in range(WARM_UPS):
        counter.next(f"{cache} cache: warming up")
        _ask(engine, rounds[0][STABLE], settings.max_tokens)
    rows = {form: Row(form, len(rounds[0][form])) for form in FORMS}
    for prompts in rounds:
        for form, prompt in prompts.items():
            counter.next(f"{cache} cache: {form}")
            rows[form].answers.append(_ask(engine, prompt, settings.max_tokens))
    return Arm(cache, BLOCK_SIZES[cache], list(rows.values()))


def _control(settings: Settings, distinct: list[Tokens], counter: Counter) -> dict[Tokens, Answer]:
    engine = _engine(settings, "none", [max(distinct, key=len)])
    answers = {}
    for prompt in distinct:
        counter.next("no cache: the same prompts")
        answers[prompt] = _ask(engine, prompt, settings.max_tokens)
    return answers


def _engine(settings: Settings, cache: str, prompts: list[Tokens]) -> "Engine":
    """An engine with room for all that `prompts`, the stable one first, leave in the cache: nothing is evicted."""
    from minicache.engine import Engine, EngineConfig

    block_size = BLOCK_SIZES[cache]
    own = [len(prompt) - _shared(prompt, prompts[0]) for prompt in prompts]
    each = settings.max_tokens + 2 * block_size  # the answer, and the blocks that are cut at either end
    tokens = len(prompts[0]) + sum(own) + each * (len(prompts) + WARM_UPS)
    num_blocks = -(-tokens // block_size) + 1  # block 0 is the null block
    config = EngineConfig(
        model=settings.model, cache=cache, block_size=block_size, num_blocks=num_blocks, dtype="float32"
    )
    return Engine(config)


def _shared(one: Tokens, other: Tokens) -> int:
    """Tokens at the beginning of both."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _control_rows(rounds: list[Round], control: dict[Tokens, Answer]) -> list[Row]:
    rows = []
    for form in FORMS:
        prompts = dict.fromkeys(prompts[form] for prompts in rounds)
        rows.append(Row(form, len(rounds[0][form]), [control[prompt] for prompt in prompts]))
    return rows


def _differences(arm: Arm, rounds: list[Round], control: dict[Tokens, Answer]) -> list[str]:
    lines = []
    for row in arm.rows:
        for number, (answer, prompts) in enumerate(zip(row.answers, rounds, strict=True), start=1):
            plain = control[prompts[row.form]]
            if answer.token_ids != plain.token_ids:
                where = f"{arm.cache} cache, {row.form}, round {number}"
                lines.append(f"{where}: {list(answer.token_ids)} with the cache, {list(plain.token_ids)} without")
    return lines
