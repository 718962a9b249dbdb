"""Some histories of each part, where the real engines are unpacked; thousands: `make differential PEERS=FOLDER`."""

import os
import re
import subprocess
from pathlib import Path

import pytest

PEERS = os.environ.get("PEERS", "")
ROOT = Path(__file__).parents[2]
unpacked = pytest.mark.skipif(
    not PEERS, reason="the real engines are not unpacked: python -m tests.differential.set_up FOLDER, then PEERS=FOLDER"
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    python = Path(PEERS, "venv", "bin", "python")
    return subprocess.run(
        [python, "-m", "tests.differential", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600
    )


@unpacked
@pytest.mark.parametrize("part", ["cache", "scheduler", "tree", "radix", "policies", "admission"])
def test_a_part_shows_no_difference(part: str) -> None:
    done = run("--part", part, "--count", "40", "--seed", "7")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"no difference in 40 histories", done.stdout)


@unpacked
def test_a_part_leaves_nothing_behind_for_the_next_one() -> None:
    done = run("--part", "cache", "--part", "scheduler", "--count", "2", "--seed", "5")
    assert done.returncode == 0, done.stdout + done.stderr  # the last history of `cache` sets a root of its own


def test_without_the_engines_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.differential.stubs import folder

    monkeypatch.delenv("PEERS", raising=False)
    with pytest.raises(SystemExit, match=r"python -m tests\.differential\.set_up"):
        folder()
