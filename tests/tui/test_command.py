"""`minicache tui` without a terminal: pictures, the list of keys, and every wrong input in one sentence."""

import os
import re
import shlex
import subprocess
import sys
from html import unescape
from types import SimpleNamespace

import pytest

from minicache.cli import main as cli
from minicache.sim.library import FOLDER, find_scenario
from minicache.sim.recorded import write_recorded
from minicache_tui.keymap import read_keymap
from minicache_tui.keys import KEYS, keys_in_use, typed
from minicache_tui.sources import open_both, open_log, open_run
from tests.thinned import several

NAME = "two-equal-prompts"


def call(*args: object) -> int:
    """Run `minicache tui` in this process; its exit status."""
    with pytest.raises(SystemExit) as exit:
        cli.main(["tui", *map(str, args)])
    return int(exit.value.code or 0)


def words(svg: str) -> str:
    """The text of a picture."""
    return unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).replace("\xa0", " ")


@pytest.fixture
def a_terminal(monkeypatch):
    """Standard input and output say that they are a terminal, of 80×24."""
    terminal = SimpleNamespace(isatty=lambda: True, fileno=lambda: 1)
    monkeypatch.setattr("minicache_tui.command.sys", SimpleNamespace(stdin=terminal, stdout=terminal))
    monkeypatch.setattr("os.get_terminal_size", lambda fd: os.terminal_size((80, 24)))


