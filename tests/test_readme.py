"""The commands in the README's `console` blocks run, and its `python` blocks too."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from minicache.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


COMMANDS = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
PROGRAMS = blocks("python")


def test_there_is_something_to_run():
    assert COMMANDS
    assert PROGRAMS


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_runs(command, capsys):
    program, *arguments = command.split()
    assert program == "minicache"
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    out, err = capsys.readouterr()
    assert exit.value.code == 0, err
    assert out


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_readme_runs(program, tmp_path):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def words_of_a_report(text):
    """The words of a demo's report, without its figures and the model's own words."""
    report = text[text.index("hash cache: stable, cold") : text.index("outputs identical: yes")]
    asked = re.sub(r"^\w+ is asked .*", "", report, flags=re.DOTALL | re.MULTILINE)
    assert asked != report
    return re.findall(r"[a-z#'-]*[a-z][a-z#'-]*", asked)


@pytest.mark.slow
def test_the_report_in_the_readme_is_the_demos(capsys):
    with pytest.raises(SystemExit):
        main(["demo", "--model", "tiny", "--quick"])
    [shown] = re.findall(r"<!-- demo-output: begin -->\n```text\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    assert words_of_a_report(shown) == words_of_a_report(capsys.readouterr().out)


def test_the_reading_order_names_files_that_are_there():
    """A name without its folder is in the folder of the first file of its item."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Reading order")[1].split("\n## ")[0]
    items = re.findall(r"^\d+\. (.*?)(?=^\d+\. |\Z)", text, flags=re.DOTALL | re.MULTILINE)
    assert len(items) > 10
    missing = []
    for item in items:
        first, *others = re.findall(r"`([a-z_/]+(?:\.py|/))`", item)
        folder = (ROOT / first).parent
        missing += [
            name for name, path in [(first, ROOT / first), *((n, folder / n) for n in others)] if not path.exists()
        ]
    assert missing == []
