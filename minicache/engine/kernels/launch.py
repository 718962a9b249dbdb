"""The constants that a kernel is compiled for, and the checks before it runs: a kernel itself trusts its arguments.

Shapes: T tokens, Hq query heads, Hkv key-value heads, D head size, N blocks, B block size.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from minicache.core.errors import InvalidArgument
from minicache.engine.kernels.layout import Layout
from minicache.engine.kernels.support import LONGEST_HEAD

SMALLEST_SIDE = 16  # matrix units multiply 16 x 16 tiles; smaller ones are padded
DTYPES = {
    torch.float16: tl.float16,
    torch.bfloat16: tl.bfloat16,
    torch.float32: tl.float32,
    torch.float64: tl.float64,
}
# Multiply-add in one rounding. Every backend's default, given explicitly because the last bit of results depends on it.
FP_FUSION = True


@dataclass(frozen=True, slots=True)
class Geometry:
    """The properties that the attention kernels are compiled for: each combination is a program of its own."""

    dtype: torch.dtype
    kv_heads: int
    group: int  # query heads that read the same key-value head
    head_dim: int
    block_size: int

    @classmethod
    def of(cls, q: Tensor, k_cache: Tensor, v_cache: Tensor) -> "Geometry":
        """Of `q (T, Hq, D)` and caches `(N, B, Hkv, D)`; raises `InvalidArgument` unless they fit together."""
        require_cache(k_cache, v_cache)
        require_rows("q", q, (*q.shape[:2], k_cache.shape[3]), k_cache)
        if q.shape[1] == 0 or q.shape[1] % k_cache.shape[2]:
            raise InvalidArgument(f"{q.shape[1]} query heads cannot share {k_cache.shape[2]} key-value heads evenly")
        _, block_size, kv_heads, head_dim = k_cache.shape
        return cls(q.dtype, kv_heads, q.shape[1] // kv_heads, head_dim, block_size)

    @property
    def padded_head(self) -> int:
        return max(SMALLEST_SIDE, triton.next_power_of_2(self.head_dim))

    @property
    def scale(self) -> float:
        """log2(e) / sqrt(D): scores are in base 2, in which hardware computes exponentials."""
        return self.head_dim**-0.5 * 1.4426950408889634

    @property
    def accumulator(self) -> Any:
        """The type that products are summed in: float64 for float64 data, else float32."""
        return tl.float64 if self.dtype is torch.float64 else tl.float32


def is_interpreted(kernel: Any) -> bool:
    """Whether TRITON_INTERPRET was set when the kernel was imported."""
    return not isinstance(kernel, triton.JITFunction)


def operand(kernel: Any, dtype: torch.dtype) -> Any:
    """The type in which the kernel multiplies matrices: the data's own.

    Interpreted, bfloat16 is multiplied as float32, because the interpreter's product of bfloat16 is wrong.
    """
    return tl.float32 if dtype is torch.bfloat16 and is_interpreted(kernel) else DTYPES[dtype]


def require_runnable(kernel: Any, *tensors: Tensor) -> None:
    """Raise `InvalidArgument` unless the tensors lie on the kernel's device, in a type that it computes."""
    interpreted = is_interpreted(kernel)
    first = tensors[0]
    for tensor in tensors:
        if tensor.device != first.device:
            raise InvalidArgument(f"all tensors must lie on one device, not on {first.device} and {tensor.device}")
    if not interpreted and not first.is_cuda:
        raise InvalidArgument(
            f"Triton kernels run on a GPU, and these tensors lie on {first.device}: move them to cuda (on a CPU "
            "kernels run only for tests, interpreted, with TRITON_INTERPRET=1 set before Python starts)"
        )
    if first.dtype is torch.float64 and not interpreted:
        raise InvalidArgument("on a GPU the kernels take float16, bfloat16 or float32, not float64: cast, or use torch")


def require_cache(k_cache: Tensor, v_cache: Tensor) -> None:
    """Raise `InvalidArgument` unless both are contiguous `(N, B, Hkv, D)` of a type and head size within the limits."""
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        if cache.ndim != 4 or cache.numel() == 0:
            raise InvalidArgument(f"{name} must be (blocks, block size, heads, head size), not {tuple(cache.shape)}")
        if not cache.is_contiguous():
            raise InvalidArgument(
                f"{name} is not contiguous (strides {cache.stride()}): allocate it as one tensor, or pass .contiguous()"
            )
    if k_cache.shape != v_cache.shape or k_cache.dtype != v_cache.dtype:
        raise InvalidArgument(
            f"k_cache and v_cache must have one shape and type, not {tuple(k_cache.shape)} {k_cache.dtype} "
            f"and {tuple(v_cache.shape)} {v_cache.dtype}"
        )
    require_head_size(k_cache.shape[3])
    if k_cache.dtype not in DTYPES:
        names = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES)
        raise InvalidArgument(f"the kernels take {names}, not {str(k_cache.dtype).removeprefix('torch.')}")


def require_head_size(head_dim: int) -> None:
    if head_dim > LONGEST_HEAD:
        raise InvalidArgument(
            f"the Triton kernels take head sizes up to {LONGEST_HEAD}, not {head_dim}: use attention='torch'"
        )


def require_rows(name: str, rows: Tensor, shape: tuple[int, ...], cache: Tensor) -> None:
    """Raise `InvalidArgument` unless `rows` is of `shape (T, H, D)` and the cache's type, each row dense."""
    if rows.ndim != 3 or tuple(rows.shape) != tuple(shape):
        raise InvalidArgument(f"{name} must be {tuple(shape)}, not {tuple(rows.shape)}")
    if rows.dtype != cache.dtype:
        raise InvalidArgument(f"{name} must be {cache.dtype}, as the cache is, not {rows.dtype}")
    if rows.stride(2) != 1 or (rows.shape[1] > 1 and rows.stride(1) != rows.shape[2]):
        raise InvalidArgument(
            f"the heads of a row of {name} must lie side by side (strides {rows.stride()}): pass .contiguous()"
        )


def require_layout(q: Tensor, k_cache: Tensor, layout: Layout) -> None:
    """Raise `InvalidArgument` unless the layout is of `q`'s rows and the cache's block size."""
    if layout.batch.block_size != k_cache.shape[1]:
        raise InvalidArgument(
            f"the batch is laid out in blocks of {layout.batch.block_size} tokens, the cache in {k_cache.shape[1]}"
        )
    if len(layout.batch.positions) != len(q):
        raise InvalidArgument(f"the batch has {len(layout.batch.positions)} rows, q has {len(q)}")
