"""The speed of the engine on this machine, compared with transformers in the same process and with the machine's
limits.

    prefill     a cold prompt of 2,999 tokens, from its submission to its first token
    one token   one more token, with 3,000 to 3,007 tokens of context
    warm        the prompt again with a different end: all but 55 tokens are cached (only our engine)
    batch of 8  one more token for each of 8 sequences, whose contexts begin at 65 to 96 tokens and grow by 31

The arms take turns at every single measurement, so that a machine that slows down slows both. A ratio is the median of
the ratios of two neighbouring measurements. Each round also measures two yardsticks: a matrix product of the model's
shape, and a copy.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from rich.console import Console

from minicache.bench.conditions import Conditions
from minicache.bench.engine_arms import Arm, MinicacheArm, TransformersArm
from minicache.bench.experiment import Experiment, ModelName, Option, Result, Show, discard
from minicache.bench.tables import bar, plain_table
from minicache.common.memory import peak_bytes
from minicache.common.progress import Counter, Progress, silent
from minicache.core.errors import InvalidArgument

if TYPE_CHECKING:
    from minicache.engine import Engine

PROMPT_TOKENS = 2999
WARM_TAIL = 55  # what remains of 2,999 is 184 blocks of 16
BATCH = tuple(64 + 31 * i // 7 for i in range(8))  # lengths of the prompts
SINGLE_STEPS, BATCH_STEPS = 8, 32
COPIED = 1 << 26  # float32 numbers: far more than any CPU's cache holds

PREFILL, ONE_TOKEN, BATCH_OF_8, WARM = "prefill", "one token", "batch of 8", "warm"
OURS, THEIRS = "minicache", "transformers"

# How many times as fast as transformers 5.24 the engine wants to be with SmolLM2, float32, block size 16, on 2 quiet
# cores.
GOALS = {PREFILL: 0.95, ONE_TOKEN: 1.2, BATCH_OF_8: 1.5}
GOALS_HOLD_FOR = ("smollm2", 16)  # model, block size


@dataclass(frozen=True)
class EngineBench(Experiment):
    """Prefill and decoding with a real model: speed, memory, and the fraction of the machine's own speed."""

    model: ModelName
    against: Annotated[str | None, Option("Measure this in the same rounds.", one_of=(THEIRS,))] = None
    block_size: Annotated[int, Option("Tokens of a block of the KV cache.", min=1)] = 16
    rounds: Annotated[int, Option("Each is a cold prompt, a warm one and a batch.", min=1)] = 3

    has_chart: ClassVar = False

    @property
    def packages(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("torch",) if self.against is None else ("torch", self.against)

    def run(self, progress: Progress = silent, show: Show = discard) -> "Found":
        """Measure. Takes minutes with a real model. Raises as the model store, the engine and an import of transformers
        do."""
        from minicache.engine.models import store as model_store
        from minicache.engine.models.loader import load_config

        started = time.perf_counter()
        folder = model_store.resolve(self.model)
        config = load_config(folder)
        prompts = Prompts(config.vocab_size, prompt_length(self.model, config.max_positions))
        counter = Counter(progress, 1 + bool(self.against) + self.rounds)

        counter.next("minicache: loading, warming up")
        room = 2 * len(prompts.long) + sum(length + BATCH_STEPS + self.block_size for length in BATCH)
        ours = MinicacheArm(self.model, self.block_size, room, max_tokens=1 + BATCH_STEPS)
        warm_up(ours, prompts)
        memory = Memory.of(ours.engine)  # before the other arm can raise the peak
        arms: list[Arm] = [ours]
        if self.against:
            counter.next(f"{self.against}: loading, warming up")
            arms.append(TransformersArm(folder))
            warm_up(arms[-1], prompts)
        measured = Measured(arms)
        yardsticks = Yardsticks(len(prompts.long), config.hidden_size, 2 * config.intermediate_size)
        for _ in range(self.rounds):
            counter.next("measuring")
            measure_round(measured, ours, prompts)
            yardsticks.measure()
        return Found(
            conditions=Conditions.of(ours.engine, started),
            block_size=self.block_size,
            prompt_tokens=len(prompts.long),
            warm_tokens=WARM_TAIL,
            batch_contexts=(BATCH[0] + 1, BATCH[-1] + BATCH_STEPS),
            timings=measured.timings,
            work=Work.of(ours.engine, len(prompts.long), [length + BATCH_STEPS // 2 for length in BATCH]),
            machine=yardsticks.machine(),
            memory=memory,
            equal_tokens=measured.equal,
            compared_tokens=measured.compared,
        )


@dataclass
class Timing:
    """The samples of one operation by arm. Samples with the same index were taken one right after the other."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, arm: str, seconds: float) -> None:
        self.seconds.setdefault(arm, []).append(seconds)

    def median(self, arm: str) -> float:
        return median(self.seconds[arm])

    @property
    def ratio(self) -> float | None:
        """By what factor our engine is faster: the median of the ratios of neighbours. `None` without a second arm."""
        if THEIRS not in self.seconds:
            return None
        pairs = zip(self.seconds[THEIRS], self.seconds[OURS], strict=True)
        return median(theirs / ours for theirs, ours in pairs)


@dataclass(frozen=True)
class Work:
    """The least work of the operations: the FLOPs of a prefill, and the bytes of weights and KV that a step reads."""

    prefill_flops: int
    one_token_bytes: int
    batch_bytes: int

    @classmethod
    def of(cls, engine: "Engine", prompt_tokens: int, batch_contexts: Sequence[int]) -> "Work":
        model, pool = engine.runner.model, engine.runner.kv_cache
        layers = [(layer.qkv, layer.output, layer.gate_up, layer.down) for layer in model.layers]
        in_layers = sum(linear.weight.numel() for layer in layers for linear in layer)
        head = model.lm_head.weight.numel()
        heads = model.config.num_heads * model.config.head_dim
        scores = 2 * heads * prompt_tokens**2 * len(layers)  # two products over half of all pairs of positions
        token = kv_bytes_per_token(engine)
        weights = (in_layers + head) * pool.k[0].element_size()
        return cls(
            prefill_flops=2 * prompt_tokens * in_layers + 2 * head + scores,
            one_token_bytes=weights + token * prompt_tokens,
            batch_bytes=weights + token * sum(batch_contexts),
        )


@dataclass(frozen=True)
class Machine:
    """The medians of the yardsticks. A copy of n bytes counts as 2n bytes: n read and n written."""

    product_shape: tuple[int, int, int]
    flops_per_s: float
    bytes_per_s: float


@dataclass(frozen=True)
class Memory:
    """`peak` is the largest resident size of the process with our engine alone: weights, pool, and Python with
    torch."""

    peak: int | None
    weights: int
    kv_pool: int
    kv_per_token: int

    @classmethod
    def of(cls, engine: "Engine") -> "Memory":
        model, pool = engine.runner.model, engine.runner.kv_cache
        linears = [linear for layer in model.layers for linear in (layer.qkv, layer.output, layer.gate_up, layer.down)]
        tensors = {tensor.data_ptr(): tensor for tensor in (model.embedding, *(each.weight for each in linears))}
        tensors[model.lm_head.weight.data_ptr()] = model.lm_head.weight  # the embedding itself where they are tied
        return cls(
            peak=peak_bytes(),
            weights=sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()),
            kv_pool=sum(layer.numel() * layer.element_size() for layer in (*pool.k, *pool.v)),
            kv_per_token=kv_bytes_per_token(engine),
        )


def kv_bytes_per_token(engine: "Engine") -> int:
    pool = engine.runner.kv_cache
    return sum(layer[0, 0].numel() * layer.element_size() for layer in (*pool.k, *pool.v))


def prompt_length(model: str, context: int) -> int:
    """2,999 tokens, or as many as fit into the model's context. Raises `InvalidArgument` if these are too few."""
    needed = BATCH[-1] + BATCH_STEPS + 1
    if context < needed:
        raise InvalidArgument(f"{model} has a context of {context} tokens; this benchmark needs {needed}")
    return min(PROMPT_TOKENS, context - BATCH_STEPS - 1)


class Prompts:
    """Token ids drawn with a fixed seed, because the text does not change the speed."""

    def __init__(self, vocab_size: int, length: int) -> None:
        self._random, self._vocab_size = random.Random(0), vocab_size
        self.long = self._tokens(length)
        self.batch = [self._tokens(length) for length in BATCH]

    def _tokens(self, count: int) -> list[int]:
        return self._random.choices(range(self._vocab_size), k=count)

    def with_another_end(self) -> list[int]:
        return self.long[:-WARM_TAIL] + self._tokens(WARM_TAIL)


def warm_up(arm: Arm, prompts: Prompts) -> None:
    """Run every operation once, so that memory is mapped, kernels are chosen and weights are laid out."""
    for batch in ([prompts.long], prompts.batch):
        arm.start(batch)
        arm.step()


class Measured:
    """The times of all arms, and the number of tokens on which they agreed. The arm that begins changes in every
    turn."""

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
    """The speed of this machine in float32: the engine's matrix product `(rows, inner) @ (inner, columns)`, and a
    copy."""

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


@dataclass(frozen=True)
class Found(Result):
    """`warm_tokens` are computed when warm, `batch_contexts` the shortest and the longest context of the batch of 8.
    `equal_tokens` of `compared_tokens` were the same in both arms."""

    conditions: Conditions
    block_size: int
    prompt_tokens: int
    warm_tokens: int
    batch_contexts: tuple[int, int]
    timings: dict[str, Timing]
    work: Work
    machine: Machine
    memory: Memory
    equal_tokens: int
    compared_tokens: int

    def goal(self, name: str) -> float | None:
        """The goal for the ratio to transformers; `None` if there is no goal."""
        return GOALS.get(name) if (self.conditions.model, self.block_size) == GOALS_HOLD_FOR else None

    def met(self, name: str) -> bool | None:
        goal, ratio = self.goal(name), self.timings[name].ratio
        return None if goal is None or ratio is None else ratio >= goal

    @property
    def shares(self) -> dict[str, float]:
        """The fraction of the machine's rate, of products or of copies, that each operation reaches."""
        prefill, one_token, batch = (self.timings[name].median(OURS) for name in (PREFILL, ONE_TOKEN, BATCH_OF_8))
        return {
            PREFILL: self.work.prefill_flops / prefill / self.machine.flops_per_s,
            ONE_TOKEN: self.work.one_token_bytes / one_token / self.machine.bytes_per_s,
            BATCH_OF_8: self.work.batch_bytes / batch / self.machine.bytes_per_s,
        }

    def to_json(self) -> dict[str, Any]:
        operations = {
            name: {
                "median_s": {arm: timing.median(arm) for arm in timing.seconds},
                "ratio": timing.ratio,
                "goal": self.goal(name),
                "met": self.met(name),
                "samples_s": timing.seconds,
            }
            for name, timing in self.timings.items()
        }
        plain = {key: value for key, value in asdict(self).items() if key not in ("timings", "conditions")}
        conditions = asdict(self.conditions)
        return {"benchmark": "engine", **conditions, **plain, "operations": operations, "shares": self.shares}

    def table(self, console: Console) -> None:
        _print_timings(self, console)
        cold, warm = (self.timings[name].median(OURS) for name in (PREFILL, WARM))
        console.print(
            f"warm: with all but {self.warm_tokens} of the {self.prompt_tokens:,} prompt tokens in the cache the "
            f"first token comes after {1000 * warm:,.0f} ms, {cold / warm:,.1f} times sooner than cold."
        )
        _print_shares(self, console)
        memory = self.memory
        peak = "not known" if memory.peak is None else megabytes(memory.peak)
        console.print()
        console.print(
            f"memory: {peak} at the peak, the engine alone; of these {megabytes(memory.weights)} weights; the KV "
            f"pool takes {megabytes(memory.kv_pool)} when full, {memory.kv_per_token:,} bytes a token."
        )
        ran = self.conditions
        console.print(
            f"{ran.model}, {ran.dtype}, {ran.device}, block size {self.block_size}, {ran.threads} threads, "
            f"load {ran.load:.1f}; {ran.seconds:.0f} s in all."
        )


def _print_timings(found: Found, console: Console) -> None:
    numbers = [f"{OURS}\nms", "\ntokens/s"]
    if found.compared_tokens:
        numbers += [f"{THEIRS}\nms", "times\nas fast", "\ngoal", "\nmet"]
    table = plain_table(["\nmedian"], numbers)
    for name, tokens in ((PREFILL, found.prompt_tokens), (ONE_TOKEN, 1), (BATCH_OF_8, 8)):
        timing, goal = found.timings[name], found.goal(name)
        ours = timing.median(OURS)
        cells = [f"{1000 * ours:,.1f}", f"{tokens / ours:,.1f}"]
        if timing.ratio is not None:
            cells += [f"{1000 * timing.median(THEIRS):,.1f}", f"{timing.ratio:.2f}"]
            cells += ["–" if goal is None else f"{goal:.2f}", {True: "yes", False: "no", None: "–"}[found.met(name)]]
        table.add_row(name, *cells)
    console.print(table)
    first, last = found.batch_contexts
    console.print()
    console.print(
        f"prefill: a cold prompt of {found.prompt_tokens:,} tokens, to its first token. one token: one more after "
        f"it. batch of 8: one more for each of 8 sequences with {first} to {last} tokens of context."
    )
    if found.compared_tokens:
        console.print(
            f"times as fast: the median of neighbours' ratios. Both chose the same token {found.equal_tokens:,} times "
            f"of {found.compared_tokens:,}."
        )
    if any(found.met(name) is False for name in found.timings):
        console.print(f"Goals are for 2 quiet cores; the load of this machine was {found.conditions.load:.1f}.")


def _print_shares(found: Found, console: Console) -> None:
    machine, work, shares = found.machine, found.work, found.shares
    rows, inner, columns = machine.product_shape
    console.print()
    console.print(
        f"This machine, in the same minutes: a product [{rows}, {inner}] × [{inner}, {columns}] at "
        f"{machine.flops_per_s / 1e9:,.0f} GFLOP/s, a copy at {machine.bytes_per_s / 1e9:,.1f} GB/s (read and written)."
    )
    for name, needs in (
        (PREFILL, f"{work.prefill_flops / 1e9:,.0f} GFLOP"),
        (ONE_TOKEN, f"{megabytes(work.one_token_bytes)} of weights and KV"),
        (BATCH_OF_8, f"{megabytes(work.batch_bytes)} of weights and KV"),
    ):
        rate = "the product's rate" if name == PREFILL else "the copy's rate"
        share = shares[name]
        console.print(f"{name:<10} {bar(min(1, share))} {share:4.0%} of {rate} ({needs})", soft_wrap=True)


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


EXPERIMENT = EngineBench
