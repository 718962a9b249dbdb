"""The scenarios that come with minicache; how a name or a file becomes a scenario."""

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

from minicache.common.files import require_end
from minicache.common.suggest import suggestion
from minicache.sim.errors import BadScenario, UnknownScenario
from minicache.sim.scenario import Scenario
from minicache.sim.scenario_file import SCHEDULER_FIELDS, read_scenario
from minicache.sim.toml_table import Path, loads

FOLDER = files("minicache.sim") / "scenarios"
CACHE_KEYS = ("block_size", "num_blocks", "strategy")
SETTABLE: dict[str, Path] = {
    **{f"cache.{key}": ("cache", key) for key in CACHE_KEYS},
    **{f"cache.{kind}.{key}": ("cache", kind, key) for kind in ("hash", "radix") for key in CACHE_KEYS},
    "scheduler.profile": ("scheduler", "profile"),
    **{f"scheduler.{name}": ("scheduler", name) for name in SCHEDULER_FIELDS},
    "cost.model": ("cost", "model"),
    "cost.device": ("cost", "device"),
    "seed": ("seed",),
}


def scenario_names() -> list[str]:
    """The names of the scenarios that come with minicache, in alphabetical order."""
    return sorted(file.name.removesuffix(".toml") for file in FOLDER.iterdir() if file.name.endswith(".toml"))


def find_scenario(name: str, settings: Iterable[str] = ()) -> Scenario:
    """The scenario of that name, or the one in that file (a name with a slash or the suffix .toml).

    `settings` are texts `key=value` that replace values of the file. Raises `UnknownScenario` or `BadScenario`.
    """
    changes = dict(map(_setting, settings))
    if name.endswith(".toml") or "/" in name:
        return read_scenario(_read(FilePath(name)), FilePath(name).stem, name, changes)
    if name not in scenario_names():
        hint = suggestion(name, scenario_names()) or ": `minicache sim list` lists them"
        raise UnknownScenario(f"there is no scenario {name!r}{hint} (or give a file NAME.toml)")
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    return read_scenario(text, name, f"{name}.toml", changes)


def _read(path: FilePath) -> str:
    try:
        return require_end(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UnknownScenario(f"there is no file {path}: `minicache sim list` lists the scenarios") from None
    except UnicodeDecodeError as error:
        raise BadScenario(f"{path} is not text in UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise UnknownScenario(f"{path} cannot be read: {error.strerror}") from None


def _setting(text: str) -> tuple[Path, object]:
    """`cache.block_size=8`, or `block_size=8` if only one key has that ending."""
    key, sign, value = text.partition("=")
    key = key.strip()
    if not sign:
        raise BadScenario(f"--set {text}: write key=value, for example --set cache.num_blocks=64")
    named = [full for full in SETTABLE if full == key or full.split(".")[-1] == key]
    exact = [full for full in named if full == key or full.count(".") < 2]
    if not exact:
        hint = suggestion(key, [*SETTABLE, *(full.split(".")[-1] for full in SETTABLE)])
        raise BadScenario(f"--set {text}: there is no key {key!r}{hint or ': the keys are ' + ', '.join(SETTABLE)}")
    return SETTABLE[exact[0]], read_value(value.strip())


def read_value(text: str) -> Any:
    """The TOML value in `text`; if it is not TOML, `text` itself, so that quotes can be left out."""
    try:
        return loads(f"value = {text}")["value"]
    except ValueError:  # not TOML, nested too deeply, or a number of thousands of digits
        return text
