"""The kinds of hostile input: every file of this folder with a function `probe(random)`.

`IMPORTS` of such a file names the modules that its commands need besides those of a light install.
"""

import pkgutil
from importlib import import_module
from pathlib import Path
from random import Random
from types import ModuleType

from tests.hostile.probe import Probe

HEAVY = "torch"  # its kinds come last, because it makes forks slower


def kinds() -> dict[str, ModuleType]:
    names = [found.name for found in pkgutil.iter_modules([str(Path(__file__).parent)])]
    modules = {name: import_module(f"tests.hostile.{name}") for name in names if not name.startswith(("_", "test_"))}
    found = {name: module for name, module in modules.items() if hasattr(module, "probe")}
    return dict(sorted(found.items(), key=lambda item: (HEAVY in imports(item[1]), item[0])))


def imports(kind: ModuleType) -> tuple[str, ...]:
    return getattr(kind, "IMPORTS", ())


def probe_of(kind: str, seed: int, number: int) -> Probe:
    """Always the same for the same three."""
    made: Probe = kinds()[kind].probe(Random(f"{kind} {seed} {number}"))
    return made
