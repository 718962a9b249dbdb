"""What does not fit is refused in one sentence that says what to do; what cannot be checked does no harm."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch

from minicache.core.errors import InvalidArgument
from minicache.engine.backends import make_backend
from minicache.engine.errors import BackendUnavailable
from minicache.engine.kernels import launch
from minicache.engine.kernels import support as triton_support
from minicache.engine.kernels.paged_attention import paged_attention
from minicache.engine.kernels.store_kv import store_kv
from tests.kernels.cases import Case, make


def without_contiguity(cache: torch.Tensor) -> torch.Tensor:
    return cache.transpose(0, 1).contiguous().transpose(0, 1)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"k_cache": without_contiguity}, r"k_cache is not contiguous \(strides .*\): allocate it as one tensor, or"),
        ({"v_cache": without_contiguity}, "v_cache is not contiguous"),
        ({"k_cache": lambda k: k[0]}, r"k_cache must be \(blocks, block size, heads, head size\), not \(4, 2, 32\)"),
        ({"v_cache": lambda v: v[:2]}, "k_cache and v_cache must have one shape and type"),
        ({"v_cache": lambda v: v.double()}, "k_cache and v_cache must have one shape and type"),
        ({"q": lambda q: q.half()}, "q must be torch.float32, as the cache is, not torch.float16"),
        ({"q": lambda q: q[:, :3]}, "3 query heads cannot share 2 key-value heads evenly"),
        ({"q": lambda q: q[..., :16]}, r"q must be \(3, 4, 32\), not \(3, 4, 16\)"),
        ({"q": lambda q: q[:1]}, "the batch has 3 rows, q has 1"),
        ({"q": lambda q: q.transpose(0, 1).contiguous().transpose(0, 1)}, "the heads of a row of q must lie side by"),
        (dict.fromkeys(("q", "k_cache", "v_cache"), torch.Tensor.int), "take float16, bfloat16, .*, not int32"),
        ({"q": lambda q: q.to("meta")}, "all tensors must lie on one device, not on meta and cpu"),
    ],
)
def test_tensors_that_do_not_fit(changes: dict[str, Any], sentence: str) -> None:
    case = make([(3, 2), (0, 1)], 4, kv_heads=2)
    case = replace(case, **{name: change(getattr(case, name)) for name, change in changes.items()})
    with pytest.raises(InvalidArgument, match=sentence):
        paged_attention(*case.inputs)


def test_another_block_size_too_long_heads_and_odd_tiles() -> None:
    case = make([(3, 2)], 4)
    with pytest.raises(InvalidArgument, match="laid out in blocks of 2 tokens, the cache in 4"):
        paged_attention(case.q, case.k_cache, case.v_cache, make([(3, 2)], 2).layout)
    wide = torch.zeros(2, 4, 1, 257)
    with pytest.raises(InvalidArgument, match="head sizes up to 256, not 257: use attention='torch'"):
        paged_attention(torch.zeros(2, 2, 257), wide, wide, case.layout)
    for rows in (8, 24):
        with pytest.raises(InvalidArgument, match=f"tile_rows must be a power of two .* of 2, not {rows}"):
            paged_attention(*case.inputs, tile_rows=rows)


def test_slots_and_rows_to_store() -> None:
    k, cache = torch.zeros(2, 1, 8), torch.zeros(3, 4, 1, 8)
    with pytest.raises(InvalidArgument, match="slots must be one dense row of integers, not"):
        store_kv(k, k, cache, cache, torch.zeros(2))
    with pytest.raises(InvalidArgument, match=r"v must be \(2, 1, 8\), not \(1, 1, 8\)"):
        store_kv(k, k[:1], cache, cache, torch.tensor([0, 1]))


def test_wild_ids_beyond_the_context_are_not_followed() -> None:
    """In a process of its own: a kernel that did follow them would kill it."""
    code = """
import tests.kernels.conftest
from minicache.engine.kernels.paged_attention import paged_attention
from minicache.engine.kernels.paged_decode import paged_decode
from tests.kernels.cases import make
case = make([(5, 2), (0, 1)], 4).with_unused_table_entries(2**40)
case.require_close(paged_attention(*case.inputs))
case = make([(5, 1), (0, 1)], 4).with_unused_table_entries(2**40)
case.require_close(paged_decode(*case.inputs, num_splits=2))
print("done")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=os.getcwd())
    assert run.stdout == "done\n", run.stderr


def test_a_kernel_that_is_not_interpreted_takes_no_cpu_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "is_interpreted", lambda kernel: False)
    case = make([(3, 2)], 4)
    with pytest.raises(InvalidArgument, match="run on a GPU, and these tensors lie on cpu: move them to cuda"):
        paged_attention(*case.inputs)


@pytest.mark.parametrize("installed", ["3.4.0", "2.1.0", "3.10.0", "4.0", "nonsense"])
def test_a_triton_that_is_not_tested(monkeypatch: pytest.MonkeyPatch, installed: str) -> None:
    monkeypatch.setattr(triton_support, "version", lambda package: installed)
    with pytest.raises(BackendUnavailable, match=f"tested with Triton 3.5 to 3.9, and {installed} is installed: use"):
        make_backend("triton")


@pytest.mark.parametrize(
    ("system", "remedy"),
    [
        ("Linux", "needs the package 'triton': pip install"),
        ("Darwin", "Triton does not exist for Darwin: use attention='torch'"),
    ],
)
def test_no_triton(monkeypatch: pytest.MonkeyPatch, system: str, remedy: str) -> None:
    def version(package: str) -> str:
        raise triton_support.PackageNotFoundError(package)

    monkeypatch.setattr(triton_support, "version", version)
    monkeypatch.setattr("platform.system", lambda: system)
    with pytest.raises(BackendUnavailable, match=remedy):
        make_backend("triton")


def test_without_a_gpu_and_without_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(BackendUnavailable, match=r"needs a GPU, .* is cpu: .* \(for tests, .*TRITON_INTERPRET=1"):
        make_backend("triton")
    with pytest.raises(BackendUnavailable, match="no float64 on a GPU: use attention='torch', or another dtype"):
        make_backend("triton", "cuda", torch.float64)
    with pytest.raises(BackendUnavailable, match="head sizes up to 256, not 512: use attention='torch'"):
        make_backend("triton", "cuda", torch.float16, 512)


def test_a_case_bites() -> None:
    """NaN in a slot that is read must show: else these tests prove nothing."""
    case: Case = make([(3, 2)], 4)
    case.v_cache[case.layout.tables[0, 0], 1] = torch.nan
    assert paged_attention(*case.inputs).isnan().all()
