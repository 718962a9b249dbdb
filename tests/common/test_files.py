"""A written file is whole or absent, whatever interrupts the writer."""

import os
import resource
import secrets
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from minicache.common.files import atomic_write, existing, require_end, require_writable, write_text


def test_a_new_file_is_written(tmp_path):
    path = tmp_path / "log.jsonl"
    with atomic_write(path) as out:
        out.write("é\n")
        assert not path.exists()
    assert path.read_bytes() == "é\n".encode()
    assert os.listdir(tmp_path) == ["log.jsonl"]


def test_an_existing_file_keeps_its_mode_and_a_link_stays(tmp_path):
    target, path = tmp_path / "real.svg", tmp_path / "link.svg"
    target.write_text("old")
    target.chmod(0o640)
    path.symlink_to("real.svg")
    write_text(path, "new")
    assert path.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
@pytest.mark.parametrize("there", [True, False])
def test_after_an_exception_everything_is_as_it_was(error, there, tmp_path):
    path = tmp_path / "page.html"
    if there:
        path.write_text("old")

    def write():
        with atomic_write(path) as out:
            out.write("half")
            raise error

    with pytest.raises(error):
        write()
    assert [file.name for file in tmp_path.iterdir()] == (["page.html"] if there else [])
    assert not there or path.read_text() == "old"


def test_text_that_cannot_be_encoded_leaves_nothing(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "x", "\ud800")
    assert not os.listdir(tmp_path)
    write_text(tmp_path / "x", "\ud800", errors="backslashreplace")
    assert (tmp_path / "x").read_text() == "\\ud800"


WRITER = """
import sys
from pathlib import Path
from minicache.common.files import atomic_write
with atomic_write(Path(sys.argv[1])) as out:
    out.write("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_nothing(number, tmp_path):
    path = tmp_path / "log.jsonl"
    command = [sys.executable, "-c", WRITER, str(path)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # a shell's background jobs ignore SIGINT
    )
    assert process.stdout.readline() == b"writing\n"
    assert len(os.listdir(tmp_path)) == 1
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert os.listdir(tmp_path) == []


def test_the_handlers_of_the_program_stay(tmp_path):
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    write_text(tmp_path / "x", "")
    assert before == {number: signal.getsignal(number) for number in before}
    failures = []

    def write():
        try:
            write_text(tmp_path / "y", "")  # signals have no handlers outside the main thread
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert not failures


def made(path, what):
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to(os.devnull)
    elif what == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif what == "circle":
        path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("folder", "folder"),
        ("pipe", "ordinary"),
        ("device", "ordinary"),
        ("socket", "ordinary"),
        ("circle", "itself"),
    ],
)
def test_only_ordinary_files_are_written(what, why, tmp_path):
    path = tmp_path / "picture.svg"
    made(path, what)
    for attempt in (lambda: require_writable(path), lambda: write_text(path, "new")):
        with pytest.raises(OSError, match=why):
            attempt()
    assert os.listdir(tmp_path) == ["picture.svg"]


def test_what_may_not_be_written_is_refused(tmp_path, monkeypatch):
    with pytest.raises(OSError, match="there is no folder"):
        require_writable(tmp_path / "nowhere" / "x")
    (tmp_path / "x").write_text("mine")
    for protected in (tmp_path / "x", tmp_path):
        monkeypatch.setattr(os, "access", lambda path, mode, protected=protected: path != protected)  # root may write
        with pytest.raises(OSError, match="write-protected"):
            write_text(tmp_path / "x", "new")
    assert (tmp_path / "x").read_text() == "mine"


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a\0b", "x" * 300, "x/" * 3000 + "x", "x" * 300 + "/x", "file/x"])
def test_a_name_that_no_file_can_have_is_an_os_error(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match=r"\[Errno \d+\] \w+"):
        write_text(Path(name), "new")
    assert os.listdir(tmp_path) == ["file"]


def test_a_read_only_file_is_refused_whoever_asks(tmp_path):
    """Also for root, who may write every file."""
    (tmp_path / "x").write_text("mine")
    (tmp_path / "x").chmod(0o444)
    with pytest.raises(OSError, match="write-protected"):
        write_text(tmp_path / "x", "new")
    assert (tmp_path / "x").read_text() == "mine"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o622, 0o200, 0o777])
def test_the_unfinished_file_is_never_more_readable(mode, tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(mode)
    with atomic_write(path) as out:
        (unfinished,) = set(tmp_path.iterdir()) - {path}
        assert stat.S_IMODE(unfinished.stat().st_mode) & ~mode & 0o077 == 0
        out.write("new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "x", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_a_link_planted_at_the_unfinished_name_is_not_followed(tmp_path, monkeypatch):
    """The name is random; here somebody has guessed it."""
    monkeypatch.setattr(secrets, "token_hex", lambda size: "00")
    (tmp_path / "victim").write_text("mine")
    (tmp_path / ".minicache-00").symlink_to("victim")
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "x", "new")
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (tmp_path / "x").exists()


def test_a_file_that_the_command_reads_is_not_replaced(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("mine")
    (tmp_path / "link").symlink_to("log.jsonl")
    os.link(log, tmp_path / "other-name")
    for name in ("log.jsonl", "link", "other-name"):
        with pytest.raises(OSError, match="reads this file"):
            require_writable(tmp_path / name, "smollm2", "", "a\0b", "x" * 5000, log)
    assert require_writable(tmp_path / "new", log, tmp_path / "new") == tmp_path / "new"


PRINTER = "import sys, pathlib; from minicache.common.files import *; write_text(pathlib.Path(sys.argv[1]), 'new')"


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/stderr", "out", "err"])
def test_the_file_that_the_command_prints_into_is_not_replaced(name, tmp_path):
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        done = subprocess.run([sys.executable, "-c", PRINTER, name], stdout=out, stderr=err, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert "prints into it" in (tmp_path / "err").read_text()
    assert (tmp_path / "out").read_text() == ""


def test_a_full_disk_leaves_the_old_file(tmp_path):
    """The limit of a process on the size of a file is refused like a full disk: by an error of `write`."""
    path = tmp_path / "x"
    path.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="large"):
            write_text(path, "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_device_is_no_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").touch()
    assert require_end(tmp_path / "empty") == tmp_path / "empty"
    (tmp_path / "link").symlink_to("/dev/zero")
    assert require_end(tmp_path / "file") == tmp_path / "file"
    for name, words in (("link", "it is a device"), ("missing", "No such file")):
        with pytest.raises(OSError, match=words):
            require_end(tmp_path / name)


@pytest.mark.skipif(not Path("/proc/self/pagemap").exists(), reason="this system has no /proc, so no such files")
def test_a_file_that_the_system_makes_up_is_no_input(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("/proc/self/pagemap")
    with pytest.raises(OSError, match="does not say where it ends"):
        require_end(tmp_path / "link.json")


def test_a_text_that_is_no_name_names_nothing(tmp_path: Path) -> None:
    assert existing(tmp_path) == tmp_path
    assert existing("~") == Path.home()
    for name in ("x" * 5_000, "a\0b", "~nobody-at-all/x", str(tmp_path / "missing")):
        assert existing(name) is None
