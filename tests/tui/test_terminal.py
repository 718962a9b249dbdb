"""The real program in a real terminal (tmux): it starts, obeys, and leaves the terminal as it found it."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
DEADLINE = 120.0  # seconds; what is waited for comes in a fraction of one
# What reads lines here may have told the environment its own size, which programs believe.
SHELL = "env -u COLUMNS -u LINES -u NO_COLOR PS1='$ ' ENV= sh"
TUI = f"{shlex.quote(sys.executable)} -m minicache tui"


class Terminal:
    """A shell in a tmux server of its own."""

    def __init__(self) -> None:
        self.server = f"minicache-{uuid4().hex[:8]}"

    def tmux(self, *args: str) -> str:
        command = ["tmux", "-L", self.server, "-f", "/dev/null", *args]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def open(self, columns: int, lines: int) -> None:
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), SHELL)
        self.tmux("set-option", "-g", "status", "off")
        self.resize(columns, lines)
        self.see("$")

    def resize(self, columns: int, lines: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self.server, "kill-server"], capture_output=True)

    def type(self, line: str) -> None:
        self.tmux("send-keys", "-l", line)
        self.tmux("send-keys", "Enter")

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    @property
    def program(self) -> int:
        """The process id of what the shell runs."""
        found = subprocess.run(["pgrep", "-P", self.says("#{pane_pid}")], check=True, capture_output=True, text=True)
        return int(found.stdout)

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def says(self, format: str) -> str:
        return self.tmux("display-message", "-p", format).strip()

    def wait(self, condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + DEADLINE
        while not condition():
            if time.monotonic() > limit:
                pytest.fail(f"this is on the screen:\n{self.screen}")
            time.sleep(0.03)

    def see(self, *pieces: str) -> None:
        self.wait(lambda: all(piece in self.screen for piece in pieces))

    def status(self) -> int:
        """Ask the shell for the exit status of the command before, which also tells that it takes lines again."""
        mark = uuid4().hex[:6]
        self.type(f"echo {mark}=$?")
        self.wait(lambda: re.search(rf"{mark}=\d", self.screen) is not None)
        found = re.search(rf"{mark}=(\d+)", self.screen)
        assert found is not None
        return int(found[1])

    def state(self) -> tuple[str, str, str, str]:
        """What the program must leave as it was: line discipline, alternate screen, cursor, mouse."""
        mark = uuid4().hex[:6]
        self.type(f"clear; stty -g; echo {mark[:3]}''{mark[3:]}")
        self.see(mark)
        stty = next(
            line for line in self.screen.splitlines() if line.count(":") > 5 or re.fullmatch(r"[\da-f:]+", line)
        )
        return stty, self.says("#{alternate_on}"), self.says("#{cursor_flag}"), self.says("#{mouse_any_flag}")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (160, 48)])
def test_step_back_fork_quit(terminal, columns, lines) -> None:
    terminal.open(columns, lines)
    before = terminal.state()
    terminal.type(f"{TUI} timestamp-top")
    terminal.see("minicache", "step 0 of 20")
    assert terminal.says("#{alternate_on}") == "1"
    terminal.press("Right", "Right")
    terminal.see("looks up")
    terminal.press("Left")
    terminal.see("user1 arrives")
    terminal.press("f")
    terminal.see("What if?")
    terminal.press("Enter")
    terminal.see("A fork:")
    terminal.press("q")
    terminal.wait(lambda: terminal.says("#{alternate_on}") == "0")
    assert terminal.status() == 0
    assert terminal.state() == before


def test_ctrl_c_while_it_plays(terminal) -> None:
    terminal.open(80, 24)
    before = terminal.state()
    terminal.type(f"{TUI} preempt-and-resume")
    terminal.see("step 0 of 23")
    terminal.press("+", "+", "Space")
    terminal.wait(lambda: "step 0 of 23" not in terminal.screen)
    terminal.press("C-c")
    terminal.wait(lambda: terminal.says("#{alternate_on}") == "0")
    assert terminal.status() == 130
    assert terminal.state() == before


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize(("key", "shown"), [("+", "4×"), ("i", "A request of your own"), ("C-p", "Search")])
def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(terminal, name, key, shown) -> None:
    terminal.open(80, 24)
    before = terminal.state()
    terminal.type(f"{TUI} preempt-and-resume")
    terminal.see("step 0 of 23")
    terminal.press("+", "Space")
    terminal.wait(lambda: "step 0 of 23" not in terminal.screen)
    terminal.press(key)
    terminal.see(shown)
    os.kill(terminal.program, getattr(signal, name))
    terminal.wait(lambda: terminal.says("#{alternate_on}") == "0")
    assert terminal.status() == 128 + getattr(signal, name)
    assert terminal.state() == before


def test_it_ends_when_its_terminal_is_gone(terminal) -> None:
    terminal.open(80, 24)
    terminal.type(f"{TUI} preempt-and-resume; echo over")
    terminal.see("step 0 of 23")
    program = terminal.program
    terminal.close()
    limit = time.monotonic() + DEADLINE
    while runs(program):
        assert time.monotonic() < limit
        time.sleep(0.05)


def runs(process: int) -> bool:
    """Whether it does, and has not ended without anybody asking how."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout
    return state.strip()[:1] not in ("", "Z")


