"""The command `minicache`: its output, how fast it starts, and its errors."""

import json
import os
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer

import minicache
from minicache.cli import doctor
from minicache.cli import main as cli
from minicache.core.errors import MinicacheError
from minicache.engine import Engine, backends

ROOT = Path(__file__).resolve().parents[2]


def run(*args, **options):
    return subprocess.run([sys.executable, "-m", "minicache", *args], capture_output=True, text=True, **options)


def call(*args):
    """Run in this process; returns the exit status."""
    with pytest.raises(SystemExit) as exit:
        cli.main(args)
    return exit.value.code


def test_version():
    assert run("--version").stdout == f"minicache {minicache.__version__}\n"


def test_help_lists_every_command(capsys):
    assert call("--help") == 0
    lines = capsys.readouterr().out.split("Commands:")[1].splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "] == sorted(
        [*cli.COMMANDS, *cli.CommandTable.elsewhere]
    )


def test_commands_of_other_packages_that_the_help_names_can_be_called(capsys):
    for name, words in cli.CommandTable.elsewhere.items():
        assert call(name, "--help") == 0
        assert words.split(",")[0].split(" in the")[0] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_of_the_table_has_help(name, capsys):
    assert call(name, "--help") == 0
    assert f"Usage: minicache {name}" in capsys.readouterr().out


def processor_seconds(*arguments: str) -> tuple[float, str]:
    """What a Python process takes, whatever else the machine does; and what it printed. It ends with status 0."""
    before = os.times()
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    after = os.times()
    assert done.returncode == 0, done.stderr
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used, done.stdout


def test_help_starts_without_torch_and_at_once():
    code = (
        "import sys\nfrom minicache.cli.main import main\n"
        "try: main(['--help'])\n"
        "finally: assert not {'torch', 'numpy', 'rich', 'jinja2', 'textual'} & set(sys.modules), set(sys.modules)"
    )
    least = min(processor_seconds("-c", code)[0] for _ in range(3))
    assert least < 5 * min(processor_seconds("-c", "import typer")[0] for _ in range(3))


def test_an_unknown_option_exits_with_2(capsys):
    assert call("doctor", "--verbose") == 2
    assert "`minicache doctor` has no option '--verbose': `minicache doctor --help` " in capsys.readouterr().err


def test_entry_points_are_read_only_for_a_name_that_is_not_in_the_table(monkeypatch, capsys):
    scans = []

    def entry_points(group):
        scans.append(group)
        return [EntryPoint("hello", "tests.cli.other_package:app", group)]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert call("model", "--help") == 0
    assert scans == []
    assert call("hello") == 0
    assert scans == ["minicache.commands"]
    assert capsys.readouterr().out.endswith("hello from another package\n")
    assert call("helo") == 2
    assert "did you mean 'hello'?" in capsys.readouterr().err


@pytest.fixture
def raising(monkeypatch):
    """A function that makes `minicache doctor` raise an error."""

    def prepare(error):
        app = typer.Typer()

        @app.command()
        def command():
            raise error

        monkeypatch.setattr(doctor, "app", app)

    return prepare


def test_an_error_of_ours_is_one_sentence_and_status_2(raising, capsys):
    raising(MinicacheError("block_size must be at least 1"))
    assert call("doctor") == 2
    assert capsys.readouterr().err == "minicache: block_size must be at least 1\n"


def test_a_missing_package_names_its_extra(raising, capsys):
    missing = ModuleNotFoundError("No module named 'torch'", name="torch")
    raising(missing)
    assert call("doctor") == 2
    assert capsys.readouterr().err == "minicache: This needs the package 'torch': pip install 'minicache-llm[engine]'\n"


