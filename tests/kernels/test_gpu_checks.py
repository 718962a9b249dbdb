"""What `tests/gpu/run.sh` does on a GPU, at small shapes on the interpreter: a check that cannot run checks nothing."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from minicache.engine.kernels import bench
from tests.gpu import checks


@pytest.mark.parametrize("check", checks.CHECKS[:4], ids=lambda check: check.__name__)
def test_a_check(monkeypatch: pytest.MonkeyPatch, check: Callable[[torch.dtype], None]) -> None:
    monkeypatch.setattr(checks, "DEVICE", "cpu")
    monkeypatch.setattr(checks, "HEADS", ((2, 2, 32),))
    monkeypatch.setattr(checks, "BLOCK_SIZES", (8,))
    monkeypatch.setattr(checks, "MIXED", ((0, 3), (9, 1)))
    monkeypatch.setattr(checks, "DECODES", ((20, 1), (0, 1)))
    monkeypatch.setattr(checks, "CHUNKS", (13, 9, 1))
    check(torch.float32)


def test_a_model_on_both_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "DEVICE", "cpu")
    monkeypatch.setattr(checks, "CHUNKS", (5, 2, 1))
    checks.a_model_equals_itself_on_torch(torch.float32)
    checks.an_exact_model_changes_no_bit(torch.float32)


def test_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call that it times runs, and fractions are of what is named. The clock says one second."""

    def one_second(run: Callable[[], Any]) -> float:
        run()
        return 1.0

    small = {"KV_HEADS": 2, "GROUP": 2, "HEAD_DIM": 32, "DTYPE": torch.float32, "DEVICE": "cpu", "COPIED": 1 << 10}
    shapes = {"SIDE": 16, "STORED": 8, "DECODES": ((2, 20),), "PROMPTS": ((2, 4, 0), (1, 3, 17))}
    for name, value in {**small, **shapes, "seconds": one_second}.items():
        monkeypatch.setattr(bench, name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    result = bench.run()
    assert (result.copy_gb_s, result.matmul_tflop_s) == (2 * 1024 / 1e9, 2 * 16**3 / 1e12)
    assert [row.kernel for row in result.rows] == [
        "store_kv",
        *["paged_decode", "paged_attention"],
        *["paged_attention"] * 2,
    ]
    decode, prompt, chunk = result.rows[1], result.rows[3], result.rows[4]
    assert decode.fraction == pytest.approx(2 * 2 * 20 * 2 * 32 * 4 / (2 * 1024))  # keys and values of 2 x 20 tokens
    assert prompt.fraction == pytest.approx(4 * 2 * 4 * 32 * (1 + 2 + 3 + 4) / (2 * 16**3))
    assert chunk.fraction == pytest.approx(4 * 4 * 32 * (18 + 19 + 20) / (2 * 16**3))
    assert (prompt.torch_microseconds, chunk.torch_microseconds) == (1e6, None)
