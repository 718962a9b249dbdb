"""Files that are whole or absent: the text is written under another name first, and that file then takes the place.

A reader of the path sees the old content or the new one, never a part, whatever interrupts the writer.
"""

import errno
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TextIO

ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def require_writable(path: Path) -> Path:
    """The file that writing to `path` creates or replaces: a link is followed, and the target is a new file or an
    ordinary one. Raises `OSError`, whose `strerror` says what is wrong."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise OSError(errno.EISDIR, "it is a folder: give the name of a file")
    if target.is_symlink():
        raise OSError(errno.ELOOP, "it is a link that leads to itself")
    if not target.parent.is_dir():
        raise OSError(errno.ENOENT, f"there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is not an ordinary file")
    if target.exists() and not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, "the file is write-protected")
    if not os.access(target.parent, os.W_OK):
        raise OSError(errno.EACCES, f"the folder {target.parent} is write-protected")
    return target


@contextmanager
def atomic_write(path: Path, errors: str = "strict") -> Iterator[TextIO]:
    """A text file to write to, in UTF-8, that takes the place of `path` when the block ends without an exception.

    An existing file keeps its mode. After an exception, Ctrl-C or a signal that ends the process, `path` is as it was
    and the unfinished file is removed. `errors` is how characters that have no UTF-8 are treated, as for `open`.
    Raises `OSError`.
    """
    target = require_writable(path)
    unfinished = target.with_name(f".minicache-{secrets.token_hex(8)}")
    with _signals_as_exceptions():
        try:
            with unfinished.open("x", encoding="utf-8", errors=errors) as out:
                yield out
            if target.exists():
                shutil.copymode(target, unfinished)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)


def write_text(path: Path, text: str, errors: str = "strict") -> None:
    """Write all of `text` to `path`, or nothing; as `atomic_write`. Raises `OSError`."""
    with atomic_write(path, errors) as out:
        out.write(text)


@contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """Signals that would end the process at once raise `SystemExit` instead, so that `finally` is reached.

    Handlers that the program has set stay; Python allows handlers in the main thread only.
    """
    ours = []
    if threading.current_thread() is threading.main_thread():
        ours = [number for number in ENDING_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _exit)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _exit(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)
