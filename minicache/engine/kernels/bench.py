"""How fast the kernels are on this GPU, as fractions of the bandwidth and the FLOPs it reaches in the same run."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
import triton

from minicache.common.progress import Progress, silent
from minicache.engine.attention import Batch
from minicache.engine.errors import BackendUnavailable
from minicache.engine.kernels.layout import Layout
from minicache.engine.kernels.paged_attention import paged_attention
from minicache.engine.kernels.paged_decode import paged_decode
from minicache.engine.kernels.store_kv import store_kv

KV_HEADS, GROUP, HEAD_DIM, BLOCK_SIZE = 8, 4, 128, 16
DTYPE = torch.bfloat16
DEVICE = "cuda"
ROUNDS = 30
COPIED = 1 << 30  # bytes: far more than any cache holds
FLUSHED = 1 << 30  # bytes written before each call: they flush every cache, and let the host run ahead meanwhile
SIDE = 8192  # of the matrices whose product is timed
STORED = 8192  # tokens
DECODES = ((1, 32768), (8, 16384), (64, 4096), (256, 1024))  # sequences, context
PROMPTS = ((1, 8192, 0), (4, 2048, 0), (4, 512, 7680))  # sequences, rows, cached prefix


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement. `fraction` is of the copy bandwidth where memory bounds the kernel, else of matmul's FLOPs."""

    kernel: str
    shape: str
    microseconds: float
    bound: str
    fraction: float
    torch_microseconds: float | None


@dataclass(slots=True)
class KernelBench:
    device: str
    torch: str
    triton: str
    dtype: str
    head_dim: int
    copy_gb_s: float
    matmul_tflop_s: float
    rows: list[Row] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def run(report: Progress = silent) -> KernelBench:
    """Measure. Raises `BackendUnavailable` without a GPU, because the speed of interpreted kernels means nothing."""
    if not torch.cuda.is_available():
        raise BackendUnavailable(
            "kernels bench needs a GPU, and torch sees none: `minicache kernels check` compiles the kernels without one"
        )
    result = KernelBench(
        device=torch.cuda.get_device_name(),
        torch=torch.__version__,
        triton=triton.__version__,
        dtype=str(DTYPE).removeprefix("torch."),
        head_dim=HEAD_DIM,
        copy_gb_s=copy_bandwidth() / 1e9,
        matmul_tflop_s=matmul_rate() / 1e12,
    )
    total = len(DECODES) + len(PROMPTS) + 1
    result.rows.append(_store(result))
    for sequences, context in DECODES:
        report("decode", len(result.rows), total)
        result.rows.extend(_decode(sequences, context, result))
    for shape in PROMPTS:
        report("prompt", len(result.rows), total)
        result.rows.append(_prompt(*shape, result))
    return result


def seconds(run: Callable[[], Any]) -> float:
    """Median seconds of a call on the GPU, whose caches are flushed before each."""
    flush = torch.empty(FLUSHED, dtype=torch.int8, device=DEVICE)
    for _ in range(3):
        run()
    times = []
    for _ in range(ROUNDS):
        flush.zero_()
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The host runs ahead while the GPU flushes, so that the events time the kernel and not its launch.
        began.record()
        run()
        ended.record()
        torch.cuda.synchronize()
        times.append(began.elapsed_time(ended) / 1e3)
    return median(times)


def copy_bandwidth() -> float:
    """Bytes a second, read and written, of a copy within the GPU's memory."""
    source = torch.empty(COPIED, dtype=torch.int8, device=DEVICE)
    target = torch.empty_like(source)
    return 2 * COPIED / seconds(lambda: target.copy_(source))


def matmul_rate() -> float:
    """FLOPs a second of torch's product of two large matrices."""
    a, b = (torch.randn(SIDE, SIDE, dtype=DTYPE, device=DEVICE) for _ in range(2))
    return 2 * SIDE**3 / seconds(lambda: a @ b)


def paged(sequences: int, context: int, num_rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Layout]:
    """Queries, caches whose blocks lie in random order, and the batch of the last `num_rows` of each context."""
    per_sequence = -(-context // BLOCK_SIZE)
    order = (torch.randperm(sequences * per_sequence) + 1).view(sequences, per_sequence).tolist()
    batch = Batch.build([(context - num_rows, num_rows, table) for table in order], BLOCK_SIZE, DEVICE)
    q = torch.randn(sequences * num_rows, KV_HEADS * GROUP, HEAD_DIM, dtype=DTYPE, device=DEVICE)
    shape = (sequences * per_sequence + 1, BLOCK_SIZE, KV_HEADS, HEAD_DIM)
    k, v = (torch.randn(shape, dtype=DTYPE, device=DEVICE) for _ in range(2))
    return q, k, v, Layout.of(batch)


def _store(result: KernelBench) -> Row:
    q, k, v, layout = paged(1, STORED, STORED)
    new = q[:, :KV_HEADS].contiguous()
    time = seconds(lambda: store_kv(new, new, k, v, layout.batch.slots))
    # One tensor is stored twice, so it is read from memory once.
    reached = 3 * new.numel() * new.element_size() / time
    return Row("store_kv", f"{STORED:,} tokens", time * 1e6, "memory", reached / (result.copy_gb_s * 1e9), None)


def _decode(sequences: int, context: int, result: KernelBench) -> list[Row]:
    q, k, v, layout = paged(sequences, context, 1)
    moved = 2 * sequences * context * KV_HEADS * HEAD_DIM * DTYPE.itemsize
    # torch's attention gets each sequence's keys and values in one piece, (S, Hkv, c, D).
    keys, values = (torch.randn(sequences, KV_HEADS, context, HEAD_DIM, dtype=DTYPE, device=DEVICE) for _ in range(2))
    queries = q.unflatten(1, (KV_HEADS, GROUP))  # the heads of a group as the rows of a query: nothing is repeated
    torch_time = seconds(lambda: F.scaled_dot_product_attention(queries, keys, values))
    shape = f"{sequences} × {context:,} keys"
    rows = []
    for name, kernel in (("paged_decode", paged_decode), ("paged_attention", paged_attention)):
        time = seconds(lambda kernel=kernel: kernel(q, k, v, layout))  # type: ignore[misc]
        fraction = moved / time / (result.copy_gb_s * 1e9)
        rows.append(Row(name, shape, time * 1e6, "memory", fraction, torch_time * 1e6))
    return rows


def _prompt(sequences: int, num_rows: int, cached: int, result: KernelBench) -> Row:
    context = cached + num_rows
    q, k, v, layout = paged(sequences, context, num_rows)
    pairs = num_rows * context - num_rows * (num_rows - 1) // 2
    flops = 4 * sequences * HEAD_DIM * KV_HEADS * GROUP * pairs
    time = seconds(lambda: paged_attention(q, k, v, layout))
    queries = q.view(sequences, num_rows, -1, HEAD_DIM).transpose(1, 2)
    keys, values = (torch.randn(sequences, KV_HEADS, context, HEAD_DIM, dtype=DTYPE, device=DEVICE) for _ in range(2))
    # With a cached prefix the triangle is not the plain one, and a mask tensor takes torch off its fast path.
    torch_time = None
    if not cached:
        torch_time = 1e6 * seconds(
            lambda: F.scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)
        )
    shape = f"{sequences} × {num_rows:,} rows" + (f" after {cached:,}" if cached else "")
    fraction = flops / time / (result.matmul_tflop_s * 1e12)
    return Row("paged_attention", shape, time * 1e6, "compute", fraction, torch_time)
