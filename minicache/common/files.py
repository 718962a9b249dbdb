"""Files that commands write: whole or absent, and only new or ordinary ones.

The text is written under another name first, and that file then takes the place. A reader of the path sees the old
content or the new one, never a part, whatever interrupts the writer. A link is followed, as a shell's `>` does: what it
names is replaced, and the link stays.
"""

import errno
import os
import secrets
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn, TextIO

ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))

STDOUT, STDERR = 1, 2  # file descriptors; /dev/stdout may be a link to an ordinary file


def require_writable(path: Path, *inputs: str | Path) -> Path:
    """The file that writing to `path` creates or replaces: a link is followed, and the target is a new file or an
    ordinary one; not one of the `inputs` (names that may be no files), nor the file that stdout or stderr goes into.
    Raises `OSError`, whose `strerror` says what is wrong."""
    there = _status(path)
    target = Path(os.path.realpath(path))
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise OSError(errno.EISDIR, "it is a folder: give the name of a file")
    if not target.parent.is_dir():
        raise OSError(errno.ENOENT, f"there is no folder {target.parent}")
    if there is not None and not stat.S_ISREG(there.st_mode):
        raise OSError(errno.EINVAL, "it is not an ordinary file")
    # Root may write every file: the mode says what the owner wants.
    if there is not None and not (there.st_mode & 0o222 and os.access(target, os.W_OK)):
        raise OSError(errno.EACCES, "the file is write-protected")
    if there is not None and any(_is_file(there, name) for name in (STDOUT, STDERR, *inputs)):
        raise OSError(errno.EEXIST, "the command reads this file or prints into it: give another name")
    if not os.access(target.parent, os.W_OK):
        raise OSError(errno.EACCES, f"the folder {target.parent} is write-protected")
    return target


def _status(path: Path) -> os.stat_result | None:
    """What the kernel finds at `path`; `None` if nothing is there. Raises `OSError`, also for a link that the kernel
    does not follow: in a folder such as /tmp, the link of another user."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except ValueError:
        raise OSError(errno.EINVAL, "the name has a null character") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link that leads to itself") from None
        raise


def _is_file(there: os.stat_result, name: str | Path | int) -> bool:
    with suppress(OSError, ValueError):  # not the name of a file
        return os.path.samestat(there, os.stat(name))
    return False


def existing(name: str | Path) -> Path | None:
    """The file or folder of that name, in which `~` is a user's home; `None` if there is none, or the text is no name:
    too long, with a null character, of a user who does not exist."""
    with suppress(OSError, ValueError, RuntimeError):
        path = Path(name).expanduser()
        return path if path.exists() else None
    return None


def require_end(path: Path) -> Path:
    """`path`, unless it is a device or a file that the system makes up: `/dev/zero` and `/proc/self/pagemap` could be
    read for ever. Raises `OSError`, also if there is nothing."""
    status = path.stat()
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise OSError(errno.EINVAL, "it is a device, not a file")
    if stat.S_ISREG(status.st_mode) and not status.st_size:
        with path.open("rb") as file:
            if file.read(1):
                raise OSError(errno.EINVAL, "it is a file of the system, and does not say where it ends")
    return path


@contextmanager
def atomic_write(path: Path, errors: str = "strict") -> Iterator[TextIO]:
    """A text file to write to, in UTF-8, that takes the place of `path` when the block ends without an exception.

    An existing file keeps its mode and its group, and the unfinished file is never more readable. After an exception,
    Ctrl-C or a signal that ends the process, `path` is as it was and the unfinished file is removed. `errors` is how
    characters that have no UTF-8 are treated, as for `open`. Raises `OSError`.
    """
    target = require_writable(path)
    there = _status(target)
    unfinished = target.with_name(f".minicache-{secrets.token_hex(8)}")
    with signals_as_exits():
        try:
            # With O_EXCL the kernel follows no link at this name and opens nothing that is there.
            file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if there is None else 0o600)
            with open(file, "w", encoding="utf-8", errors=errors) as out:
                yield out
                if there is not None:
                    _take_over_access(file, there)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)


def _take_over_access(file: int, there: os.stat_result) -> None:
    """Give the open file the owner, group and mode of another; without the right to, its group gets no access."""
    mode = stat.S_IMODE(there.st_mode) & 0o777
    try:
        os.fchown(file, there.st_uid, there.st_gid)
    except PermissionError:
        mode &= mode if os.fstat(file).st_gid == there.st_gid else 0o707
    os.fchmod(file, mode)


def write_text(path: Path, text: str, errors: str = "strict") -> None:
    """Write all of `text` to `path`, or nothing; as `atomic_write`. Raises `OSError`."""
    with atomic_write(path, errors) as out:
        out.write(text)


@contextmanager
def signals_as_exits() -> Iterator[None]:
    """SIGTERM and SIGHUP, which would end the process at once, raise `SystemExit` with the status 128 + their number
    instead, so that `finally` is reached.

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
