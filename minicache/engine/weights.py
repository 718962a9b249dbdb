"""Named tensors of a model folder, checked as they are read.

Shapes: the names and shapes are Hugging Face's; every `take` states the shape it expects.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from minicache.engine.errors import BrokenModel, UnknownModel

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


class Weights(Protocol):
    """Where a model takes its tensors from."""

    def __contains__(self, name: str) -> bool: ...

    def take(self, name: str, *shape: int) -> Tensor:
        """The tensor of that name as the model's dtype; raises `BrokenModel` if it is missing or of another shape."""


class FolderWeights:
    """The safetensors of a folder, in one file or in shards. Tensors are read when taken, one at a time."""

    def __init__(self, folder: Path, dtype: torch.dtype, device: torch.device | str = "cpu") -> None:
        self.folder, self.dtype, self.device = folder, dtype, device
        self._files = {path.name: open_safetensors(path) for path in shards(folder)}
        self._home = {name: file for file, opened in self._files.items() for name in opened.keys()}  # noqa: SIM118

    def __contains__(self, name: str) -> bool:
        return name in self._home

    def __iter__(self) -> Iterator[str]:
        return iter(self._home)

    def take(self, name: str, *shape: int) -> Tensor:
        if name not in self._home:
            raise BrokenModel(f"{self.folder}: the weights lack {name}, which config.json asks for")
        file = self._home[name]
        try:
            tensor: Tensor = self._files[file].get_tensor(name)
        except SafetensorError as error:
            raise BrokenModel(f"{self.folder / file} is corrupt at {name}: {error}; fetch it again") from None
        return checked(tensor, f"{self.folder / file}: {name}", shape).to(self.device, self.dtype)


class MemoryWeights:
    """A mapping of tensors, for models made in code. They are copied: who made them may go on training them."""

    def __init__(self, tensors: Mapping[str, Tensor], dtype: torch.dtype, device: torch.device | str = "cpu") -> None:
        self.tensors, self.dtype, self.device = tensors, dtype, device

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def take(self, name: str, *shape: int) -> Tensor:
        if name not in self.tensors:
            raise BrokenModel(f"the weights lack {name}, which the config asks for")
        tensor = self.tensors[name]
        if not isinstance(tensor, Tensor):
            raise BrokenModel(f"{name} must be a tensor, not {type(tensor).__name__}")
        return checked(tensor, name, shape).detach().to(self.device, self.dtype, copy=True)


def checked(tensor: Tensor, what: str, shape: tuple[int, ...]) -> Tensor:
    if tuple(tensor.shape) != shape:
        raise BrokenModel(f"{what} has shape {tuple(tensor.shape)}, but config.json asks for {shape}")
    return tensor


def shards(folder: Path) -> list[Path]:
    """The safetensors files of a folder; raises `UnknownModel` if there are none, `BrokenModel` if one is lost."""
    if (folder / INDEX).is_file():
        index = read_json(folder / INDEX)
        names = index.get("weight_map")
        if not isinstance(names, dict) or not names:
            raise BrokenModel(f"{folder / INDEX} has no weight_map")
        for name in names.values():
            if not isinstance(name, str) or Path(name).name != name:
                raise BrokenModel(f"{folder / INDEX}: weight_map must name files of this folder, not {name!r}")
        found = [folder / name for name in sorted(set(names.values()))]
    else:
        found = [folder / SINGLE]
    for path in found:
        if not path.is_file():
            error = BrokenModel if len(found) > 1 else UnknownModel
            raise error(f"{folder} has no {path.name}: a model folder holds config.json and its safetensors weights")
    return found


def open_safetensors(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError, ValueError) as error:
        raise BrokenModel(f"{path} is truncated or not a safetensors file ({error}); fetch it again") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file of a model; raises `UnknownModel` if missing, `BrokenModel` if it is not an object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnknownModel(f"{path.parent} has no {path.name}, so it is not a model folder") from None
    except (OSError, ValueError) as error:
        raise BrokenModel(f"{path} is not readable JSON: {error}") from None
    if not isinstance(value, dict):
        raise BrokenModel(f"{path} holds {type(value).__name__}, not a JSON object")
    return value
