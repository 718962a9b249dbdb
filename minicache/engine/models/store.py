"""The store: models by name, each a folder in the user's cache folder.

    $MINICACHE_HOME/models/     or the user cache folder's minicache/models/
        smollm2/                complete: a model folder appears by one rename, or not at all
        ORG--NAME/
        .pull-…/                a pull in progress, or the rest of a killed one, which the next pull removes

Importing this module imports no torch.
"""

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from minicache.common.files import existing, require_end, signals_as_exits
from minicache.common.progress import Progress, silent
from minicache.core.errors import InvalidArgument
from minicache.engine.errors import BrokenModel, PullFailed, UnknownModel
from minicache.text.store import models_folder as models_folder

TINY, SMOLLM2 = "tiny", "smollm2"
TINY_FOLDER = Path(__file__).parents[1] / "tiny" / "model"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model that has a name in the store. `folder` is None until the model is pulled."""

    name: str
    folder: Path | None
    about: str

    @property
    def num_bytes(self) -> int:
        """Size on disk; 0 if the model is not pulled."""
        from minicache.engine.models.sources import folder_bytes

        return folder_bytes(self.folder) if self.folder else 0


def list_models() -> list[StoredModel]:
    """The built-in names first, then the other pulled models. Changes nothing. Raises `InvalidArgument` if the store
    cannot be read."""
    models = [
        StoredModel(TINY, TINY_FOLDER, "comes with minicache; one byte is one token; knows only prefix caching"),
        StoredModel(SMOLLM2, _present(_folder(SMOLLM2)), "SmolLM2-135M-Instruct, weights quantised to 4 bits (Q4_1)"),
    ]
    for folder in _entries(models_folder()):
        if _present(folder) and folder.name != SMOLLM2 and not folder.name.startswith("."):
            about = "from the Hugging Face hub" if "--" in folder.name else "converted from a GGUF file"
            models.append(StoredModel(folder.name.replace("--", "/", 1), folder, about))
    return models


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidArgument(f"the model store {folder} cannot be read: {error.strerror}") from None


def is_stored(name: str) -> bool:
    """Whether `resolve(name)` would find the model without pulling it."""
    return name == TINY or _present(_folder(name)) is not None


def resolve(name: str | Path, progress: Progress = silent) -> Path:
    """The folder of a model given by name or by path. Raises `UnknownModel`, saying how to get it.

    `tiny` is part of the package; a .gguf file is converted once, into the store: raises as `pull` does.
    """
    text = str(name)
    if text == TINY:
        return TINY_FOLDER
    if stored := _present(_folder(text)):
        return stored
    path = existing(text) if text else None
    if path and path.suffix == ".gguf" and not path.is_dir():
        if not path.is_file():  # a pipe or a device, whose end never comes
            raise UnknownModel(f"{path} is not an ordinary file")
        return _resolve_gguf(path, progress)
    if path and not (path / "config.json").is_file():
        raise UnknownModel(f"{path} has no config.json, so it is not a model folder")
    if path:
        return path
    if text == SMOLLM2 or _HUB_NAME.fullmatch(text):
        raise UnknownModel(f"model {text!r} is not in the store: run `minicache model pull {text}`")
    known = ", ".join(model.name for model in list_models())
    raise UnknownModel(f"unknown model {text!r}: give a model folder, ORG/NAME, or one of {known}")


def pull(name: str, progress: Progress = silent) -> Path:
    """Fetch a model into the store unless it is there already; returns its folder.

    Raises `PullFailed`, `UnknownModel` or `BrokenModel`. After any interruption the store holds the whole model or
    nothing of it.
    """
    from minicache.engine.models import sources

    if name == TINY:
        return resolve(TINY)
    if name == SMOLLM2:
        return _make(_folder(SMOLLM2), sources.fetch_smollm2, progress)
    if _HUB_NAME.fullmatch(name):
        return _make(_folder(name), lambda folder, report: sources.fetch_from_hub(name, folder), progress)
    raise UnknownModel(f"cannot pull {name!r}: give smollm2, or ORG/NAME as on the Hugging Face hub")


def remove(name: str) -> bool:
    """Delete a model from the store; returns whether it was there. `tiny` is part of the package and stays."""
    folder = _folder(name)
    if not _present(folder):
        return False
    with signals_as_exits(), _locked(folder.parent, silent):
        doomed = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".pull-"))
        folder.rename(doomed / "model")  # gone at once, even if the deletion is interrupted
    return True


def _make(final: Path, fill: Callable[[Path, Progress], None], progress: Progress = silent) -> Path:
    """Make the folder `final` unless it exists: `fill` fills a temporary folder next to it, which is then renamed.

    An exception, Ctrl-C and a signal that ends the process remove what is unfinished.
    """
    if _present(final):
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with signals_as_exits(), _locked(final.parent, progress):
            if not _present(final):  # another process may have made it while this one waited
                folder = Path(tempfile.mkdtemp(dir=final.parent, prefix=".pull-")) / "model"
                folder.mkdir()
                fill(folder, progress)
                folder.rename(final)
    except OSError as error:
        words = f"cannot write the model to {final}: {error.strerror or error}"
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR) and os.path.lexists(final):
            raise PullFailed(f"{words}, and what is there is no model: remove it, then pull again") from None
        raise PullFailed(f"{words}; MINICACHE_HOME names another place") from None
    return final


@contextmanager
def _locked(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the store's lock; `progress` is told of a wait for it. Raises `OSError`, and `PullFailed` if the lock is no
    ordinary file.

    Only one pull runs at a time, so any `.pull-` folder at the start is left over. Removes those, and at the end its
    own.
    """
    lock = _open_lock(folder / ".lock")
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released by the system even if this process is killed
        except BlockingIOError:
            progress("waiting for another process that writes to the model store", 0, 1)
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            _remove_unfinished(folder)
            yield
        finally:
            _remove_unfinished(folder)
    finally:
        os.close(lock)


def _open_lock(path: Path) -> int:
    """The file descriptor of the lock, which processes started by a pull may inherit: the lock is theirs too."""
    # What a link names is not touched, an existing file is not truncated, and a pipe is not waited for.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        lock = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _bad_lock(path) from None
        raise
    if not stat.S_ISREG(os.fstat(lock).st_mode):
        os.close(lock)
        raise _bad_lock(path)
    os.set_inheritable(lock, True)
    return lock


def _bad_lock(path: Path) -> PullFailed:
    return PullFailed(f"the lock {path} of the model store is not an ordinary file: remove it, then pull again")


def _remove_unfinished(folder: Path) -> None:
    for left in folder.glob(".pull-*"):
        shutil.rmtree(left, ignore_errors=True)


def _folder(name: str) -> Path:
    return models_folder() / name.replace("/", "--")


def _present(folder: Path) -> Path | None:
    with suppress(OSError, ValueError):  # a name that cannot be a path is not in the store
        return folder if (folder / "config.json").is_file() else None
    return None


def _resolve_gguf(path: Path, progress: Progress) -> Path:
    """The converted copy of a GGUF file, under its name and the digest of its bytes."""
    from minicache.engine.models.gguf import convert

    try:
        with require_end(path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BrokenModel(f"{path} cannot be read: {error.strerror}") from None
    final = models_folder() / f"{path.stem}-{digest[:12]}"
    return _make(final, lambda folder, report: convert(path, folder, report), progress)