def test_a_resize_storm(terminal) -> None:
    terminal.open(100, 30)
    terminal.type(f"{TUI} two-equal-prompts")
    terminal.see("step 0 of 2")
    for turn in range(30):
        terminal.resize(20 + turn * 37 % 160, 5 + turn * 11 % 50)
    terminal.resize(50, 15)
    terminal.see("Too small")
    terminal.resize(100, 30)
    terminal.wait(lambda: "Too small" not in terminal.screen)
    terminal.press("Right")
    terminal.see("user1 arrives")
    terminal.press("q")
    terminal.wait(lambda: terminal.says("#{alternate_on}") == "0")
    assert terminal.status() == 0


def test_too_small_is_gone_whatever_opened_over_it(terminal) -> None:
    terminal.open(100, 30)
    terminal.type(f"{TUI} two-equal-prompts")
    terminal.see("step 0 of 2")
    terminal.resize(50, 15)
    terminal.see("Too small", "Ctrl-C quits")
    terminal.press("C-p")
    terminal.resize(80, 24)
    terminal.press("Escape")
    terminal.wait(lambda: "Too small" not in terminal.screen)
    terminal.see("step 0 of 2")


def test_bytes_that_are_no_text_end_nothing(terminal) -> None:
    terminal.open(80, 24)
    terminal.type(f"{TUI} two-equal-prompts")
    terminal.see("step 0 of 2")
    terminal.press("-H", "ff", "fe")
    terminal.press("Right")
    terminal.see("user1 arrives")


def test_a_terminal_that_has_ascii_alone_gets_ascii(terminal) -> None:
    terminal.open(80, 24)
    terminal.type(f"PYTHONIOENCODING=ascii {TUI} two-equal-prompts")
    terminal.see("step 0 of 2")
    assert terminal.screen.isascii()
    assert "\\u" not in terminal.screen


def test_a_terminal_that_is_too_small(terminal) -> None:
    terminal.open(50, 15)
    terminal.type(f"{TUI} two-equal-prompts")
    terminal.see("the terminal has 50×15")
    assert terminal.status() == 2


def test_a_size_that_a_shell_once_exported_is_not_believed(terminal) -> None:
    terminal.open(100, 30)
    terminal.type(f"COLUMNS=50 LINES=15 {TUI} two-equal-prompts")
    terminal.see("step 0 of 2")
    assert len(terminal.screen.splitlines()) == 30
    assert max(map(len, terminal.screen.splitlines())) == 100
    terminal.press("q")
    terminal.wait(lambda: terminal.says("#{alternate_on}") == "0")
    assert terminal.status() == 0


