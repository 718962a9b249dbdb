"""requirements/*.txt: exact packages with hashes, within the ranges of pyproject.toml. `make lock` writes them."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS_OF = {"dev.txt": ["dev"], "workshop.txt": ["engine", "prompts", "plots"]}
LINUX = default_environment() | {"sys_platform": "linux", "platform_system": "Linux"}
MACOS = default_environment() | {"sys_platform": "darwin", "platform_system": "Darwin"}


def wanted(extras):
    """The requirements of the project with these extras; an extra may name others."""
    found = list(map(Requirement, PROJECT["dependencies"]))
    for extra in extras:
        for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
            ours = requirement.name == PROJECT["name"]
            found += wanted(requirement.extras) if ours else [requirement]
    return found


def locked(name):
    """The entries of a file: each requirement, and what follows it up to the next one."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    return {Requirement(entry.split("\\\n")[0]): entry for entry in entries}


@pytest.mark.parametrize("name", EXTRAS_OF)
def test_every_package_is_exact_and_has_a_hash(name):
    for requirement, entry in locked(name).items():
        assert [one.operator for one in requirement.specifier] == ["=="], requirement
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), requirement


@pytest.mark.parametrize("system", [LINUX, MACOS], ids=["linux", "macos"])
@pytest.mark.parametrize("name", EXTRAS_OF)
def test_the_ranges_of_the_project_admit_what_is_locked(name, system):
    versions = {}
    for requirement in locked(name):
        if requirement.marker is None or requirement.marker.evaluate(system):
            versions[canonicalize_name(requirement.name)] = next(iter(requirement.specifier)).version
    for requirement in wanted(EXTRAS_OF[name]):
        if requirement.marker is None or requirement.marker.evaluate(system):
            assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), requirement


@pytest.mark.parametrize("name", EXTRAS_OF)
def test_no_source_is_named(name):
    """Neither an index nor a folder: pip's own settings say where packages come from, the hashes which they are."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    assert not re.search(r"://|@ |^-|file:|\s/\w", text, flags=re.MULTILINE)
