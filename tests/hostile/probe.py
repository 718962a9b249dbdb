"""One run of the real command line with input that a stranger may have written, and what must never come of it.

    probe = Probe(("sim", "run", "a.toml"), files={"a.toml": b"title = 3"})
    assert faults(probe, run(probe)) == []

A run happens in a forked child of this process, so it costs milliseconds if the modules that it needs are imported
here already (`prepare`). The child sees a temporary folder and nothing of the user's:

    here/     its working folder, with the files of the probe: a name such as ../home/x leads out of it
    home/     HOME, the model store and the settings
    tmp/      TMPDIR

The machine is safe from what a probe does: memory, the size of a file and the time are limited, and a process of root
loses root's right to read and write everything, so that modes hold.
"""

import atexit
import ctypes
import gc
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
import traceback
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

EXECUTED = "executed"  # a probe whose input is code lets it make a file of this name
LIMIT = 60.0  # seconds of one run
MORE_MEMORY = 6 << 30  # bytes beyond what this process has
LONGEST_FILE = 256 << 20
LONGEST_SENTENCE = 5_000
# Whoever reads the output sees other text than the bytes say, or the terminal obeys: C0 without \t and \n, DEL, C1,
# controls of direction, separators of lines.
RAW_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
UNFINISHED = re.compile(r"\.minicache-|\.pull-|\.tmp$|^\..+\.\d+$|^tmp\w{8}$")
# These say 1 when they ran and the answer is no.
MAY_SAY_NO = ("diff", "experiment", "bench", "demo", "kernels", "sim run")


@dataclass(frozen=True)
class Entry:
    """Something in a probe's folder that is no ordinary file of mode 0644. A "null" is a device as /dev/null, or a
    socket where devices cannot be made."""

    kind: Literal["file", "link", "fifo", "folder", "socket", "null"]
    content: bytes = b""
    to: str = ""  # of a link
    mode: int | None = None