HOSTILE = r"""
title = "[bold]title[/] \u001b]0;taken\u0007"
story = "\u001b[31mred\u001b[0m [red]story[/red]"
[cache]
block_size = 4
num_blocks = 40
[[request]]
id = "r1"
prompt = [{ text = "[/red] \u001b]0;taken\u0007\u001b[38;5;196mred \u001b[2J 👩‍👩‍👧 🙂 end" }]
max_tokens = 2
"""


def test_a_prompt_does_nothing_to_the_terminal(terminal, tmp_path) -> None:
    path = tmp_path / "hostile.toml"
    path.write_text(HOSTILE, encoding="utf-8")
    terminal.open(100, 30)
    title = terminal.says("#{pane_title}")
    terminal.type(f"{TUI} {shlex.quote(str(path))}")
    terminal.see("[red]story[/red]")
    terminal.press("Right")
    terminal.see("r1 arrives", "[/red]")
    terminal.press("f")
    terminal.see("What if?")
    terminal.press("Escape")
    terminal.wait(lambda: "What if?" not in terminal.screen)
    assert terminal.says("#{pane_title}") == title
    coloured = terminal.tmux("capture-pane", "-p", "-e")
    assert not re.search(r"\x1b\[[\d;]*(?<!\d)(31|38;5;196)m", coloured)
    terminal.press("q")
    terminal.wait(lambda: terminal.says("#{alternate_on}") == "0")
    assert terminal.status() == 0


IDS = r"""
title = "one"
story = "two"
[cache]
block_size = 4
num_blocks = 40
[[request]]
id = "ev\u001b]0;IDPWN\u0007\u001b[31m\u202eil"
prompt = [{ text = "one two three" }]
max_tokens = 2
[[request]]
id = "ev\u001b]0;IDPWN\u0007\u001b[31m\u202eil2"
prompt = [{ text = "one two four" }]
max_tokens = 2
"""


def test_an_id_and_a_paste_do_nothing_to_the_terminal(terminal, tmp_path) -> None:
    """The bytes that the program writes, through every dialog."""
    path, written = tmp_path / "ids.toml", tmp_path / "written"
    path.write_text(IDS, encoding="utf-8")
    terminal.open(100, 30)
    title = terminal.says("#{pane_title}")
    terminal.type(f"{TUI} {shlex.quote(str(path))}")
    terminal.see("two", "step 0 of")
    terminal.tmux("pipe-pane", "-o", f"cat > {shlex.quote(str(written))}")
    terminal.press("End", "/")
    terminal.see("Find")
    terminal.press("e", "v", "Enter")
    terminal.see("Found")
    terminal.press("Enter")
    terminal.wait(lambda: "Found" not in terminal.screen)
    terminal.press("b")
    terminal.see("request=ev")  # what is selected is suggested
    terminal.press("Enter")
    terminal.see("stops at")
    terminal.press("b")
    terminal.see("Remove: request=ev")
    terminal.press("Escape")
    terminal.wait(lambda: "Remove" not in terminal.screen)
    terminal.press("g")
    terminal.see("Go to")
    paste = tmp_path / "paste"
    paste.write_bytes(b"no\n\x1b]0;IDPWN\x07\x1b[31mred\nq\n")
    terminal.tmux("load-buffer", str(paste))
    terminal.tmux("paste-buffer", "-p")
    terminal.see("no↵␛]0;IDPWN␇␛[31mred↵q↵")
    terminal.press("Enter")
    terminal.see("no request")
    terminal.press("Escape")
    terminal.wait(lambda: "Go to" not in terminal.screen)
    terminal.press("q")
    terminal.wait(lambda: terminal.says("#{alternate_on}") == "0")
    assert terminal.status() == 0
    assert terminal.says("#{pane_title}") == title
    drawn = re.sub(rb"\x1b\]22;\w+\x07", b"", written.read_bytes())  # Textual's: the shape of the pointer
    assert b"IDPWN" in drawn
    for acting in (b"\x1b]0;", b"\x07", b"\x1b[31m", "\u202e".encode()):
        assert acting not in drawn