# Bad input: a test for each line, with what the sentence must say. OUT is a path that could be written.
WRONG = {
    "unknown scenario": (["timestamp-topp", "--svg", "OUT"], ["'timestamp-topp'", "did you mean 'timestamp-top'?"]),
    "no such file": (["nowhere.toml", "--svg", "OUT"], ["nowhere.toml"]),
    "no such log": (["--events", "nowhere.jsonl", "--svg", "OUT"], ["nowhere.jsonl"]),
    "two sources": ([NAME, "--events", "x.jsonl", "--svg", "OUT"], ["SCENARIO", "--events", "give one"]),
    "size of words": ([NAME, "--svg", "OUT", "--size", "large"], ["--size large", "160x48"]),
    "size too small": ([NAME, "--svg", "OUT", "--size", "59x20"], ["--size 59x20", "60x20"]),
    "size too large": ([NAME, "--svg", "OUT", "--size", "501x50"], ["--size 501x50", "500x200"]),
    "nothing to draw": (["--svg", "OUT"], ["--svg", "name a scenario"]),
    "nothing to draw yet": (["--engine", "tiny", "--svg", "OUT"], ["--svg", "live engine"]),
    "step out of range": ([NAME, "--svg", "OUT", "--step", "9999"], ["9999"]),
    "event out of range": ([NAME, "--svg", "OUT", "--event", "9999"], ["9999"]),
    "event before the first": ([NAME, "--svg", "OUT", "--event", "-2"], ["-2"]),
    "unknown request": ([NAME, "--svg", "OUT", "--request", "zz"], ["no request 'zz'"]),
    "no folder": ([NAME, "--svg", "nowhere/picture.svg"], ["nowhere/picture.svg", "cannot be written"]),
    "place without a scenario": (["--step", "3", "--svg", "OUT"], ["--step", "name the scenario"]),
    "cache without a scenario": (["--cache", "radix", "--svg", "OUT"], ["--cache", "name the scenario"]),
    "unknown setting": ([NAME, "--svg", "OUT", "--set", "cache.num_block=4"], ["num_block"]),
    "setting without a value": ([NAME, "--svg", "OUT", "--set", "cache.num_blocks"], ["cache.num_blocks"]),
    "unknown cache": ([NAME, "--cache", "trie", "--svg", "OUT"], ["trie"]),
    "unknown option": ([NAME, "--svgg", "OUT"], ["--svgg"]),
    "size without end": ([NAME, "--svg", "OUT", "--size", "9" * 5000 + "x20"], ["--size", "160x48"]),
    "step without end": ([NAME, "--svg", "OUT", "--step", "9" * 5000], ["--step"]),
    "setting without end": ([NAME, "--svg", "OUT", "--set", "cache.num_blocks=" + "9" * 5000], ["num_blocks"]),
    "step of no number": ([NAME, "--svg", "OUT", "--step", "two"], ["--step must be a whole number, not 'two'"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_sentence_and_leaves_nothing_behind(case, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    args, expected = WRONG[case]
    assert call(*("picture.svg" if arg == "OUT" else arg for arg in args)) == 2
    out, err = capsys.readouterr()
    assert not out
    assert "Traceback" not in err
    message = " ".join(err.split())
    assert all(piece in message for piece in expected), message
    assert list(tmp_path.iterdir()) == []


# What Python's reader of JSON has a sentence of its own for.
BROKEN_JSON = (
    b'{"a',
    b'{"a": "\\x"}',
    b'{"a": "\x01"}',
    b'{"a": 1,}',
    b'{"a" 1}',
    b'{"a": "\\u12"}',
    b"{'a': 1}",
    b"[1,]",
    b"{} {}",
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("broken.toml", b"title = "),
        ("empty.toml", b""),
        ("bytes.toml", b"title = '\xff\xfe'"),
        ("key.toml", b"title = 't'\nstory = 's'\n[cache]\nblok_size = 4\n"),
        ("broken.jsonl", b"{\n"),
        ("empty.jsonl", b""),
        ("bytes.jsonl", b"\xff\xfe\x00"),
        *((f"broken{at}.jsonl", line + b"\n") for at, line in enumerate(BROKEN_JSON)),
        ("endless.toml", b"title = 't'\nstory = 's'\n[cache]\nblock_size = " + b"9" * 5000),
        ("endless.jsonl", b'{"minicache_events": ' + b"9" * 5000 + b"}\n"),
    ],
)
def test_a_broken_file_is_named(name, content, tmp_path, capsys) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert call(path, "--svg", tmp_path / "picture.svg") == 2
    err = capsys.readouterr().err
    assert name in err
    assert "Traceback" not in err
    assert err.count("\n") == 1
    assert not re.search(r"\b(\w+) \1\b", err), "no word stands there twice"
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_picture_that_cannot_replace_what_is_there_leaves_nothing_behind(tmp_path, capsys) -> None:
    folder = tmp_path / "picture.svg"
    folder.mkdir()
    assert call(NAME, "--svg", folder) == 2
    assert f"--svg {folder}: cannot be written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [folder]


def test_without_a_terminal_it_says_what_to_do_instead() -> None:
    command = [sys.executable, "-m", "minicache", "tui", NAME]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("minicache: minicache tui needs a terminal: `minicache sim run SCENARIO --plain`")
    assert ran.stderr.count("\n") == 1


def test_without_a_terminal_a_wrong_name_is_said_first(capsys) -> None:
    assert call("timestmp-top") == 2
    assert "did you mean 'timestamp-top'?" in capsys.readouterr().err


@pytest.mark.parametrize(("columns", "lines", "starts"), [(59, 24, False), (80, 19, False), (60, 20, True)])
def test_a_terminal_that_is_too_small_is_refused(columns, lines, starts, a_terminal, monkeypatch, capsys) -> None:
    opened = []
    monkeypatch.setattr("minicache_tui.app.MinicacheApp.run", lambda app: opened.append(app))
    monkeypatch.setattr("os.get_terminal_size", lambda fd: os.terminal_size((columns, lines)))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "100")
    assert call(NAME) == (0 if starts else 2)
    assert "COLUMNS" not in os.environ, "nobody else believes it either"
    assert len(opened) == starts
    if not starts:
        assert f"the terminal has {columns}×{lines} characters: make it at least 60×20" in capsys.readouterr().err


@pytest.mark.parametrize("args", [[NAME], ["--keys"]])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('forwrd = "l"', "did you mean 'forward'?"),
        ('forward = "ctrl+"', "'ctrl+' ends with +"),
        ('forward = "ctrl++"', "ctrl++ cannot be had"),
        ('forward = "shift+"', "'shift+' ends with +"),
        ('play = " "', "the space bar is written space"),
        ('forward = "b"', "b cannot be for add_breakpoint and for forward"),
        ('forward = "foo"', "there is no key 'foo'"),
        ('forward = "ctrl+c"', "quits at once"),
    ],
)
def test_a_broken_key_map_is_said_before_the_screen_opens(
    args, line, words, a_terminal, monkeypatch, tmp_path, capsys
) -> None:
    monkeypatch.setattr("minicache_tui.app.MinicacheApp.run", lambda app: pytest.fail("it opened"))
    path = tmp_path / "keys.toml"
    path.write_text(f"[keys]\n{line}\n", encoding="utf-8")
    monkeypatch.setattr("minicache_tui.command.keymap_path", lambda: path)
    assert call(*args) == 2
    out, err = capsys.readouterr()
    assert not out
    assert str(path) in err
    assert words in err
    assert err.count("\n") == 1


