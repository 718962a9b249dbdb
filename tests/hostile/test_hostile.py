"""Nothing that a stranger wrote makes a command crash, hang, obey or write elsewhere."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.kinds import kinds
from tests.hostile.probe import EXECUTED, Entry, Probe, faults, prepare, run

EACH = 5  # inputs of each kind here; a fork takes 20 ms
IN_ALL = 5_000  # of all kinds together in `make nightly`
ROOT = Path(__file__).parents[2]


def throw(*arguments: object) -> dict[str, dict[str, object]]:
    """What `python -m tests.hostile` found. Another process, because it forks and imports a lot."""
    command = [sys.executable, "-m", "tests.hostile", "--json", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, check=False)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    folder = tmp_path_factory.mktemp("hostile")
    return throw("--count", EACH * len(kinds()), "--jobs", 1, "--faults", folder)


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_a_few_inputs(kind: str, few: dict[str, dict[str, object]]) -> None:
    assert few[kind]["inputs"] == EACH
    assert few[kind]["faults"] == []


@pytest.mark.nightly
@pytest.mark.parametrize("kind", kinds())
def test_many_inputs(kind: str) -> None:
    """A probe with a fault is in hostile-faults/: `python -m tests.hostile --replay FILE`."""
    found = throw("--kind", kind, "--count", -(-IN_ALL // len(kinds())), "--seed", 2)
    assert found[kind]["faults"] == []


def ends_with(status: int, words: str = "") -> Callable[[list[str]], None]:
    def command(argv: list[str]) -> None:
        print(words, file=sys.stderr)
        sys.exit(status)

    return command


def loops(argv: list[str]) -> None:
    while True:
        pass


def raises(argv: list[str]) -> None:
    raise ValueError


def prints(text: str) -> Callable[[list[str]], None]:
    return lambda argv: print(text)


def writes(name: str) -> Callable[[list[str]], None]:
    return lambda argv: Path(name).write_text("x") and None


def replaces_the_link(argv: list[str]) -> None:
    os.replace("file", "link")


def leaves_a_process(argv: list[str]) -> None:
    subprocess.Popen(["sleep", "60"])


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (ends_with(0), None),
        (prints('{"a": [1, "\\u001b"]}'), None),
        (ends_with(2, "progress\nminicache: no such file"), None),
        (writes("out.svg"), "written"),
        (raises, "traceback"),
        (loops, "hang"),
        (ends_with(1), "status 1"),
        (ends_with(70, "a fault"), "status 70"),
        (ends_with(2), "sentences"),
        (ends_with(2, "minicache: a\nminicache: b"), "sentences"),
        (ends_with(0, "thread '<unnamed>' panicked at src/x.rs"), "noise"),
        (prints('"\x1b[2J"'), "control"),
        (prints('"\u202e"'), "control"),
        (prints("NaN"), "json"),
        (prints("{} {}"), "json"),
        (writes("other"), "files"),
        (writes("../home/other"), "files"),
        (writes(".minicache-0123"), "files"),
        (writes(EXECUTED), "executed"),
        (replaces_the_link, "files"),
        (leaves_a_process, "processes"),
    ],
)
def test_a_fault_is_seen(
    command: Callable[[list[str]], None], fault: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare()
    monkeypatch.setattr("minicache.cli.main.main", command)
    files = {"file": b"", "link": Entry("link", to="file")}
    probe = Probe(("sim", "list", "--json") if fault == "json" else ("sim", "list"), files, writes=("out.svg", "link"))
    found = faults(probe, run(probe, limit=0.3 if fault == "hang" else 60))
    assert {each.partition(":")[0] for each in found} == ({fault} if fault else set())


def test_a_probe_survives_being_written_down() -> None:
    probe = Probe(
        ("diff", "a\udcff"),
        {"a\udcff": Entry("file", b"\xff"), "l": Entry("link", to="x", mode=0o600)},
        ("b",),
        b"\0",
        {"A": "1"},
    )
    assert Probe.from_json(json.loads(json.dumps(probe.to_json()))) == probe
