"""Unpack the Python files of the engines' wheels, and make an interpreter that can import their cache managers.

    python -m tests.differential.set_up FOLDER                          # about a minute and 1.5 GB
    python -m tests.differential.set_up FOLDER --vllm 0.34.0 --sglang 0.5.24

Nothing of theirs is installed or copied into this project; FOLDER is what `make differential PEERS=FOLDER` reads.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

VERSIONS = {"vllm": "0.33.0", "sglang": "0.5.23"}  # those that minicache follows
PACKAGES = "torch>=2.9,<2.14 numpy cbor2 xxhash msgspec pyzmq prometheus-client typing_extensions pydantic cachetools"


def unpack(name: str, version: str, folder: Path) -> None:
    """The Python files of one wheel, under `folder/name`."""
    with tempfile.TemporaryDirectory() as downloads:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", downloads]
        subprocess.run([*pip, f"{name}=={version}"], check=True)
        (wheel,) = Path(downloads).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = [each for each in archive.namelist() if each.startswith(f"{name}/") and each.endswith(".py")]
            archive.extractall(folder, names)
    (folder / f"{name}.version").write_text(version + "\n")


def version_in(name: str, folder: Path) -> str:
    """The version that was unpacked; the default one if the folder does not say."""
    stated = folder / f"{name}.version"
    return stated.read_text().strip() if stated.exists() else VERSIONS[name]


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.differential.set_up", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    for name, version in VERSIONS.items():
        parser.add_argument(f"--{name}", default=version, metavar="VERSION")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in VERSIONS:
        unpack(name, getattr(given, name), given.folder)
    python = given.folder / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(given.folder / "venv", with_pip=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES.split()], check=True)
    print(f"{given.folder} is ready: make differential PEERS={given.folder}")


if __name__ == "__main__":
    main()
