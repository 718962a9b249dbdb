"""What is installed is what is here: every package is listed, and the light ones stay light."""

import subprocess
import sys
import tomllib
from pathlib import Path

import minicache

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"minicache": "minicache", "minicache_lessons": "lessons", "minicache_tui": "tui"}
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LIGHT = ["minicache", "minicache.core", "minicache.cli.main", "minicache_tui", "minicache_lessons"]


def test_every_package_is_listed():
    found = set()
    for name, folder in FOLDERS.items():
        for file in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join([name, *file.parent.relative_to(ROOT / folder).parts]))
    assert found == set(SETTINGS["tool"]["setuptools"]["packages"])


def test_every_folder_with_code_is_a_package():
    for folder in FOLDERS.values():
        for file in (ROOT / folder).rglob("*.py"):
            assert (file.parent / "__init__.py").is_file(), f"{file.parent} has no __init__.py"


def test_the_version_is_in_the_change_log():
    assert f"## {minicache.__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_without_torch_everything_light_is_there():
    code = f"import sys\nsys.modules['torch'] = sys.modules['numpy'] = None\nfor name in {LIGHT}: __import__(name)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_minicache_costs_nothing():
    """No module but its own: neither a package nor the rest of minicache."""
    code = "import sys; before = set(sys.modules); import minicache; print(*set(sys.modules) - before)"
    imported = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert imported == ["minicache"]
