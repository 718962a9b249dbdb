"""In any encoding of stdout and stderr a command prints all of its report, and replaces what cannot be encoded."""

import io
import json
import sys
from importlib.util import find_spec

import pytest

from minicache.cli import main as cli
from minicache.common.printable import IN_ASCII, READABLE
from tests.thinned import thinned

MODEL = pytest.mark.skipif(find_spec("torch") is None, reason="the engine needs torch: minicache-llm[engine]")
BODY = {"messages": [{"role": "user", "content": "Où est mon colis → ?"}]}
OTHER = {"messages": [{"role": "user", "content": "Où est ma lettre → ?"}]}
EVERY_RUN = [
    ["--help"],
    ["sim", "list"],
    ["sim", "run", "thrashing"],
    ["sim", "run", "two-equal-prompts", "--cache", "both", "--plain"],
    ["sim", "run", "two-equal-prompts", "--json"],
    ["sim", "explain", "two-equal-prompts", "--event", "12"],
    ["diff", "a.json", "b.json"],
    ["diff", "a.json", "b.json", "--json"],
    ["tui", "--keys"],
    ["tui", "two-equal-prompts", "--svg", "é→.svg"],
    pytest.param(["model", "list"], marks=MODEL),
]
ONE_ENCODING = [  # because these take seconds
    ["bench", "core", "--rounds", "1"],
    pytest.param(["doctor"], marks=MODEL),
    pytest.param(["demo", "--model", "tiny", "--quick"], marks=MODEL),
    pytest.param(["demo", "--model", "tiny", "--quick", "--json"], marks=MODEL),
    pytest.param(["experiment", "breakers", "--model", "tiny", "--requests", "2", "--cache", "hash"], marks=MODEL),
    pytest.param(
        ["kernels", "check", "--target", "sm_80", "--kernel", "store_kv", "--head-size", "64"],
        marks=[MODEL, pytest.mark.nightly],
    ),
]
WRONG = [
    ["sim", "run", "→"],
    ["bench", "é"],
    ["sim", "list", "→"],
    ["sim", "run", "--é"],
    ["diff", "é→.json", "b.json"],
]
ENCODINGS = ["ascii", "latin-1"]


def run(arguments, encoding, monkeypatch):
    """Exit status, and what came to stdout and stderr, decoded."""
    streams = {
        name: io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict") for name in ("stdout", "stderr")
    }
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    with pytest.raises(SystemExit) as exit:
        cli.main(arguments)
    for stream in streams.values():
        stream.flush()
    return exit.value.code, *(stream.buffer.getvalue().decode(encoding) for stream in streams.values())


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("arguments", EVERY_RUN, ids=" ".join)
def test_a_command_prints_its_report(arguments, encoding, tmp_path, monkeypatch):
    for name, body in (("a.json", BODY), ("b.json", OTHER)):
        (tmp_path / name).write_text(json.dumps(body), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code, out, err = run(arguments, encoding, monkeypatch)
    assert code == (1 if arguments[0] == "diff" else 0)  # 1: the two differ
    assert "minicache: " not in err
    assert out
    if "--json" in arguments:
        assert json.loads(out)


@pytest.mark.parametrize("encoding", thinned(ENCODINGS))
@pytest.mark.parametrize("arguments", ONE_ENCODING, ids=" ".join)
def test_a_long_command_prints_its_report(arguments, encoding, tmp_path, monkeypatch):
    test_a_command_prints_its_report(arguments, encoding, tmp_path, monkeypatch)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_command_says_what_is_wrong(arguments, encoding, monkeypatch):
    code, out, err = run(arguments, encoding, monkeypatch)
    assert code == 2
    assert out == ""
    assert err.startswith("minicache: ")


def test_what_is_drawn_stays_readable():
    assert "░░██ 3 µs → “x” …".encode("ascii", READABLE) == b'..## 3 us -> "x" ...'
    assert "é\ud800語".encode("latin-1", READABLE) == b"\xe9\\ud800\\u8a9e"
    assert "\ud800".encode("utf-8", READABLE) == b"\\ud800"
    assert all(text.isascii() for text in IN_ASCII.values())
