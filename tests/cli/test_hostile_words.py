"""Every text of a scenario or a log is a stranger's: the terminal obeys none of it, and no id fakes a line."""

import json
import re
import shlex
import shutil
import subprocess

import pytest

from minicache.cli import main as cli
from minicache.common.printable import shell_words
from tests.hostile.probe import RAW_CONTROL

NASTY = "\x1b[2J\x1b]52;c;eA==\x07\x9b5m\x7f\u202e\u2066\u200f\u061c\u2028\x85\rFAKE\nFAKE: a line\t"
KEPT = "é 語 ❤\ufe0f ש"  # is still there in what is shown


def text(words):
    return json.dumps(f"{words}{NASTY}{KEPT}", ensure_ascii=True).replace("\x7f", "\\u007f")  # also TOML's form


SCENARIO = f"""
title = {text("title")}
story = {text("story")}
[cache]
kind = "both"
block_size = 4
num_blocks = 300
[[request]]
id = {text("one")}
prompt = [{{ segment = {text("rules")}, tokens = 20 }}, {{ text = {text("hello")} }}]
adapter = {text("adapter")}
salt = {text("salt")}
extra = [{text("extra")}]
max_tokens = 3
[[request]]
id = {text("two")}
prompt = [{{ segment = {text("rules")}, tokens = 16 }}, {{ text = {text("help")} }}]
max_tokens = 3
after = {text("one")}
[expect]
hit_tokens = {{ {text("two")} = 999 }}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it's; touch x.toml").write_text(SCENARIO)
    return tmp_path


def printed(capsys, *args):
    with pytest.raises(SystemExit) as exit:
        cli.main(args)
    out, err = capsys.readouterr()
    assert exit.value.code in (0, 1, 2)
    for stream in (out, err):
        assert not RAW_CONTROL.search(stream)
        assert "\t" not in stream
        assert not re.search("^ *FAKE", stream, re.MULTILINE)
    return out, err


NAME = "it's; touch x.toml"


@pytest.mark.parametrize(
    "options",
    [[], ["--plain"], ["--json"], ["--redact"], ["--redact", "--plain"], ["--cache", "hash"], ["--cache", "radix"]],
    ids=" ".join,
)
def test_a_scenario(options, folder, capsys):
    out, err = printed(capsys, "sim", "run", NAME, *options)
    assert out
    if "--json" in options:
        assert f"one{NASTY}{KEPT}" in {request["id"] for request in json.loads(out)["runs"][0]["requests"]}
    assert ("\\u009b" if "--json" in options else "\\x9b") in out
    assert KEPT in " ".join(out.split()) or "--json" in options
    assert "two\\x1b" in err


@pytest.mark.parametrize("options", [[], ["--plain"], ["--json"], ["--redact"]], ids=" ".join)
def test_a_log(options, folder, capsys):
    printed(capsys, "sim", "run", NAME, "--cache", "hash", "--events", "run.jsonl")
    header, *events = (folder / "run.jsonl").read_text().splitlines()
    changed = json.loads(header) | {"clock": f"sundial{NASTY}", "scenario": NASTY}
    (folder / "run.jsonl").write_text("\n".join([json.dumps(changed), *events]))
    out, _ = printed(capsys, "sim", "run", "run.jsonl", *options)
    assert "sundial" in out


@pytest.mark.parametrize(
    "options",
    [
        ["--request", f"one{NASTY}{KEPT}"],
        ["--request", f"two{NASTY}{KEPT}", "--json"],
        ["--block", "3"],
        ["--event", "5"],
        ["--request", NASTY],
        ["--request", NASTY, "--cache", NASTY],
        ["--set", NASTY],
    ],
    ids=range(7),
)
def test_an_explanation(options, folder, capsys):
    assert any(printed(capsys, "sim", "explain", NAME, *options))


def test_names_on_the_command_line(folder, capsys):
    for args in (
        [f"{NASTY}.toml"],
        [f"{NASTY}.jsonl"],
        [NASTY],
        ["tail-first", "--events", f"{NASTY}/x"],
        [f"--{NASTY}"],
    ):
        assert printed(capsys, "sim", "run", *args)[1].count("\n") == 1
    assert printed(capsys, NASTY)[1].count("\n") == 1
    assert printed(capsys, "diff", NASTY, NASTY)[1].count("\n") == 1


def test_a_long_name_makes_no_long_sentence(folder, capsys):
    for name in ("x" * 100_000, "\x1b" * 100_000):
        assert 1000 < len(printed(capsys, "sim", "explain", NAME, "--request", name)[1]) < 5000


def test_suggested_commands_can_be_pasted(folder, capsys):
    out, _ = printed(capsys, "sim", "run", NAME)
    why = next(line for line in out.splitlines() if line.startswith("Why:")).partition(":")[2].strip()
    shell = shutil.which("bash")
    assert shell, "the tests need bash"
    arguments = run(shell, f"python3() {{ printf '%s\\0' \"$@\"; }}; {why.replace('minicache', 'python3', 1)}")
    assert arguments == ["sim", "explain", NAME, "--request", f"two{NASTY}{KEPT}"]
    assert set(folder.iterdir()) == {folder / NAME}


WORDS = ["a; touch x", "it's", NASTY, "\x1b'\"; touch x; '", "!!\x07", "\\\x00"[:1], "$(touch x)\n`touch x`", KEPT, ""]


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_shell_reads_each_word_as_one(shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = shell_words(*WORDS)
    assert command.isprintable()
    read = run(shell, f"printf '%s\\0' {command}")
    assert len(read) == len(WORDS)
    assert shell == "sh" or read == WORDS
    assert list(tmp_path.iterdir()) == []
    assert shlex.split(shell_words(*filter(str.isprintable, WORDS))) == [*filter(str.isprintable, WORDS)]


def run(shell, script):
    done = subprocess.run(
        [shell, "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8", "PATH": "/bin"}
    )
    return done.stdout.decode().split("\0")[:-1]
