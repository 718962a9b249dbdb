"""Pictures: XML whatever anybody wrote, into a file that is new or an ordinary one, under a name that says what it
shows and that nobody has yet."""

import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from html import escape
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minicache.common.files import write_text
from minicache.sim.library import find_scenario
from minicache.sim.prompt import Text
from minicache.sim.recorded import write_recorded
from minicache.sim.timeline import Timeline
from minicache_tui.app import MinicacheApp
from minicache_tui.asks import ASKS, forked
from minicache_tui.changes import injected
from minicache_tui.comparison import Comparison
from minicache_tui.keys import KEYS
from minicache_tui.picture import draw, file_name, picture_of, write_new
from minicache_tui.player import Player
from minicache_tui.sources import open_both, open_log, open_run

from .shell_app import Shell, drive
from .test_command import call

NAME = "two-equal-prompts"
OF = {key.action: key.keys.split(",")[0] for key in KEYS}
HOSTILE = "@font-face{a\x1b[31m\x07\x00\u202e\ud800\ufffe\x9b31m</text>&<![CDATA[]]>\"'\r\n\u2066\x7f\u0301"
TURNING = "\u202e\u202a\u2066\u061c\u200e"


def words(svg: str) -> str:
    """The text of a picture that is XML, shows nothing that a text editor would obey, and asks no network."""
    root = ElementTree.fromstring(svg.encode("utf-8"))
    assert not re.search(r"@font-face|@import|url\((?!#)", svg.partition("</style>")[0])
    for element in root.iter():
        references = [value for name, value in element.attrib.items() if "href" in name or "url(" in value]
        assert all(value.startswith("url(#") for value in references), references
    text = "".join(root.itertext())
    assert not any(char in text for char in TURNING)
    assert all(char.isprintable() or char in "\n\xa0" for char in text)
    return text.replace("\xa0", " ")


def hostile(text: str = HOSTILE) -> Timeline:
    scenario = find_scenario(NAME)
    first, *rest = scenario.requests
    requests = (replace(first, prompt=(Text(text.replace("\ud800", "")), *first.prompt)), *rest)
    timeline = Timeline.record(replace(scenario, requests=requests, title=text, story=text, name=text))
    timeline.settings["title"] = text
    return timeline


@pytest.mark.parametrize("size", [(60, 20), (160, 48)])
def test_a_picture_of_hostile_texts_is_xml(size) -> None:
    timeline = hostile()
    recorded = hostile()
    recorded.scenario = None
    place = len(timeline) // 2
    for run in (Player(timeline), Player(recorded)):
        run.seek(place)
        assert "31m" in words(draw(run, size))
        branch = injected(run, "x (2): a\x07b\u202ec")
        branch.go_to_request("x")
        assert "a·b·c" in words(draw(branch, size))
    comparison = Comparison(Player(timeline), Player(timeline), (HOSTILE, HOSTILE), (HOSTILE, HOSTILE))
    comparison.end()
    assert "31m" in words(draw(comparison, size))


@given(title=st.text(st.characters(), max_size=12))
@example("\x0b\x0c\x1c\x85\u2028\u2029\ufffe\uffff\U0001fffe\U0010ffff\ufeff\xad")
def test_every_title_gives_xml(title) -> None:
    words(pictured(title))


def pictured(title: str) -> str:
    """A picture with that title, in which some widget drew the same."""

    class Painted(MinicacheApp):
        def export_screenshot(self, *, title: str | None = None, simplify: bool = False) -> str:
            return f'<svg xmlns="http://www.w3.org/2000/svg"><text>{escape(title or "")}{escape(drawn)}</text></svg>'

    drawn = title
    return picture_of(Painted(None), title)


# Where it is written


def made(path: Path, what: str) -> None:
    match what:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "link to a folder":
            path.with_name("real").mkdir()
            path.symlink_to("real")
        case "link to a fifo":
            os.mkfifo(path.with_name("real"))
            path.symlink_to("real")
        case "link to itself":
            path.symlink_to(path.name)


