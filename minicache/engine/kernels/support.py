"""Whether the Triton kernels can run on this machine. Imports neither triton, which may be missing, nor torch."""

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from minicache.common.packages import package_missing
from minicache.engine.errors import BackendUnavailable

if TYPE_CHECKING:
    import torch

OLDEST = (3, 5)  # the version that comes with torch 2.9, the oldest supported
NEWEST = (3, 9)
LONGEST_HEAD = 256  # of longer heads, the queries, keys, values and the accumulator do not fit a GPU's registers
OTHERWISE = "use attention='torch'"


def require_triton(device: "torch.device", dtype: "torch.dtype", head_dim: int) -> None:
    """Raise `BackendUnavailable`, with the remedy, unless the kernels can run on such tensors on this machine."""
    require_tested_version()
    if not interpreting():
        if device.type != "cuda":
            raise BackendUnavailable(
                f"attention triton needs a GPU, and the device is {device}: {OTHERWISE} (for tests, the kernels run "
                "interpreted on a CPU, a thousand times slower, if TRITON_INTERPRET=1 is set before Python starts)"
            )
        if dtype.itemsize > 4:
            raise BackendUnavailable(f"attention triton has no float64 on a GPU: {OTHERWISE}, or another dtype")
    if head_dim > LONGEST_HEAD:
        raise BackendUnavailable(f"attention triton takes head sizes up to {LONGEST_HEAD}, not {head_dim}: {OTHERWISE}")


def require_tested_version() -> None:
    """Raise `BackendUnavailable` unless the installed triton is one that the kernels are tested with."""
    tested = f"{'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
    try:
        installed = version("triton")
    except PackageNotFoundError:
        if platform.system() != "Linux":
            raise BackendUnavailable(f"Triton does not exist for {platform.system()}: {OTHERWISE}") from None
        raise BackendUnavailable(f"{package_missing('triton', 'attention triton')}, or {OTHERWISE}") from None
    found = re.match(r"(\d+)\.(\d+)", installed)
    if not found or not OLDEST <= (int(found[1]), int(found[2])) <= NEWEST:
        raise BackendUnavailable(
            f"attention triton is tested with Triton {tested}, and {installed} is installed: {OTHERWISE}, or install "
            "the torch that brings one of these"
        )


def interpreting() -> bool:
    """Whether the environment asks for interpreted kernels."""
    return os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "yes", "on", "y")