def test_interrupted_exits_with_130_and_quietly(raising, capsys):
    raising(KeyboardInterrupt())
    assert call("doctor") == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_ctrl_c_in_the_middle_of_a_run():
    command = [sys.executable, "-m", "minicache", "demo", "--model", "tiny"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    assert process.stderr.readline() == "hash cache: stable, cold\n"  # the model runs
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_the_threads_wait_passively_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY")
    call("--version")
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    call("--version")
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


def test_doctor_as_json(capsys):
    assert call("doctor", "--json") == 0
    out, err = capsys.readouterr()
    assert err == "importing torch\nchecking exact mode\n", "what takes seconds is named"
    findings = json.loads(out)
    assert findings["minicache"] == minicache.__version__
    assert [backend["name"] for backend in findings["backends"]] == [
        "cpu",
        "cuda",
        "mps",
        "torch",
        "fast_cpu",
        "triton",
        "reference",
    ]
    assert {"jinja2", "rich", "typer"} <= set(findings["packages"][""])
    assert "torch" in findings["packages"]["engine"]
    assert {"tiny", "smollm2"} <= {model["name"] for model in findings["models"]}


def test_doctor_prints_each_section_when_it_is_known(capsys, monkeypatch):
    """Importing torch takes seconds: what is known before is printed before."""
    before = []
    monkeypatch.setattr(doctor, "_backends", lambda: before.append(capsys.readouterr().out) or [])
    assert call("doctor") == 0
    assert "Packages of minicache-llm[plots]" in before[0]
    assert "\nModels\n" in before[0]
    assert "Gaps" not in before[0]


def test_doctor_has_no_empty_section_without_torch(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert call("doctor") == 0
    sections = capsys.readouterr().out.strip().split("\n\n")
    assert all(len(section.splitlines()) > 1 for section in sections[1:])
    assert "Exact mode: tiles of tiny computed\n  not known  torch is not installed" in "\n\n".join(sections)


@pytest.mark.parametrize("arguments", [["doctor"], ["doctor", "--json"]], ids=" ".join)
def test_doctor_has_no_gap_that_nobody_can_close(arguments, capsys, monkeypatch):
    """Neither a GPU nor its Triton is a package that could be installed."""
    monkeypatch.setattr(doctor, "_models", list)
    monkeypatch.setattr(doctor, "_packages", lambda extra: {"torch": "2.9"})
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert call(*arguments) == 0
    out = capsys.readouterr().out
    assert "torch sees no CUDA device" in out
    assert json.loads(out)["gaps"] == [] if "--json" in arguments else out.endswith("\nGaps\n  none\n")


def test_a_new_backend_is_one_entry(capsys, monkeypatch):
    entry = backends.Entry("for this test", backends.BACKENDS["torch"].make, backends.TileAttention)
    monkeypatch.setitem(backends.BACKENDS, "new", entry)
    assert call("doctor", "--json") == 0
    found = json.loads(capsys.readouterr().out)["backends"]
    assert {"kind": "attention", "name": "new", "works": True, "detail": "for this test"} in found
    assert Engine(model="tiny", attention="new", exact=True, num_blocks=8).runner.attention.tile == 16
    with pytest.raises(MinicacheError, match="exact mode runs on attention torch or triton or new, not 'reference'"):
        Engine(model="tiny", attention="reference", exact=True)


def test_doctor_says_what_to_do(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MINICACHE_HOME", str(tmp_path))
    assert call("doctor") == 0
    assert "model smollm2 is not in the store: minicache model pull smollm2" in capsys.readouterr().out


def test_model_list(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MINICACHE_HOME", str(tmp_path))
    assert call("model", "list", "--json") == 0
    models = {model["name"]: model for model in json.loads(capsys.readouterr().out)}
    assert models["smollm2"]["folder"] is None
    assert call("model", "pull", "tiny", "--json") == 0
    pulled = json.loads(capsys.readouterr().out)
    assert Path(pulled["folder"]).is_dir()
    assert call("model", "list") == 0
    assert "tiny" in capsys.readouterr().out


def test_a_model_that_cannot_be_pulled(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MINICACHE_HOME", str(tmp_path))
    assert call("model", "pull", "gpt-17") == 2
    assert capsys.readouterr().err.startswith("minicache: ")
