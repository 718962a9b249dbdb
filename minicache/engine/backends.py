"""The backends: ways to run a model. Each combines an attention, a matrix product and a layout of rows.

    torch       as the formulas say, on any device: read this one first
    fast_cpu    made for a CPU; the default wherever Triton cannot run
    triton      kernels written in Triton: the default on a GPU
    reference   one query, head and key at a time, in float64: the oracle of tests

A new backend is one entry of `BACKENDS`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from minicache.common.suggest import not_one_of
from minicache.core.errors import InvalidArgument
from minicache.engine.attention import Attention, TorchAttention
from minicache.engine.exact import TileAttention, TiledRows, can_stack
from minicache.engine.fast_cpu.attention import FastCpuAttention
from minicache.engine.fast_cpu.products import SlicedRows, linear_for
from minicache.engine.kernels.reference import ReferenceAttention
from minicache.engine.kernels.support import require_triton
from minicache.engine.layers import Linear
from minicache.engine.model import Model, Rows


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to run a model. `rows` makes the layout of rows for a model whose weights are loaded."""

    attention: Attention
    linear: type[Linear] = Linear
    rows: Callable[[Model], Rows] = lambda model: Rows()


@dataclass(frozen=True, slots=True)
class Entry:
    """How to make a backend. `make` raises `BackendUnavailable` if it cannot run here; `exact` makes the attention of
    exact mode from the size of a tile, `None` without such a mode. `minicache doctor` prints `about`."""

    about: str
    make: Callable[[torch.device, torch.dtype, int], Backend]  # from device, type and head size
    exact: Callable[[int], Attention] | None = None


def make_backend(
    name: str,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    head_dim: int = 1,
    exact_tile: int | None = None,
) -> Backend:
    """A fresh backend for a model of this device, type and head size; with `exact_tile` in exact mode (`exact.py`).

    Raises `InvalidArgument` for an unknown name or one without exact mode, `BackendUnavailable` if it cannot run here.
    """
    if name not in tuple(BACKENDS):
        raise InvalidArgument(f"attention {not_one_of(name, BACKENDS)}")
    entry = BACKENDS[name]
    if exact_tile is None:
        return entry.make(torch.device(device), dtype, head_dim)
    if entry.exact is None:
        able = " or ".join(other for other, each in BACKENDS.items() if each.exact is not None)
        raise InvalidArgument(f"exact mode runs on attention {able}, not {name!r}")
    entry.make(torch.device(device), dtype, head_dim)  # raises if it cannot run here
    return Backend(entry.exact(exact_tile), rows=lambda model: TiledRows(exact_tile, can_stack(model, exact_tile)))


def _fast_cpu(device: torch.device, dtype: torch.dtype, head_dim: int) -> Backend:
    return Backend(FastCpuAttention(), linear_for(device, dtype), lambda model: SlicedRows())


def _triton(device: torch.device, dtype: torch.dtype, head_dim: int) -> Backend:
    require_triton(device, dtype, head_dim)
    return Backend(_triton_attention())


def _triton_attention(exact_tile: int | None = None) -> Attention:
    from minicache.engine.kernels.triton_attention import TritonAttention  # triton is not installed everywhere

    return TritonAttention(exact_tile)


BACKENDS = {
    "torch": Entry(
        "plain formulas, to be read; on every device",
        lambda device, dtype, head_dim: Backend(TorchAttention()),
        TileAttention,
    ),
    "fast_cpu": Entry("made for a CPU; the default where triton cannot run", _fast_cpu),
    "triton": Entry("kernels written in Triton; the default on a GPU", _triton, _triton_attention),
    "reference": Entry("slow, for tests", lambda device, dtype, head_dim: Backend(ReferenceAttention())),
}
