"""How fast the engine is on this machine, beside transformers in the same process, and beside what the machine can do.

    prefill     a cold prompt of 2,999 tokens, from its submission to its first token
    one token   one more token, with 3,000 to 3,007 tokens of context
    warm        the prompt again with another end: all but 55 tokens are in the cache (the engine alone)
    batch of 8  one more token for each of 8 sequences, whose contexts begin at 65 to 96 tokens and grow by 31

The arms take turns at every single measurement, so that a machine that slows down slows both, and a ratio is the median
of the ratios of neighbours. Two yardsticks are measured in each round: a matrix product of the model's shape, a copy.
"""

import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from minicache.bench.engine_arms import Arm, MinicacheArm, TransformersArm
from minicache.bench.engine_result import BATCH_OF_8, ONE_TOKEN, PREFILL, WARM, Machine, Memory, Result, Timing, Work
from minicache.bench.measure import Counter, Progress
from minicache.core.errors import InvalidArgument, require_int

PROMPT_TOKENS = 2999
WARM_TAIL = 55  # what remains of 2,999 is 184 blocks of 16
BATCH = tuple(64 + 31 * i // 7 for i in range(8))  # lengths of the prompts
SINGLE_STEPS, BATCH_STEPS = 8, 32
COPIED = 1 << 26  # float32 numbers: far more than any CPU's cache holds


@dataclass(frozen=True)
class Settings:
    """What to measure; `against` is None or "transformers". Raises `InvalidArgument`."""

    model: str
    block_size: int = 16
    rounds: int = 3
    against: str | None = None

    def __post_init__(self) -> None:
        require_int("block_size", self.block_size, 1)
        require_int("rounds", self.rounds, 1)
        if self.against not in (None, "transformers"):
            raise InvalidArgument(f"against must be transformers, not {self.against!r}")


def run(settings: Settings, progress: Progress = lambda what, done, total: None) -> Result:
    """Measure; minutes with a real model. Raises as the model store, the engine and importing transformers do."""
    import torch

    from minicache.engine.models import store as model_store
    from minicache.engine.models.loader import load_config

    started = time.perf_counter()
    folder = model_store.resolve(settings.model)
    config = load_config(folder)
    prompts = Prompts(config.vocab_size, prompt_length(settings.model, config.max_positions))
    counter = Counter(progress, 1 + bool(settings.against) + settings.rounds)

    counter.next("minicache: loading, warming up")
    room = 2 * len(prompts.long) + sum(length + BATCH_STEPS + settings.block_size for length in BATCH)
    ours = MinicacheArm(settings.model, settings.block_size, room, max_tokens=1 + BATCH_STEPS)
    warm_up(ours, prompts)
    memory = Memory.of(ours.engine)  # before the other arm can raise the peak
    arms: list[Arm] = [ours]
    if settings.against:
        counter.next("transformers: loading, warming up")
        arms.append(TransformersArm(folder))
        warm_up(arms[-1], prompts)
    measured = Measured(arms)
    yardsticks = Yardsticks(len(prompts.long), config.hidden_size, 2 * config.intermediate_size)
    for _ in range(settings.rounds):
        counter.next("measuring")
        measure_round(measured, ours, prompts)
        yardsticks.measure()
    return Result(
        model=settings.model,
        block_size=settings.block_size,
        prompt_tokens=len(prompts.long),
        warm_tokens=WARM_TAIL,
        batch_contexts=(BATCH[0] + 1, BATCH[-1] + BATCH_STEPS),
        timings=measured.timings,
        work=Work.of(ours.engine, len(prompts.long), [length + BATCH_STEPS // 2 for length in BATCH]),
        machine=yardsticks.machine(),
        memory=memory,
        equal_tokens=measured.equal,
        compared_tokens=measured.compared,
        threads=torch.get_num_threads(),
        load=os.getloadavg()[0],
        seconds=time.perf_counter() - started,
    )


def prompt_length(model: str, context: int) -> int:
    """2,999 tokens, or what the model's context holds beside the tokens that follow; raises `InvalidArgument`."""
    needed = BATCH[-1] + BATCH_STEPS + 1
    if context < needed:
        raise InvalidArgument(f"{model} has a context of {context} tokens; this benchmark needs {needed}")
    return min(PROMPT_TOKENS, context - BATCH_STEPS - 1)


class Prompts:
    """Token ids drawn with a fixed seed: what is said makes no difference to a speed."""

    def __init__(self, vocab_size: int, length: int) -> None:
        self._random, self._vocab_size = random.Random(0), vocab_size
        self.long = self._tokens(length)
        self.batch = [self._tokens(length) for length in BATCH]

    def _tokens(self, count: int) -> list[int]:
        return self._random.choices(range(self._vocab_size), k=count)

    def with_another_end(self) -> list[int]:
        return self.long[:-WARM_TAIL] + self._tokens(WARM_TAIL)


def warm_up(arm: Arm, prompts: Prompts) -> None:
    """Everything once: memory gets mapped, kernels chosen, weights laid out."""
    for batch in ([prompts.long], prompts.batch):
        arm.start(batch)
        arm.step()


class Measured:
    """Times of all arms, and on how many tokens they agreed. The first to take a turn changes from turn to turn."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        self.arms = list(arms)
        self.timings = {name: Timing() for name in (PREFILL, ONE_TOKEN, WARM, BATCH_OF_8)}
        self.equal = self.compared = 0

    def take_turns(self, name: str, call: Callable[[Arm], list[int]]) -> None:
        """Time `call`, which returns new tokens, on each arm."""
        answers = [self.time(name, arm, call) for arm in self.arms]
        if len(answers) > 1:
            self.equal += sum(len(set(tokens)) == 1 for tokens in zip(*answers, strict=True))
            self.compared += len(answers[0])
        self.arms.reverse()

    def time(self, name: str, arm: Arm, call: Callable[[Arm], list[int]]) -> list[int]:
        start = time.perf_counter()
        tokens = call(arm)
        self.timings[name].add(arm.name, time.perf_counter() - start)
        return tokens


def measure_round(measured: Measured, ours: MinicacheArm, prompts: Prompts) -> None:
    measured.take_turns(PREFILL, lambda arm: arm.start([prompts.long]))
    for _ in range(SINGLE_STEPS):
        measured.take_turns(ONE_TOKEN, lambda arm: arm.step())
    again = [prompts.with_another_end()]
    measured.time(WARM, ours, lambda _: ours.start(again, forget=False))
    for arm in measured.arms:
        arm.start(prompts.batch)
    for _ in range(BATCH_STEPS):
        measured.take_turns(BATCH_OF_8, lambda arm: arm.step())


class Yardsticks:
    """What this machine can do, in float32: the engine's matrix product `(rows, inner) @ (inner, columns)`, a copy."""

    def __init__(self, rows: int, inner: int, columns: int) -> None:
        import torch

        from minicache.engine.fast_cpu.products import linear_for

        self._left = torch.ones(rows, inner)
        self._from, self._to = torch.ones(COPIED), torch.empty(COPIED)
        self._product = linear_for(torch.device("cpu"), torch.float32)(torch.ones(columns, inner))
        self._products: list[float] = []
        self._copies: list[float] = []
        self._shape = (rows, inner, columns)

    def measure(self, times: int = 5) -> None:
        for _ in range(times):
            marks = [time.perf_counter()]
            self._product(self._left)
            marks.append(time.perf_counter())
            self._to.copy_(self._from)
            marks.append(time.perf_counter())
            self._products.append(marks[1] - marks[0])
            self._copies.append(marks[2] - marks[1])

    def machine(self) -> Machine:
        rows, inner, columns = self._shape
        flops, moved = 2 * rows * inner * columns, 2 * COPIED * self._from.element_size()
        return Machine(self._shape, flops / median(self._products), moved / median(self._copies))