@dataclass(frozen=True)
class Probe:
    """A command line, the files that it finds, and the names that it may create or change. A name that ends in "/"
    stands for everything in that folder."""

    argv: tuple[str, ...]
    files: Mapping[str, bytes | Entry] = field(default_factory=dict)
    writes: tuple[str, ...] = ()
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        entries = {name: e if isinstance(e, Entry) else Entry("file", e) for name, e in self.files.items()}
        files = {n: {**asdict(e), "content": b64encode(e.content).decode()} for n, e in entries.items()}
        return {**asdict(self), "files": files, "stdin": b64encode(self.stdin).decode()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Probe":
        files = {n: Entry(**{**e, "content": b64decode(e["content"])}) for n, e in value["files"].items()}
        argv, writes = tuple(value["argv"]), tuple(value["writes"])
        return cls(argv, files, writes, b64decode(value["stdin"]), value["env"])


@dataclass(frozen=True)
class Outcome:
    """What came of a run. `status` is negative for the signal that ended it, None if it ran longer than the limit."""

    status: int | None
    stdout: bytes
    stderr: bytes
    before: Mapping[str, tuple[object, ...]]
    after: Mapping[str, tuple[object, ...]]
    written: Mapping[str, bytes]  # contents of `after` that are new
    left_running: bool
    wall_seconds: float
    cpu_seconds: float


def prepare(*modules: str) -> None:
    """Import what a command of the light install needs, and these modules."""
    for name in ("main", "bench", "demo", "diff", "experiment", "kernels", "model", "sim", "sim_report"):
        import_module(f"minicache.cli.{name}")
    light = ("sim.explainer", "sim.library", "sim.lock_step", "sim.recorded", "sim.redact", "sim.timeline")
    light += ("prompts.examine", "prompts.report", "prompts.shown", "prompts.request_log", "prompts.html")
    light += ("text.renderer", "text.sources")
    for name in light:
        import_module(f"minicache.{name}")
    for name in (
        "minicache_tui.command",
        "minicache_tui.picture",
        "jinja2",
        "rich.console",
        "rich.table",
        "rich.progress",
        *modules,
    ):
        import_module(name)
    with redirect_stdout(StringIO()), suppress(SystemExit):  # what Typer imports when it runs a command
        import_module("minicache.cli.main").main(["sim", "run", "--help"])
    gc.collect()
    gc.freeze()  # a collection in the child would copy every page


def run(probe: Probe, limit: float = LIMIT) -> Outcome:
    """Run the command line in a child that is killed after `limit` seconds."""
    root = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        for name in ("here", "home", "tmp"):
            (root / name).mkdir()
        for name, entry in probe.files.items():
            _make(root / "here" / name, entry if isinstance(entry, Entry) else Entry("file", entry))
        (root / "stdin").write_bytes(probe.stdin)
        before = dict(_contents(root))
        sys.stdout.flush()
        sys.stderr.flush()
        begin = time.monotonic()
        pid = os.fork()
        if pid == 0:
            _child(probe, root)
        status, used = _wait(pid, begin + limit)
        seconds = time.monotonic() - begin
        left_running = _kill_group(pid)
        after = dict(_contents(root))
        new = [name for name, what in after.items() if what[0] == "file" and what != before.get(name)]
        written = {name: (root / name).read_bytes() for name in new if os.access(root / name, os.R_OK)}
        out, err = ((root / name).read_bytes() for name in ("stdout", "stderr"))
        cpu = used.ru_utime + used.ru_stime
        return Outcome(status, out, err, before, after, written, left_running, seconds, cpu)
    finally:
        _remove(root)


def faults(probe: Probe, outcome: Outcome) -> list[str]:
    """What must never come of a command line and did, each as `kind: details`."""
    found = list(_status_faults(probe, outcome))
    return [*found, *_output_faults(probe, outcome, ended_well=not found), *_file_faults(probe, outcome)]


# --- what is a fault ----------------------------------------------------------------------------------------------


def _status_faults(probe: Probe, outcome: Outcome) -> Iterator[str]:
    status, err = outcome.status, outcome.stderr.decode(errors="replace")
    if "Traceback (most recent call last)" in err:
        yield f"traceback: {_last_line(err)}"
    elif status is None:
        yield f"hang: after {outcome.wall_seconds:.0f} s, of which {outcome.cpu_seconds:.0f} s were computing"
    elif status < 0:
        yield f"killed: by {signal.Signals(-status).name}"
    elif status == 70:
        yield f"status 70: {_last_line(err)}"
    elif status not in (0, 2) and not (status == 1 and " ".join(probe.argv).startswith(MAY_SAY_NO)):
        yield f"status {status}: not documented; {_last_line(err)}"
    elif status == 2:
        said = [line for line in err.splitlines() if line.strip()]
        if not said or not said[-1].startswith("minicache: "):
            yield f"sentences: the last line of stderr is no sentence of minicache: {_last_line(err)!r}"
        elif len(said[-1]) > LONGEST_SENTENCE:
            yield f"sentences: one of {len(said[-1])} characters"
        elif sum(line.startswith("minicache: ") for line in said) > 1:
            yield f"sentences: more than one: {said}"
    if outcome.left_running:
        yield "processes: one was left running"


def _output_faults(probe: Probe, outcome: Outcome, ended_well: bool) -> Iterator[str]:
    for name, output in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        try:
            text = output.decode()
        except UnicodeDecodeError as error:
            yield f"control: {name} is not UTF-8 at byte {error.start}"
            continue
        if found := RAW_CONTROL.search(text):
            yield f"control: {found[0]!r} on {name}: {text[max(found.start() - 30, 0) : found.end() + 30]!r}"
        if found := re.search(r"panicked at|RUST_BACKTRACE|Warning: ", text):
            yield f"noise: {name} has a library's own words: {text[max(found.start() - 100, 0) : found.end() + 100]!r}"
    printed = ended_well and "--json" in probe.argv and outcome.status in (0, 1)
    if printed and not outcome.stdout.startswith(b"Usage: ") and (words := _json_fault(outcome.stdout)):
        yield f"json: {words}"


def _file_faults(probe: Probe, outcome: Outcome) -> Iterator[str]:
    may_write = tuple(os.path.normpath(f"here/{name}") + "/" * name.endswith("/") for name in probe.writes)
    for name in sorted(outcome.before.keys() | outcome.after.keys()):
        before, after = outcome.before.get(name), outcome.after.get(name)
        if before == after:
            continue
        if Path(name).name == EXECUTED:
            yield "executed: code of the input was run"
        elif before is None and UNFINISHED.search(Path(name).name):
            yield f"files: {name} was left behind"
        elif name not in may_write and not f"{name}/".startswith(tuple(m for m in may_write if m.endswith("/"))):
            yield f"files: {name} was {'created' if before is None else 'changed' if after else 'deleted'}"
        elif before is not None and (after is None or before[:2] != after[:2] or before[0] != "file"):
            yield f"files: {name} was {before[:2]} and is {after and after[:2]}"
    for name, content in outcome.written.items():
        if name.endswith(".svg"):
            try:
                ElementTree.fromstring(content)
            except ElementTree.ParseError as error:
                yield f"written: {name} is no picture: {error}"
        for number, line in enumerate(content.splitlines() if name.endswith(".jsonl") else ()):
            if words := _json_fault(line):
                yield f"written: {name} line {number + 1}: {words}"
                break


def _json_fault(text: bytes) -> str | None:
    """Why this is not one JSON value as of RFC 8259."""
    try:
        json.loads(text, parse_constant=lambda name: _refuse(f"{name} is no JSON"))
    except (ValueError, RecursionError) as error:
        return f"{error}: {text[:60]!r}"
    return None


def _refuse(words: str) -> None:
    raise ValueError(words)


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2][:200]


