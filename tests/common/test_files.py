"""A written file is whole or absent, whatever interrupts the writer."""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from minicache.common.files import atomic_write, require_writable, write_text


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
    elif what == "circle":
        path.symlink_to(path.name)


@pytest.mark.parametrize(("what", "why"), [("folder", "folder"), ("pipe", "ordinary"), ("circle", "itself")])
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
