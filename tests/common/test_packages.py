"""The sentence for a missing package names an extra that exists and has the package; nothing else words it."""

import tomllib
from pathlib import Path

import pytest

from minicache.common.packages import DISTRIBUTION, EXTRA_OF_MODULE, install, package_missing

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGES = {"prometheus_client": "prometheus-client", "zmq": "pyzmq"}  # where a package is not called as its module


def test_the_distribution_is_the_one_that_is_installed():
    assert PROJECT["name"] == DISTRIBUTION


@pytest.mark.parametrize("module", EXTRA_OF_MODULE)
def test_the_extra_that_is_named_has_the_package(module):
    extra = EXTRA_OF_MODULE[module]
    wanted = PROJECT["optional-dependencies"][extra]
    assert any(requirement.startswith(PACKAGES.get(module, module)) for requirement in wanted)
    assert package_missing(module) == f"This needs the package {module!r}: pip install 'minicache-llm[{extra}]'"


def test_another_extra_can_be_named():
    sentence = package_missing("tokenizers", "A live engine", extra="engine")
    assert sentence == f"A live engine needs the package 'tokenizers': {install('engine')}"


def test_no_other_file_says_how_to_install_an_extra():
    files = [file for folder in ("minicache", "tui", "lessons") for file in (ROOT / folder).rglob("*.py")]
    users = {str(file.relative_to(ROOT)) for file in files if "pip install" in file.read_text(encoding="utf-8")}
    assert users == {"minicache/common/packages.py"}


def test_the_old_name_is_nowhere():
    """`pip install minicache` installs another project."""
    texts = [ROOT / "Makefile", ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    texts += [file for folder in ("minicache", "tui", "lessons", "tests") for file in (ROOT / folder).rglob("*.py")]
    here = Path(__file__)
    wrong = [file for file in texts if file != here and "minicache[" in file.read_text(encoding="utf-8")]
    assert not wrong
