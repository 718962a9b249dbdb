"""Compiles the kernels for GPUs that this machine need not have, and reads the resources that they use.

Triton is imported where it is used: the processes that compile must first remove TRITON_INTERPRET.
"""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from minicache.common.progress import Progress, silent

KERNELS = ("store_kv", "paged_attention prompt", "paged_attention decode", "paged_decode", "merge_splits")
DTYPES = ("float16", "bfloat16")
HEAD_SIZES = (64, 128, 256)
# A model's worth of shapes: 32 query heads over 8 key-value heads, blocks of 16 tokens, contexts in 16 splits.
KV_HEADS, GROUP, BLOCK_SIZE, SPLITS = 8, 4, 16, 16
INTEGERS = {"tables": "*i64", "slots": "*i64", "spans": "*i32", "tiles": "*i32"}
SUMS = {"partials": "*fp32", "lse": "*fp32"}
POINTERS = {"float16": "*fp16", "bfloat16": "*bf16", "float32": "*fp32"}


class Target(NamedTuple):
    """A GPU to compile for, and the most shared memory in bytes that a program may use on it."""

    backend: str
    arch: int | str
    warp_size: int
    shared_limit: int


TARGETS = {
    "sm_80": Target("cuda", 80, 32, 163 << 10),  # A100
    "sm_90": Target("cuda", 90, 32, 227 << 10),  # H100, H200
    "sm_100": Target("cuda", 100, 32, 227 << 10),  # B200
    "gfx942": Target("hip", "gfx942", 64, 64 << 10),  # MI300X
}


@dataclass(frozen=True, slots=True, order=True)
class Program:
    """One kernel, compiled for one GPU, data type and head size."""

    target: str
    dtype: str
    head_size: int
    kernel: str

    def __str__(self) -> str:
        return f"{self.kernel} for {self.target}, {self.dtype}, heads of {self.head_size}"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled program. `registers` of a thread (AMD: VGPRs and AGPRs); `shared` memory of a program in bytes.

    `spilled` must be 0: bytes of local memory of a thread on NVIDIA, spilled VGPRs on AMD. `scalar_spills` are AMD's
    SGPRs, which spill to VGPRs and cost little. `matrix` names the matrix instructions; `code` may be empty.
    """

    program: Program
    registers: int
    shared: int
    spilled: int
    scalar_spills: int
    matrix: tuple[str, ...]
    seconds: float
    code: str

    @property
    def problems(self) -> list[str]:
        limit = TARGETS[self.program.target].shared_limit
        found = []
        if self.spilled:
            unit = "VGPRs spilled" if self.program.target.startswith("gfx") else "bytes of local memory"
            found.append(f"{self.program}: {self.spilled} {unit}, must be 0")
        if self.shared > limit:
            found.append(f"{self.program}: {self.shared:,} bytes of shared memory, at most {limit:,}")
        if not self.matrix and self.program.kernel.startswith("paged") and self.program.dtype in DTYPES:
            found.append(f"{self.program}: no matrix instructions")
        return found

    def to_json(self) -> dict[str, Any]:
        figures = asdict(self)
        code = figures.pop("code")
        return {**figures.pop("program"), **figures, **({"code": code} if code else {}), "problems": self.problems}


def programs(
    targets: Iterable[str] = tuple(TARGETS),
    dtypes: Iterable[str] = DTYPES,
    head_sizes: Iterable[int] = HEAD_SIZES,
    kernels: Iterable[str] = KERNELS,
) -> list[Program]:
    """All combinations."""
    return [Program(*each) for each in product(targets, dtypes, head_sizes, kernels)]


def compile_all(wanted: list[Program], *, with_code: bool = False, report: Progress = silent) -> list[Compiled]:
    """Compile in as many processes as there are processors; results in the order of `wanted`. Needs triton, no GPU."""
    workers = min(len(os.sched_getaffinity(0)), len(wanted))
    found: dict[Program, Compiled] = {}
    with ProcessPoolExecutor(workers, get_context("spawn"), _prepare) as pool:
        try:
            # The slowest to compile go first, so that no processor idles at the end.
            jobs = [pool.submit(compile_one, program, with_code) for program in sorted(wanted, key=_effort)]
            for job in as_completed(jobs):
                found[job.result().program] = job.result()
                report("compiling", len(found), len(wanted))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [found[program] for program in wanted]


def _prepare() -> None:
    """Prepare a process that compiles: interpreted kernels cannot be compiled."""
    os.environ.pop("TRITON_INTERPRET", None)


def _effort(program: Program) -> tuple[bool, bool, int]:
    return (not program.kernel.startswith("paged"), not program.target.startswith("gfx"), -program.head_size)


def compile_one(program: Program, with_code: bool = False) -> Compiled:
    """Compile one kernel as its wrapper would launch it: same constants, same threads, pointers aligned alike."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel, constants, options = _launch_of(program)
    types = {name: _type_of(name, constants, program.dtype) for name in kernel.arg_names}
    # torch aligns memory to 16 bytes at least, and rows are multiples of 16 elements: loads can take 16 bytes each.
    aligned = {name for name, type in types.items() if type[0] == "*"} | {"q_stride", "k_stride", "v_stride"}
    attributes = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(kernel.arg_names) if name in aligned}
    target = TARGETS[program.target]
    began = time.perf_counter()
    source = ASTSource(kernel, types, constants, attributes)
    compiled = triton.compile(
        source, target=GPUTarget(target.backend, target.arch, target.warp_size), options=dict(options)
    )
    seconds = time.perf_counter() - began
    shared = int(compiled.metadata.shared)
    if target.backend == "cuda":
        return Compiled(
            program, *_of_cubin(compiled.asm["cubin"], compiled.asm["ptx"], shared), seconds, _sass(compiled, with_code)
        )
    text = compiled.asm["amdgcn"]
    return Compiled(program, *_of_amd_assembly(text, shared), seconds, text if with_code else "")