def test_keys_are_listed_as_a_key_map_has_them(monkeypatch, tmp_path, capsys) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('[keys]\nforward = "l,→"\nadd_breakpoint = "z"\nzoom = "b"\n', encoding="utf-8")
    monkeypatch.setattr("minicache_tui.command.keymap_path", lambda: path)
    assert call("--keys") == 0
    listed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    for action, names in keys_in_use(read_keymap(path)).items():
        assert listed[action].split()[1 : 1 + len(names)] == list(names)
        assert listed[action].split(maxsplit=1 + len(names))[-1] == next(k.what for k in KEYS if k.action == action)


def test_keys_are_listed(capsys) -> None:
    assert call("--keys") == 0
    lines = capsys.readouterr().out.splitlines()
    for key, line in zip(KEYS, lines, strict=False):
        names = list(map(typed, key.keys.split(",")))
        assert line.split()[: 1 + len(names)] == [key.action, *names]
        assert line.endswith(key.what)
    assert "keys.toml" in lines[-1]


@pytest.mark.parametrize("size", ["80x24", "160x48"])
def test_a_picture_shows_the_run_and_is_the_same_every_time(size, tmp_path) -> None:
    pictures = []
    for name in ("one.svg", "two.svg"):
        assert call(NAME, "--event", 12, "--size", size, "--svg", tmp_path / name) == 0
        pictures.append((tmp_path / name).read_text(encoding="utf-8"))
    assert pictures[0] == pictures[1]
    assert find_scenario(NAME).title in words(pictures[0])
    assert {file.name for file in tmp_path.iterdir()} == {"one.svg", "two.svg"}
    columns, lines = map(int, size.split("x"))
    assert len(set(re.findall(r'<text [^>]*y="([\d.]+)"', pictures[0]))) <= lines + 1
    assert call(NAME, "--event", 12, "--theme", "light", "--size", size, "--svg", tmp_path / "three.svg") == 0
    light = (tmp_path / "three.svg").read_text(encoding="utf-8")
    assert light != pictures[0]
    assert len(words(light)) > columns * lines / 8


