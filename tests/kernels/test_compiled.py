"""`minicache kernels check`, on the few programs that compile in seconds; `make kernels` checks them all."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from minicache.cli.main import main
from minicache.engine.kernels import compiled
from minicache.engine.kernels.compiled import DTYPES, HEAD_SIZES, KERNELS, TARGETS, Compiled, Program, programs

FITS = Compiled(Program("sm_80", "float16", 64, "paged_decode"), 64, 1 << 10, 0, 0, ("mma.sync.m16n8k16",), 0.5, "")


def test_what_is_compiled() -> None:
    assert len(programs()) == len(TARGETS) * len(DTYPES) * len(HEAD_SIZES) * len(KERNELS) == 120


def test_one_gpu_of_each_vendor() -> None:
    """Also where the kernels of this process are interpreted: the compiler has processes of its own."""
    options = ["--target", "sm_90", "--target", "gfx942", "--dtype", "float16", "--head-size", "64"]
    command = [sys.executable, "-m", "minicache", "kernels", "check", *options]
    command += ["--kernel", "paged_decode", "--kernel", "store_kv", "--asm", "--json"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["problems"] == []
    by_name = {(program["target"], program["kernel"]): program for program in report["programs"]}
    assert len(by_name) == 4
    for program in by_name.values():
        assert program["registers"] > 0
        assert program["spilled"] == 0
    assert by_name["sm_90", "paged_decode"]["matrix"] == ["mma.sync.m16n8k16"]
    assert by_name["gfx942", "paged_decode"]["matrix"] == ["v_mfma_f32_16x16x16_f16"]
    assert by_name["sm_90", "store_kv"]["matrix"] == []
    assert "STG.E" in by_name["sm_90", "store_kv"]["code"]
    assert "_store_" in by_name["gfx942", "store_kv"]["code"]
    assert by_name["sm_90", "paged_decode"]["shared"] > by_name["sm_90", "store_kv"]["shared"] == 0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"spilled": 8}, "paged_decode for sm_80, float16, heads of 64: 8 bytes of local memory, must be 0"),
        ({"shared": 200_000}, "200,000 bytes of shared memory, at most 166,912"),
        ({"matrix": ()}, "no matrix instructions"),
    ],
)
def test_what_is_a_problem(changes: dict[str, object], problem: str) -> None:
    assert FITS.problems == []
    [found] = replace(FITS, **changes).problems  # type: ignore[arg-type]
    assert problem in found


def test_an_amd_gpu_may_spill_scalars_only() -> None:
    program = Program("gfx942", "float16", 64, "paged_decode")
    assert replace(FITS, program=program, scalar_spills=3).problems == []
    assert "1 VGPRs spilled" in replace(FITS, program=program, spilled=1).problems[0]


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--target", "sm_70"], "--target must be one of sm_80, sm_90, sm_100, gfx942, not 'sm_70'"),
        (["--kernel", "flash"], "--kernel must be one of store_kv, paged_attention prompt"),
        (["--head-size", "512"], "--head-size must be at most 256"),
    ],
)
def test_unknown_names(capsys: pytest.CaptureFixture[str], option: list[str], sentence: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["kernels", "check", *option])
    error = capsys.readouterr().err
    assert error.startswith(f"minicache: {sentence}")
    assert error.count("\n") == 1


def test_a_benchmark_needs_a_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit, match="2"):
        main(["kernels", "bench"])
    assert "kernels bench needs a GPU, and torch sees none: `minicache kernels check`" in capsys.readouterr().err


def test_a_violation_is_printed_and_exits_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "compile_all", lambda *_, **__: [replace(FITS, spilled=8, code="STG.E")])
    with pytest.raises(SystemExit, match="1"):
        main(["kernels", "check", "--asm"])
    report = capsys.readouterr().out
    assert "✗ paged_decode for sm_80, float16, heads of 64: 8 bytes of local memory, must be 0" in report
    assert "mma m16n8k16" in report
    assert "STG.E" in report
    assert "nothing spills" not in report