def _launch_of(program: Program) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Kernel, constants and compiler options."""
    import torch

    from minicache.engine.kernels import merge_splits, paged_attention, paged_decode, store_kv
    from minicache.engine.kernels.launch import Geometry

    geometry = Geometry(getattr(torch, program.dtype), KV_HEADS, GROUP, program.head_size, BLOCK_SIZE)
    if program.kernel == "store_kv":
        return store_kv.store_kv_kernel, store_kv.constants_of(KV_HEADS * program.head_size), store_kv.THREADS
    if program.kernel == "merge_splits":
        constants = merge_splits.constants_of(geometry, SPLITS, paged_decode.keys_of(geometry))
        return merge_splits.merge_splits_kernel, constants, merge_splits.THREADS
    if program.kernel == "paged_decode":
        constants = paged_decode.constants_of(geometry, SPLITS)
        return paged_decode.paged_decode_kernel, constants, paged_decode.THREADS
    rows = paged_attention.rows_of(geometry, decode=program.kernel.endswith("decode"))
    constants = paged_attention.constants_of(geometry, rows, rows // geometry.group)
    return paged_attention.paged_attention_kernel, constants, paged_attention.threads_of(geometry, rows)


def _type_of(name: str, constants: dict[str, Any], dtype: str) -> str:
    if name in constants:
        return "constexpr"
    if name.endswith("_stride"):
        return "i32"
    return INTEGERS.get(name) or SUMS.get(name) or POINTERS[dtype]


def _of_cubin(cubin: bytes, ptx: str, shared: int) -> tuple[int, int, int, int, tuple[str, ...]]:
    """Registers, shared memory, local memory, no scalar spills, matrix instructions."""
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = subprocess.check_output([tool, "--dump-resource-usage", file.name], text=True)
    found = re.search(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", usage)
    if not found:
        raise RuntimeError(f"cuobjdump printed no resource usage of the kernel: {usage.strip()}")
    registers, stack, local = map(int, found.groups())
    matrix = re.findall(r"\b(mma\.sync|wgmma\.mma_async|tcgen05\.mma)(?:\.sync)?(?:\.aligned)?(\.m\d+n\d+k\d+)?", ptx)
    return registers, shared, stack + local, 0, tuple(sorted({kind + shape for kind, shape in matrix}))


def _of_amd_assembly(text: str, shared: int) -> tuple[int, int, int, int, tuple[str, ...]]:
    """Registers, shared memory, spilled VGPRs, spilled SGPRs, matrix instructions."""

    def count(name: str) -> int:
        found = re.search(rf"\.{name}:\s+(\d+)", text)
        if not found:
            raise RuntimeError(f"the assembly does not name its {name}")
        return int(found[1])

    matrix = tuple(sorted(set(re.findall(r"\bv_mfma_\w+", text))))
    return count("vgpr_count"), shared, count("vgpr_spill_count"), count("sgpr_spill_count"), matrix


def _sass(compiled: Any, wanted: bool) -> str:
    return str(compiled.asm["sass"]) if wanted else ""
