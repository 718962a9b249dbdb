"""What the engine's benchmark measured. Times are in seconds, sizes in bytes."""

import resource
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicache.engine import Engine

PREFILL, ONE_TOKEN, BATCH_OF_8, WARM = "prefill", "one token", "batch of 8", "warm"
OURS, THEIRS = "minicache", "transformers"

# How many times as fast as transformers 5.24 the engine wants to be with SmolLM2, float32, block size 16, on 2 quiet
# cores.
GOALS = {PREFILL: 0.95, ONE_TOKEN: 1.2, BATCH_OF_8: 1.5}
GOALS_HOLD_FOR = ("smollm2", 16)  # model, block size


@dataclass
class Timing:
    """Samples of one operation by arm; the arms' samples of one index were taken side by side."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, arm: str, seconds: float) -> None:
        self.seconds.setdefault(arm, []).append(seconds)

    def median(self, arm: str) -> float:
        return median(self.seconds[arm])

    @property
    def ratio(self) -> float | None:
        """How many times as fast ours is: the median of the ratios of neighbours. None without another arm."""
        if THEIRS not in self.seconds:
            return None
        pairs = zip(self.seconds[THEIRS], self.seconds[OURS], strict=True)
        return median(theirs / ours for theirs, ours in pairs)


@dataclass(frozen=True)
class Work:
    """What the operations must compute and read at least: FLOPs of a prefill, bytes of weights and KV of a step."""

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
    """Medians of the yardsticks. A copy of n bytes counts as 2n: n read, n written."""

    product_shape: tuple[int, int, int]
    flops_per_s: float
    bytes_per_s: float


@dataclass(frozen=True)
class Memory:
    """`peak` is the process's largest resident size when the engine has run alone: weights, pool, Python with torch."""

    peak: int
    weights: int
    kv_pool: int
    kv_per_token: int

    @classmethod
    def of(cls, engine: "Engine") -> "Memory":
        model, pool = engine.runner.model, engine.runner.kv_cache
        linears = [linear for layer in model.layers for linear in (layer.qkv, layer.output, layer.gate_up, layer.down)]
        tensors = {tensor.data_ptr(): tensor for tensor in (model.embedding, *(each.weight for each in linears))}
        tensors[model.lm_head.weight.data_ptr()] = model.lm_head.weight  # the embedding itself where they are tied
        unit = 1 if sys.platform == "darwin" else 1024
        return cls(
            peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
            weights=sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()),
            kv_pool=sum(layer.numel() * layer.element_size() for layer in (*pool.k, *pool.v)),
            kv_per_token=kv_bytes_per_token(engine),
        )


def kv_bytes_per_token(engine: "Engine") -> int:
    pool = engine.runner.kv_cache
    return sum(layer[0, 0].numel() * layer.element_size() for layer in (*pool.k, *pool.v))


@dataclass(frozen=True)
class Result:
    """`batch_contexts` are the shortest and the longest context of the batch of 8."""

    model: str
    block_size: int
    prompt_tokens: int
    warm_tokens: int  # computed when warm
    batch_contexts: tuple[int, int]
    timings: dict[str, Timing]
    work: Work
    machine: Machine
    memory: Memory
    equal_tokens: int  # of `compared_tokens`
    compared_tokens: int
    threads: int
    load: float  # the machine's load average over the last minute, at the end
    seconds: float

    def goal(self, name: str) -> float | None:
        """How many times as fast as transformers this wants to be; None where no goal is set."""
        return GOALS.get(name) if (self.model, self.block_size) == GOALS_HOLD_FOR else None

    def met(self, name: str) -> bool | None:
        goal, ratio = self.goal(name), self.timings[name].ratio
        return None if goal is None or ratio is None else ratio >= goal

    @property
    def shares(self) -> dict[str, float]:
        """What part of the machine's rate, of products or of copies, an operation gets out of it."""
        prefill, one_token, batch = (self.timings[name].median(OURS) for name in (PREFILL, ONE_TOKEN, BATCH_OF_8))
        return {
            PREFILL: self.work.prefill_flops / prefill / self.machine.flops_per_s,
            ONE_TOKEN: self.work.one_token_bytes / one_token / self.machine.bytes_per_s,
            BATCH_OF_8: self.work.batch_bytes / batch / self.machine.bytes_per_s,
        }

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
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
        plain = {key: value for key, value in asdict(self).items() if key != "timings"}
        return {"benchmark": "engine", **plain, "operations": operations, "shares": self.shares}