# --- the folder ---------------------------------------------------------------------------------------------------


def _make(path: Path, entry: Entry) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.kind == "file":
        path.write_bytes(entry.content)
    elif entry.kind == "link":
        path.symlink_to(entry.to)
    elif entry.kind == "fifo":
        os.mkfifo(path)
    elif entry.kind == "folder":
        path.mkdir(exist_ok=True)
    elif entry.kind == "null" and os.geteuid() == 0:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    if entry.mode is not None:
        path.chmod(entry.mode)


def _contents(root: Path) -> Iterator[tuple[str, tuple[object, ...]]]:
    """For each name below the three folders: kind, mode, and what tells it from another of the kind."""
    for top in ("here", "home", "tmp"):
        for folder, folders, files in os.walk(root / top):
            for name in (*folders, *files):
                path = Path(folder, name)
                found = path.lstat()
                kind = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "folder"}.get(
                    stat.S_IFMT(found.st_mode), "special"
                )
                what: object = found.st_rdev
                if kind == "file":
                    what = hashlib.sha256(path.read_bytes()).digest()
                elif kind == "link":
                    what = os.readlink(path)
                yield str(path.relative_to(root)), (kind, oct(found.st_mode), what)


def _remove(root: Path) -> None:
    for folder, folders, _ in os.walk(root):
        for name in folders:
            if not Path(folder, name).is_symlink():
                Path(folder, name).chmod(0o700)
    shutil.rmtree(root)


# --- the child ----------------------------------------------------------------------------------------------------


def _child(probe: Probe, root: Path) -> None:
    """Be the command, and never return."""
    status = 99
    try:
        os.setsid()
        for number, name, flags in (
            (0, "stdin", os.O_RDONLY),
            (1, "stdout", os.O_WRONLY | os.O_CREAT),
            (2, "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        ):
            opened = os.open(root / name, flags, 0o600)
            os.dup2(opened, number)
            os.close(opened)
        utf8: Any = {"encoding": "utf-8", "closefd": False}
        sys.stdin = open(0, **utf8)  # noqa: SIM115
        sys.stdout = open(1, "w", **utf8)  # noqa: SIM115
        sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, **utf8)  # noqa: SIM115
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
        os.chdir(root / "here")
        os.environ.clear()
        os.environ.update(_environment(root), **probe.env)
        tempfile.tempdir = None
        _limit()
        status = _main(probe.argv)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _main(argv: tuple[str, ...]) -> int:
    """The exit status, as the interpreter would give it."""
    from minicache.cli.main import main

    sys.argv = ["minicache", *argv]
    status = 0
    try:
        main(list(argv))
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        traceback.print_exc()
        status = 120
    return status


def _environment(root: Path) -> dict[str, str]:
    home = root / "home"
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "TMPDIR": str(root / "tmp"),
        "MINICACHE_HOME": str(home / "store"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }


def _limit() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 1 << 20
    for kind, most in (
        (resource.RLIMIT_AS, pages * resource.getpagesize() + MORE_MEMORY),
        (resource.RLIMIT_FSIZE, LONGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    if sys.platform == "linux" and os.geteuid() == 0:  # no capability, so the modes of files hold for root too
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)())


# --- the parent ---------------------------------------------------------------------------------------------------


def _wait(pid: int, until: float) -> tuple[int | None, resource.struct_rusage]:
    """The status of the child, or None if it had to be killed at the moment `until`; and what it used."""
    pause = 0.001
    while True:
        done, how, used = os.wait4(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(how), used
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            return None, os.wait4(pid, 0)[2]
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def _kill_group(pid: int) -> bool:
    """End what the child has started; whether there was something."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says this of processes that have ended
        return False
    return True