def state(folder: Path) -> dict[str, tuple[int, str]]:
    """What there is, of what kind, and where it leads."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, os.readlink(path) if path.is_symlink() else "")
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("what", ["folder", "fifo", "link to a folder", "link to a fifo", "link to itself"])
def test_what_is_no_ordinary_file_is_refused_and_left_as_it_is(what, tmp_path, capsys) -> None:
    path = tmp_path / "picture.svg"
    made(path, what)
    before = state(tmp_path)
    assert call(NAME, "--svg", path) == 2
    out, err = capsys.readouterr()
    assert state(tmp_path) == before
    assert not out
    assert err.count("\n") == 1
    assert f"--svg {path}: cannot be written: it is" in err


@pytest.mark.parametrize(
    "path", ["", ".", "..", "/", "./", "folder/", "folder/..", "nowhere/picture.svg", "file/x.svg"]
)
def test_a_path_that_is_no_name_of_a_file_is_refused_in_a_sentence(path, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    before = state(tmp_path)
    assert call(NAME, "--svg", path) == 2
    out, err = capsys.readouterr()
    assert state(tmp_path) == before
    assert (tmp_path / "file").read_text() == "mine"
    assert not out
    assert err.count("\n") == 1
    assert "cannot be written" in err


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("link", [True, False])
def test_a_file_that_is_new_or_ordinary_is_written_also_behind_a_link(there, link, tmp_path) -> None:
    target, path = tmp_path / "pictures" / "real.svg", tmp_path / "picture.svg"
    target.parent.mkdir()
    if there:
        target.write_text("old")
        target.chmod(0o640)
    if link:
        path.symlink_to("pictures/real.svg")
    else:
        path = target
    assert call(NAME, "--svg", path, "--size", "60x20") == 0
    assert path.is_symlink() == link
    words(target.read_text(encoding="utf-8"))
    if there:
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert {file.name for file in tmp_path.rglob("*")} == {"pictures", "real.svg", *(["picture.svg"] if link else [])}


def test_a_file_that_may_not_be_changed_is_left_as_it_is(tmp_path, monkeypatch) -> None:
    path = tmp_path / "picture.svg"
    path.write_text("mine")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # who runs this may be root
    with pytest.raises(OSError, match="write-protected"):
        write_text(path, "<svg/>")
    assert path.read_text() == "mine"


# What it is called


def shown() -> dict[str, Player | Comparison]:
    """Runs at the same event: forks, the other cache, comparisons."""
    runs: dict[str, Player | Comparison] = {
        "run": open_run(NAME),
        "other cache": open_run(NAME, "radix"),
        "other run": open_run("thrashing"),
        "fork": forked(open_run(NAME), ASKS[-1], ""),
        "both": open_both(NAME),
        "policies": Comparison.of_policies(open_run(NAME), {"max_num_seqs": 1}),
    }
    runs["fork and original"] = Comparison.of_fork(runs["fork"])  # type: ignore[arg-type]
    return runs


def test_a_name_says_what_is_shown_and_where(tmp_path) -> None:
    names: dict[str, str] = {}
    for what, run in shown().items():
        for move in (run.start, *[run.step] * 8, run.end):
            move()
            where = (run.left.place, run.right.place) if isinstance(run, Comparison) else run.place
            name = file_name(run)
            assert names.setdefault(name, f"{what} {where}") == f"{what} {where}", "two of one name"
            assert name.startswith(f"minicache-{'thrashing' if what == 'other run' else NAME}-")
    assert {f"minicache-{NAME}-hash-start", f"minicache-{NAME}-hash-event-0", f"minicache-{NAME}-radix-start"} <= {
        *names
    }
    assert f"minicache-{NAME}-hash-fork-start" in names
    assert f"minicache-{NAME}-the-original-the-fork-start" in names
    assert f"minicache-{NAME}-hash-chain-radix-tree-start" in names


def test_a_log_is_called_by_its_file(tmp_path) -> None:
    for name in ("monday", "tuesday", "../a run\x1b[2J's"):
        path = tmp_path / f"{name.replace('/', '∕')}.jsonl"
        write_recorded(open_run(NAME).timeline, path)
        called = file_name(open_log(path))
        assert called.replace("-", "").replace("minicache", "").isalnum()
    assert file_name(open_log(tmp_path / "monday.jsonl")) == "minicache-monday-hash-start"


@given(st.text(st.characters(), max_size=200))
@example(HOSTILE)
@example("../../etc")
@example("語" * 200)
def test_every_name_can_be_that_of_a_file_in_this_folder(name) -> None:
    player = Player(Timeline(8, 4))
    player.name = name
    called = file_name(player)
    assert "/" not in called
    assert not called.startswith(".")
    assert len(f"{called}-1000.svg".encode()) < 255
    assert called.isprintable()


def test_nothing_is_written_over(tmp_path) -> None:
    (tmp_path / "x-3.svg").symlink_to("nowhere")
    (tmp_path / "x-4.svg").mkdir()
    paths = [write_new(tmp_path, "x", f"<svg>{number}</svg>") for number in range(4)]
    assert [path.name for path in paths] == ["x.svg", "x-2.svg", "x-5.svg", "x-6.svg"]
    assert [path.read_text() for path in paths] == [f"<svg>{number}</svg>" for number in range(4)]
    assert not (tmp_path / "nowhere").exists()
    assert len(list(tmp_path.iterdir())) == 6


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "x.svg", "\ud800")
    with pytest.raises(OSError, match="No such file"):
        write_new(tmp_path / "nowhere", "x", "<svg/>")
    assert list(tmp_path.iterdir()) == []


def test_the_key_saves_every_picture_under_a_name_of_its_own_and_says_how_to_come_back(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    files: list[set[str]] = [set()]

    async def play(shell: Shell) -> None:
        for keys in ((), ("end",), ("home",)):
            await shell.press(*keys, OF["picture"])
            run = shell.stage.playable
            files.append({path.name for path in tmp_path.iterdir()})
            (new,) = files[-1] - files[-2]
            assert new.startswith(file_name(run))
            assert shell.told[-1] == f"Saved {new}\n{run.reopening}"
            words((tmp_path / new).read_text(encoding="utf-8"))

    runs = shown()
    for what in ("run", "fork", "both"):
        drive(play, runs[what], size=(80, 24))
    assert all(before < after for before, after in pairwise(files))


def test_a_picture_is_drawn_without_a_terminal_in_a_process_of_its_own(tmp_path) -> None:
    path = tmp_path / "picture.svg"
    command = [sys.executable, "-m", "minicache", "tui", NAME, "--event", "12", "--svg", str(path)]
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True, capture_output=True)
    assert find_scenario(NAME).title in words(path.read_text(encoding="utf-8"))
