"""`minicache kernels`: compile the Triton kernels, with or without a GPU, and measure them on a GPU."""

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from minicache.cli.commands import Commands
from minicache.cli.console import JsonOption, print_json, progress_bar, require_installed, stdout
from minicache.common.suggest import not_one_of
from minicache.core.errors import InvalidArgument

if TYPE_CHECKING:
    from minicache.engine.kernels.bench import KernelBench
    from minicache.engine.kernels.compiled import Compiled

SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}

app = typer.Typer(cls=Commands, add_completion=False, no_args_is_help=True, rich_markup_mode=None)


class DataType(StrEnum):
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"


@app.callback()
def kernels() -> None:
    """Compile the Triton kernels, with or without a GPU, and measure them on a GPU."""


@app.command()
def check(
    target: Annotated[list[str] | None, typer.Option(help="sm_80, sm_90, sm_100 or gfx942; may be repeated.")] = None,
    dtype: Annotated[list[DataType] | None, typer.Option(help="Data type; may be repeated.")] = None,
    head_size: Annotated[list[int] | None, typer.Option(min=1, help="Head size; may be repeated.")] = None,
    kernel: Annotated[list[str] | None, typer.Option(help="Part of a kernel's name; may be repeated.")] = None,
    asm: Annotated[bool, typer.Option("--asm", help="Also show the machine code.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compile every kernel for four GPUs, without a GPU. Exit status 1 if a kernel spills or does not fit.

    By default: sm_80, sm_90, sm_100 and gfx942, float16 and bfloat16, heads of 64, 128 and 256.
    """
    _require_triton()
    from minicache.engine.kernels import compiled
    from minicache.engine.kernels.support import LONGEST_HEAD

    if head_size and max(head_size) > LONGEST_HEAD:
        raise InvalidArgument(f"--head-size must be at most {LONGEST_HEAD}, not {max(head_size)}")
    with progress_bar() as report:
        found = compiled.compile_all(
            compiled.programs(
                _known("target", target, tuple(compiled.TARGETS)),
                tuple(dtype) if dtype else compiled.DTYPES,
                tuple(head_size) if head_size else compiled.HEAD_SIZES,
                _known("kernel", kernel, compiled.KERNELS, part=True),
            ),
            with_code=asm,
            report=report,
        )
    problems = [problem for each in found for problem in each.problems]
    if as_json:
        print_json({"programs": [each.to_json() for each in found], "problems": problems})
    else:
        _print_check(found, problems)
    if problems:
        raise typer.Exit(1)


@app.command()
def bench(as_json: JsonOption = False) -> None:
    """Measure the kernels on this GPU, compared with its copy bandwidth, its matrix products and torch's attention."""
    _require_triton()
    from minicache.engine.kernels import bench as kernel_bench

    with progress_bar() as report:
        result = kernel_bench.run(report)
    if as_json:
        print_json(result.to_json())
    else:
        _print_bench(result)


def _require_triton() -> None:
    require_installed("torch")
    from minicache.engine.kernels.support import require_tested_version

    require_tested_version()


def _known(option: str, given: list[str] | None, known: tuple[str, ...], *, part: bool = False) -> tuple[str, ...]:
    """The given names, which must be in `known`, or all of `known`. Raises `InvalidArgument`."""
    found = [name for name in known if any(each == name or (part and each in name) for each in given or known)]
    for each in given or ():
        if not any(each == name or (part and each in name) for name in known):
            raise InvalidArgument(f"--{option} {not_one_of(each, known)}")
    return tuple(found)


def _print_check(found: list["Compiled"], problems: list[str]) -> None:
    from rich.table import Table

    out = stdout()
    for each in found:
        if each.code:
            out.print()
            out.print(str(each.program), *each.code.split("\n"), sep="\n", soft_wrap=True)
    for target in dict.fromkeys(each.program.target for each in found):
        amd = target.startswith("gfx")
        spills = ("spilled", "SGPRs") if amd else ("local",)
        what = "VGPRs of a thread, spilled VGPRs and SGPRs" if amd else "registers and local memory of a thread"
        table = Table(title=f"{target}: {what}; memory in bytes", title_justify="left", box=None, pad_edge=False)
        for column in ("kernel", "type", "head", "regs", "shared", *spills, "matrix"):
            left = column in ("kernel", "type", "matrix")
            table.add_column(column, justify="left" if left else "right", no_wrap=True)
        for each in found:
            if each.program.target == target:
                program, scalar = each.program, [str(each.scalar_spills)] if amd else []
                row = [program.kernel, SHORT[program.dtype], str(program.head_size), str(each.registers)]
                table.add_row(*row, f"{each.shared:,}", str(each.spilled), *scalar, _unit(each.matrix))
        out.print(table)
        out.print()
    seconds = sum(each.seconds for each in found)
    out.print(f"{len(found)} programs, {seconds:.0f} s of compiling them or reading them from Triton's cache")
    for problem in problems:
        out.print(f"✗ {problem}", soft_wrap=True)
    if not problems:
        out.print("✓ nothing spills, everything fits, attention uses matrix instructions")


def _unit(matrix: tuple[str, ...]) -> str:
    """A short name of the first matrix instruction: `mma m16n8k16`, `mfma 32x32x8`."""
    if not matrix:
        return "–"
    name = re.sub(r"\.mma_async|\.sync|^v_|_f32(?=_)|_b?f(16|32)$", "", matrix[0])
    return re.sub(r"[._](?=m?\d)", " ", name)


def _print_bench(result: "KernelBench") -> None:
    from rich.table import Table

    out = stdout()
    versions = f"torch {result.torch}, Triton {result.triton}"
    out.print(f"{result.device}, {versions}, {result.dtype}, heads of {result.head_dim}")
    out.print(f"copy {result.copy_gb_s:,.0f} GB/s · matrix product {result.matmul_tflop_s:,.0f} TFLOP/s")
    table = Table(title="Kernels (median)", title_justify="left")
    for column in ("kernel", "shape", "µs", "reached", "of this GPU's", "× torch's µs"):
        table.add_column(column, justify="left" if column in ("kernel", "shape", "of this GPU's") else "right")
    for row in result.rows:
        against = f"{row.microseconds / row.torch_microseconds:.2f}" if row.torch_microseconds else "–"
        limit = "copy bandwidth" if row.bound == "memory" else "matrix products"
        table.add_row(row.kernel, row.shape, f"{row.microseconds:,.1f}", f"{row.fraction:.0%}", limit, against)
    out.print(table)
    out.print("torch: scaled_dot_product_attention on contiguous keys and values, heads not repeated in memory")
