"""Builds, checks and times the kernels on this machine's GPU: `tests/gpu/run.sh`. Exit status 1 if anything fails.

Needs torch, triton, safetensors, tokenizers and jinja2, nothing else.
"""

import json
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from minicache.engine.kernels import bench, compiled
from minicache.engine.kernels.support import require_tested_version
from tests.gpu.checks import CHECKS, DTYPES


def main() -> int:
    require_tested_version()
    if not torch.cuda.is_available():
        print("tests/gpu/run.sh needs a GPU, and torch sees none")
        return 2
    began = time.perf_counter()
    failed = build() + check()
    print(f"\n== Timed, {torch.cuda.get_device_name()} ==")
    result = bench.run(lambda what, done, total: print(f"  {what} {done}/{total}", file=sys.stderr))
    print(json.dumps(result.to_json(), indent=1))
    print(f"\n{failed} failed, {time.perf_counter() - began:.0f} s")
    return int(failed > 0)


def build() -> int:
    """Compile everything for the GPU that is here, or for the one of the known ones that is nearest to it."""
    here = torch.cuda.get_device_capability()
    target = "gfx942" if torch.version.hip else {8: "sm_80", 9: "sm_90"}.get(here[0], "sm_100")
    print(f"== Built for {target} ==")
    found = compiled.compile_all(compiled.programs([target]))
    for each in found:
        print(f"{each.program}: {each.registers} registers, {each.shared:,} bytes shared, spilled {each.spilled}")
        for problem in each.problems:
            print(f"  FAILED {problem}")
    return sum(bool(each.problems) for each in found)


def check() -> int:
    failed = 0
    print("\n== Checked ==")
    for each in CHECKS:
        for dtype in DTYPES:
            torch.manual_seed(0)
            began = time.perf_counter()
            try:
                each(dtype)
                outcome = "ok"
            except Exception:
                traceback.print_exc()
                outcome, failed = "FAILED", failed + 1
            print(f"{outcome:6} {each.__name__} {dtype} ({time.perf_counter() - began:.1f} s)")
    return failed


if __name__ == "__main__":
    sys.exit(main())
