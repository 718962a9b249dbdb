"""The checks of `checks.py` as tests. They cannot run where other tests interpret the kernels: see `run.sh`."""

from collections.abc import Callable

import pytest
import torch


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("number", range(6))
def test_kernels_on_a_gpu(number: int, dtype: str) -> None:
    from minicache.engine.kernels.launch import is_interpreted
    from minicache.engine.kernels.store_kv import store_kv_kernel

    if is_interpreted(store_kv_kernel):
        pytest.skip("in this process the kernels are interpreted: run tests/gpu alone, or tests/gpu/run.sh")
    from tests.gpu.checks import CHECKS

    assert len(CHECKS) == 6
    check: Callable[[torch.dtype], None] = CHECKS[number]
    check(getattr(torch, dtype))