def test_an_ascii_picture_of_two_caches_is_ascii_within_its_frame(tmp_path) -> None:
    path = tmp_path / "both.svg"
    assert call(NAME, "--cache", "both", "--event", 12, "--ascii", "--svg", path) == 0
    body = path.read_text(encoding="utf-8").partition("-matrix")[2]
    assert "hash" in words(body)
    assert "radix" in words(body)


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    several(
        [
            ("preempt-and-resume", None, ["cache.num_blocks=12", "cache.block_size=8"]),
            ("timestamp-top", "radix", []),
            (NAME, None, []),
        ]
    ),
)
def test_a_permalink_comes_back_to_its_place(name, kind, settings, tmp_path) -> None:
    player = open_run(name, kind, settings)
    player.seek(len(player.timeline) * 2 // 3)
    program, command, *args = shlex.split(player.permalink)
    assert (program, command) == ("minicache", "tui")
    there = tmp_path / "there.svg"
    assert call(*args, "--svg", there) == 0
    again = tmp_path / "again.svg"
    caches = ["--cache", kind] if kind else []
    caches += [word for setting in settings for word in ("--set", setting)]
    assert call(name, *caches, "--event", player.place, "--svg", again) == 0
    assert there.read_text() == again.read_text()
    assert call(name, *caches, "--event", player.place - 1, "--svg", again) == 0
    assert there.read_text() != again.read_text()


def test_a_permalink_names_the_file_of_a_log_and_of_a_scenario(tmp_path) -> None:
    log, scenario = tmp_path / "a run's log.jsonl", tmp_path / f"{NAME}.toml"
    write_recorded(open_run(NAME).timeline, log)
    scenario.write_text((FOLDER / f"{NAME}.toml").read_text(encoding="utf-8"), encoding="utf-8")
    for player in (open_log(log), open_run(str(log)), open_run(str(scenario))):
        player.seek(7)
        args = shlex.split(player.permalink)[2:]
        assert args[-3] == str(log if "jsonl" in args[-3] else scenario)
        picture = tmp_path / "there.svg"
        assert call(*args, "--svg", picture) == 0
        assert "event 7" in words(picture.read_text(encoding="utf-8"))
    before = log.read_bytes()
    assert call("--events", log, "--svg", log) == 2, "what the picture shows is not overwritten"
    assert log.read_bytes() == before


def test_both_caches_have_a_permalink_and_what_no_command_opens_has_none() -> None:
    assert open_both(NAME).permalink == f"minicache tui {NAME} --cache both --event -1"
    assert open_run(NAME).fork(None).permalink == ""


def test_step_and_request_begin_where_they_say(tmp_path) -> None:
    player = open_run(NAME)
    player.go_to_request("user2")
    assert call(NAME, "--request", "user2", "--svg", tmp_path / "request.svg") == 0
    assert "request user2" in words((tmp_path / "request.svg").read_text(encoding="utf-8"))
    player.seek_step(2)
    assert call(NAME, "--step", 2, "--svg", tmp_path / "step.svg") == 0
    assert call(NAME, "--event", player.place, "--svg", tmp_path / "event.svg") == 0
    assert (tmp_path / "step.svg").read_text() == (tmp_path / "event.svg").read_text()


HOSTILE = "\x1b]0;IDPWN\x07\x1b[31m\u202e"


@pytest.mark.parametrize(
    "args",
    [
        ["HOSTILE"],
        ["--HOSTILE"],
        [NAME, "HOSTILE"],
        ["--size", "HOSTILE"],
        ["--cache", "HOSTILE"],
        ["--step", "HOSTILE"],
        ["--theme", "HOSTILE"],
        ["--engine", "HOSTILE"],
        ["--events", "HOSTILE"],
        [NAME, "--svg", "HOSTILE/HOSTILE"],
        [NAME, "--set", "HOSTILE"],
        [NAME, "--set", "cache.HOSTILE=3"],
        [NAME, "--request", "HOSTILE"],
    ],
)
def test_what_is_wrong_is_said_and_does_nothing_to_the_terminal(args, capsys) -> None:
    assert call(*(arg.replace("HOSTILE", HOSTILE) for arg in args)) == 2
    out, err = capsys.readouterr()
    assert all(line.isprintable() for line in (out + err).splitlines())
    assert "IDPWN" in err or "valid integer" in err


@pytest.mark.parametrize("command", [["HOSTILE"], ["--HOSTILE"], ["sim", "HOSTILE"], ["sim", "run", "--HOSTILE"]])
def test_so_it_is_with_every_command(command, capsys) -> None:
    with pytest.raises(SystemExit) as exit:
        cli.main([word.replace("HOSTILE", HOSTILE) for word in command])
    assert exit.value.code == 2
    err = capsys.readouterr().err
    assert all(line.isprintable() for line in err.splitlines())
    assert "IDPWN" in err


@pytest.mark.parametrize("name", ["picture.svg", "\x1b[31mred.svg", "\udcff.svg", "bild-ü.svg"])
def test_where_a_picture_was_saved_is_said(name, tmp_path, capsys) -> None:
    path = tmp_path / name
    assert call(NAME, "--svg", path) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Saved {tmp_path}/")
    assert out[:-1].isprintable()
    assert path.exists()


def test_where_standard_output_has_ascii_alone_it_is_said_and_the_keys_are_listed(tmp_path) -> None:
    for args in (["--keys"], [NAME, "--svg", str(tmp_path / "ü.svg")]):
        environment = os.environ | {"PYTHONIOENCODING": "ascii"}
        ran = subprocess.run([sys.executable, "-m", "minicache", "tui", *args], capture_output=True, env=environment)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.isascii()


@pytest.mark.parametrize(("encoding", "ascii"), [("ascii", True), ("latin-1", True), ("utf-8", False)])
def test_an_encoding_without_our_signs_gets_ascii(encoding, ascii, a_terminal, monkeypatch) -> None:
    opened = []
    monkeypatch.setattr("minicache_tui.app.MinicacheApp.run", lambda app: opened.append(app))
    terminal = SimpleNamespace(isatty=lambda: True, fileno=lambda: 1, encoding=encoding)
    streams = SimpleNamespace(stdin=terminal, stdout=terminal, __stderr__=terminal)
    monkeypatch.setattr("minicache_tui.command.sys", streams)
    assert call(NAME) == 0
    assert opened[0].ascii == ascii
