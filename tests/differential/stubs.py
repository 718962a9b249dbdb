"""Load a few modules of an engine's wheel, and stubs in place of everything that they import from the rest of it.

The wheels are unpacked, not installed: their kernels and models need a GPU and gigabytes of packages. The cache
managers and schedulers are plain Python, and need only the names that they import.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock


def folder() -> Path:
    """The folder that `set_up.py` has filled."""
    if not os.environ.get("PEERS"):
        raise SystemExit("PEERS is not set: name the folder that `python -m tests.differential.set_up` has filled")
    return Path(os.environ["PEERS"])


class _StubClass(type):
    """A class with any class attribute: its name. Enough for enumerations that are only compared."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _StubModule(types.ModuleType):
    """A module that has every name: a class if it is capitalised, else a mock."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name[:1].isupper():
            value: Any = _StubClass(name, (), {"__class_getitem__": classmethod(lambda cls, item: cls)})
        else:
            value = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, package: str, real: set[str]) -> None:
        self.package, self.real = package, real

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        top, *rest = name.split(".")
        if top != self.package:
            return None
        place = folder().joinpath(top, *rest)
        if name in self.real and not place.is_dir():
            return importlib.util.spec_from_file_location(name, place.with_suffix(".py"))
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = [str(place)]
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return types.ModuleType(spec.name) if spec.name in self.real else _StubModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []


def stub(package: str, real: str) -> None:
    """From now on, `import package...` loads the modules named in `real` from the wheel, and stubs for all others."""
    sys.dont_write_bytecode = True  # the folder stays as it was unpacked
    sys.meta_path.insert(0, _Finder(package, set(real.split())))


class Fields:
    """An object with the given attributes, in place of a configuration or a result."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)
