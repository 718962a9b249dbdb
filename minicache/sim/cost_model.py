"""How long a step takes, as a model: a roofline with its two sides added.

    seconds = overhead + FLOPs / rate + bytes / bandwidth

Every figure that it gives is **modelled**, and is labelled so where it is printed. Use it for what depends on token
counts (the saving of a hit, a prefill among decodes), not for milliseconds: it ignores kernels and overlap.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from minicache.common.suggest import not_one_of
from minicache.core.errors import InvalidArgument
from minicache.core.step_plan import StepPlan

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A dense transformer in figures. `num_linear` counts the weights of the layers (embedding and head left out),
    `num_head` those of the output head; `bytes_per_weight` holds for KV as well. `source` says where they come from."""

    name: str
    num_linear: float
    num_head: float
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    bytes_per_weight: int
    source: str

    @property
    def kv_bytes_per_token(self) -> int:
        return 2 * self.num_layers * self.num_kv_heads * self.head_size * self.bytes_per_weight

    @property
    def weight_bytes(self) -> float:
        """Weights that one step reads."""
        return (self.num_linear + self.num_head) * self.bytes_per_weight


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """`rate` in FLOP/s and `bandwidth` in bytes/s are the peaks times `efficiency`. That is an assumption, and so is
    `overhead`: the seconds that a step takes before it computes anything."""

    name: str
    peak_rate: float
    peak_bandwidth: float
    efficiency: float
    overhead: float
    source: str

    @property
    def rate(self) -> float:
        return self.peak_rate * self.efficiency

    @property
    def bandwidth(self) -> float:
        return self.peak_bandwidth * self.efficiency


MODELS = {
    model.name: model
    for model in (
        ModelSpec(
            "qwen2.5-7b", 6.53e9, 152_064 * 3584, 28, 28, 4, 128, 2,
            "model card and config.json of Qwen/Qwen2.5-7B-Instruct: 6.53 billion non-embedding parameters, 28 layers, "
            "28 query and 4 KV heads of 128, hidden size 3,584, vocabulary 152,064; bfloat16",
        ),
        ModelSpec(
            "smollm2", 106.2e6, 49_152 * 576, 30, 9, 3, 64, 4,
            "config.json of HuggingFaceTB/SmolLM2-135M-Instruct: 134.5 million parameters with a tied embedding of "
            "49,152 x 576, 30 layers, 9 query and 3 KV heads of 64; float32",
        ),
    )
}  # fmt: skip
DEVICES = {
    device.name: device
    for device in (
        DeviceSpec(
            "a100", 312e12, 2.039e12, 0.5, 0.004,
            "NVIDIA A100 datasheet, 80 GB SXM: 312 TFLOP/s bfloat16 dense, 2,039 GB/s",
        ),
        DeviceSpec(
            "h100", 989e12, 3.35e12, 0.5, 0.004,
            "NVIDIA H100 datasheet, SXM: 989 TFLOP/s bfloat16 dense (half of the 1,979 with sparsity), 3.35 TB/s",
        ),
        DeviceSpec(
            "2-cpu-cores", 160e9, 25.6e9, 0.5, 0.002,
            "two cores of 2.5 GHz with two 8-wide float32 FMA units each (AVX2): 160 GFLOP/s; one channel of "
            "DDR4-3200: 25.6 GB/s",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StepCost:
    """The modelled work and time of one step."""

    flops: float
    bytes: float
    seconds: float


@dataclass(frozen=True, slots=True)
class CostModel:
    """The roofline of one model on one device."""

    model: ModelSpec = MODELS["qwen2.5-7b"]
    device: DeviceSpec = DEVICES["a100"]

    @classmethod
    def named(cls, model: str, device: str) -> "CostModel":
        """The cost model of a model and a device by their names. Raises `InvalidArgument`, which lists the names."""
        return cls(_named("model", MODELS, model), _named("device", DEVICES, device))

    def step(self, plan: StepPlan) -> StepCost:
        """The modelled cost of computing `plan`: every weight is read once, and so is the KV of every context."""
        model = self.model
        tokens = attended = read = sampled = 0
        for item in plan.scheduled:
            end = item.start + item.num_tokens
            tokens += item.num_tokens
            attended += item.num_tokens * (item.start + end + 1) // 2  # token i attends to the i + 1 up to itself
            read += end
            sampled += item.samples
        flops = 2 * model.num_linear * tokens + 2 * model.num_head * sampled
        flops += 4 * model.num_layers * model.num_heads * model.head_size * attended
        moved = (read + tokens) * model.kv_bytes_per_token + (model.weight_bytes if tokens else 0)
        seconds = self.device.overhead + flops / self.device.rate + moved / self.device.bandwidth
        return StepCost(flops, moved, seconds)

    def describe(self) -> str:
        """The model in one sentence, to print with its figures."""
        device = self.device
        return (
            f"Times are modelled, not measured: {self.model.name} on {device.name}, "
            f"overhead {1000 * device.overhead:g} ms + FLOPs / {device.rate / 1e12:g} TFLOP/s + "
            f"bytes / {device.bandwidth / 1e9:g} GB/s ({device.efficiency:.0%} of the data sheet's peaks)."
        )


def _named(what: str, table: Mapping[str, T], name: str) -> T:
    if name not in table:
        raise InvalidArgument(f"{what} {not_one_of(name, table)}")
    return table[name]
