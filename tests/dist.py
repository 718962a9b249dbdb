"""`python -m tests.dist FOLDER`: install the wheel in FOLDER with each extra, and run what needs that extra.

Each extra gets an empty environment of its own, outside this repository. Needs a package index, or pip's cache of one.
"""

import json
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

BODY = {"model": "m", "messages": [{"role": "user", "content": "Where is my parcel?"}]}
CHART = """
from minicache.bench.charts import Chart, Panel, draw
assert "svg" in draw(Chart("A chart", [Panel("Bars", ["one"], {"all": [1.0]})]))
"""  # without an engine no experiment can run
# Extra to install -> the commands that need them.
USES = {
    "": [
        ["minicache", "sim", "run", "two-equal-prompts"],
        ["minicache", "tui", "two-equal-prompts", "--svg", "picture.svg"],
        ["python", "-c", "import minicache_lessons"],
    ],
    "prompts": [["minicache", "diff", "body.json", "body.json", "--tokenizer", "tiny"]],
    "engine": [["minicache", "experiment", "three-forms", "--model", "tiny", "--quick", "--cache", "hash"]],
    "plots": [["python", "-c", CHART]],
    "serve": [["python", "-c", "import fastapi, msgspec, prometheus_client, uvicorn, zmq"]],  # no command needs it yet
    "docs": [["mkdocs", "--version"]],
}


def main(folder: Path) -> None:
    [wheel] = folder.resolve().glob("*.whl")
    for extra, commands in USES.items():
        with tempfile.TemporaryDirectory(prefix="minicache-dist-") as scratch:
            use(wheel, extra, commands, Path(scratch))


def use(wheel: Path, extra: str, commands: list[list[str]], scratch: Path) -> None:
    """Install the wheel with this extra and run the commands; exits with a sentence if one fails."""
    programs = scratch / "environment" / "bin"
    venv.create(programs.parent, with_pip=True)
    (scratch / "body.json").write_text(json.dumps(BODY), encoding="utf-8")
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    pip = ["python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for program, *arguments in ([*pip, wanted], *commands):
        command = [str(programs / program), *arguments]
        print("$", shlex.join([program, *arguments]), flush=True)
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{done.stdout}{done.stderr}\nexit status {done.returncode} with the extra {extra or 'none'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
