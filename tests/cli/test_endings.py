"""How a command ends when something fails that no command expects: itself, stdout, or its reader."""

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
import typer

from minicache.cli import main as cli
from minicache.cli.console import progress_bar

MANY_LINES = ("sim", "run", "thundering-herd", "--plain")


class Panic(BaseException):
    """As Rust's panics are: no `Exception`."""


FAILURES = (
    ValueError("secret \x1b[2J\nwords"),
    RecursionError("maximum recursion depth exceeded"),
    MemoryError(),
    OSError(5, "Input/output error", "file.json"),
    ModuleNotFoundError("No module named 'other'", name="other"),
    Panic("called `Option::unwrap()`"),
)


def call(monkeypatch, failure, *args):
    """Run a command that fails in this way; returns the exit status."""

    def command(redact: bool = False) -> None:
        raise failure

    app = typer.Typer()
    app.command()(command)
    monkeypatch.setattr(cli, "import_module", lambda name: type("module", (), {"app": app}))
    with pytest.raises(SystemExit) as end:
        cli.main(args)
    return end.value.code


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_an_unexpected_failure_is_a_sentence_with_a_status_of_its_own(monkeypatch, capsys, failure):
    assert call(monkeypatch, failure, "doctor") == cli.FAULT
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"minicache: unexpected failure, {type(failure).__name__}")
    assert "--debug" in line
    assert line.isprintable()


def test_only_debug_prints_the_traceback(monkeypatch, capsys):
    assert call(monkeypatch, FAILURES[0], "--debug", "doctor") == cli.FAULT
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):\n")
    assert all(line.isprintable() for line in err.splitlines())


def test_redact_hides_the_words_of_a_failure(monkeypatch, capsys):
    assert call(monkeypatch, FAILURES[0], "doctor", "--redact") == cli.FAULT
    assert "unexpected failure, ValueError. This" in (err := capsys.readouterr().err)
    assert "secret" not in err


def end_of(args, redirection):
    """The exit status and stderr of a command under a shell's redirection of its streams."""
    script = f'"$0" -m minicache "$@" {redirection}'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is a device of Linux")
@pytest.mark.parametrize("args", [MANY_LINES, ("--version",)], ids=["while it runs", "when it ends"])
def test_a_full_disk_behind_stdout_is_a_sentence(args):
    status, err = end_of(args, "> /dev/full")
    assert (status, err) == (cli.OUTPUT_FAILED, "minicache: stdout cannot be written: No space left on device\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is a device of Linux")
@pytest.mark.parametrize(
    ("args", "redirection", "status"),
    [
        (("diff", "nofile.json", "other.json"), "2> /dev/full", 2),
        (("sim", "run", "nope"), "2> /dev/full", 2),
        (MANY_LINES, "> /dev/full 2> /dev/full", cli.OUTPUT_FAILED),
    ],
    ids=["diff", "sim run", "stdout, too"],
)
def test_a_stderr_that_cannot_be_written_changes_no_status(args, redirection, status):
    assert end_of(args, redirection) == (status, "")


@pytest.mark.parametrize("redirection", [">&-", "<&-"])
def test_a_closed_stream_is_no_failure(redirection):
    assert end_of(("sim", "list"), redirection) == (0, "")


def test_a_reader_that_has_gone_ends_the_command_without_words():
    with subprocess.Popen(
        [sys.executable, "-m", "minicache", *MANY_LINES], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == cli.READER_GONE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_a_command_without_a_traceback(number, tmp_path):
    """The command waits for its input, a pipe into which nothing is written."""
    os.mkfifo(tmp_path / "waits.toml")
    code = (
        "import sys, typer\nfrom minicache.cli import main as cli\n"
        "def command():\n    print('ready', flush=True)\n    open('waits.toml').read()\n"
        "app = typer.Typer()\napp.command()(command)\n"
        "cli.import_module = lambda name: type('module', (), {'app': app})\ncli.main(['doctor'])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.stderr.read() == b""
    assert process.returncode == 128 + number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_under_a_progress_bar_gives_the_cursor_back(number, monkeypatch):
    hide, show = b"\x1b[?25l", b"\x1b[?25h"

    def command() -> None:
        with progress_bar() as report:
            report("downloading", 1, 2)
            time.sleep(60)

    app = typer.Typer()
    app.command()(command)
    monkeypatch.setattr(cli, "import_module", lambda name: type("module", (), {"app": app}))
    monkeypatch.setenv("TERM", "xterm")
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
            cli.main(["doctor"])
        except SystemExit as end:
            os._exit(end.code)
        finally:
            os._exit(1)
    shown = b""
    while b"downloading" not in shown:
        shown += os.read(terminal, 4096)
    assert shown.count(hide) == 1
    assert show not in shown
    os.kill(pid, number)
    with suppress(OSError):  # EIO: the command has ended
        while part := os.read(terminal, 4096):
            shown += part
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + number
    assert shown.rindex(show) > shown.rindex(hide)
    os.close(terminal)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_at_any_moment_leaves_no_traceback_and_no_file(number, tmp_path):
    args = ("sim", "run", "thundering-herd", "--events", "log.jsonl")
    ended = 0
    for moment in range(40):
        with subprocess.Popen(
            [sys.executable, "-m", "minicache", *args], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            time.sleep(0.02 * moment)
            process.send_signal(number)
            err = process.stderr.read().decode()
        assert "Traceback" not in err or "__main__.py" not in err, err  # earlier, the signal meets Python's own start
        ended += process.returncode == 128 + number
        assert {file.name for file in tmp_path.iterdir()} <= {"log.hash.jsonl", "log.radix.jsonl"}
    assert ended
