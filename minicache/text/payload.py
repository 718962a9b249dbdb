"""Values of a request that know their path: the input of a template that renders with origins.

They behave like plain values. Their own attributes start with an underscore, so that no key of a payload can hide them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from minicache.common.json_reader import read_json
from minicache.text.origin import Field, Key, Path, Value
from minicache.text.traced import Builder, Traced, first_origin, plain_text

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"[-+.\w]+")  # a number or a word
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)")
_SPACE = re.compile(r"[ \t\n\r]*")


class _Placed:
    """A value with its path. Converted to text, all its characters have this `Value` as origin."""

    __slots__ = ()
    _request_path: Path

    def __str__(self) -> str:
        return Traced(repr(self), Value(self._request_path))


class PlacedDict(_Placed, dict):
    """An object of the request."""

    __slots__ = ("_request_path",)


class PlacedList(_Placed, list):
    """A list of the request."""

    __slots__ = ("_request_path",)


class PlacedInt(_Placed, int):
    """A whole number of the request."""


class PlacedFloat(_Placed, float):
    """A number of the request."""


class PlacedBool(_Placed, int):
    """True or false. `bool` allows no subclass, so the tests of templates (`is true`, …) must know this class."""

    def __repr__(self) -> str:
        return repr(bool(self))


_PLACED: list[tuple[type, type]] = [(bool, PlacedBool), (int, PlacedInt), (float, PlacedFloat)]


def place(value: Any, path: Path) -> Any:
    """A copy of JSON data in which every text, key, number and container knows its path. Null stays `None`."""
    if isinstance(value, str):
        return Traced(value, Field(path, 0))
    if isinstance(value, Mapping):
        members = PlacedDict()
        for key, member in value.items():
            inner = (*path, key)
            members[Traced(key, Key(inner, 0)) if isinstance(key, str) else key] = place(member, inner)
        return _at(path, members)
    if isinstance(value, list):
        return _at(path, PlacedList(place(item, (*path, index)) for index, item in enumerate(value)))
    if isinstance(value, tuple):
        return tuple(place(item, (*path, index)) for index, item in enumerate(value))
    for plain, placed in _PLACED:
        if isinstance(value, plain):
            return _at(path, placed(value))
    return value


def path_of(value: Any) -> Path | None:
    """The path of a value of the request; of a text, the path of its first character. `None` if it has none."""
    if isinstance(value, _Placed):
        return value._request_path
    origin = first_origin(value) if isinstance(value, str) else None
    return origin.path if isinstance(origin, (Field, Key, Value)) else None


def remade(original: Any, members: dict[Any, Any]) -> dict[Any, Any]:
    """An object with `members` in place of `original`: with the path of `original`, and the origins of the keys that it
    keeps. New keys have the path of `original` as their `Value`."""
    if not isinstance(original, PlacedDict):
        return members
    keys = {key: key for key in original}
    new = Value(original._request_path)
    placed = {keys.get(key, Traced(key, new)): value for key, value in members.items()}
    return _at(original._request_path, PlacedDict(placed))


def relisted(original: Any, items: Iterable[Any]) -> list[Any]:
    """A list with `items` in place of `original`, with the path of `original`."""
    if not isinstance(original, PlacedList):
        return list(items)
    return _at(original._request_path, PlacedList(items))


def loads(text: str) -> Any:
    """`json.loads` that keeps origins: texts in the result have the origins of their characters in `text`, all other
    values have the path of `text`. Raises `ValueError`, as `read_json` does."""
    plain = read_json(text)
    path = path_of(text)
    return plain if path is None else _Reader(text, path).read(0)[0]


class _Reader:
    """A reader of JSON that is known to be valid."""

    def __init__(self, text: str, path: Path) -> None:
        self.text, self.plain, self.path = text, plain_text(text), path

    def read(self, start: int) -> tuple[Any, int]:
        """The value at or after `start`, and where it ends."""
        start = self._skip(start)
        opening = self.plain[start]
        if opening == '"':
            return self._string(start)
        if opening == "{":
            return self._object(start)
        if opening == "[":
            return self._list(start)
        end = _SCALAR.match(self.plain, start).end()  # type: ignore[union-attr]
        return place(json.loads(self.plain[start:end]), self.path), end

    def _object(self, start: int) -> tuple[Any, int]:
        members = PlacedDict()
        end = self._skip(start + 1)
        while self.plain[end] != "}":
            key, end = self._string(self._skip(end + (self.plain[end] == ",")))
            members[key], end = self.read(self._skip(end) + 1)
            end = self._skip(end)
        return _at(self.path, members), end + 1

    def _list(self, start: int) -> tuple[Any, int]:
        items = PlacedList()
        end = self._skip(start + 1)
        while self.plain[end] != "]":
            item, end = self.read(end + (self.plain[end] == ","))
            items.append(item)
            end = self._skip(end)
        return _at(self.path, items), end + 1

    def _string(self, start: int) -> tuple[str, int]:
        """The text at `start`, and where it ends. An escaped character has the origin of the first character of its
        escape."""
        end = _STRING.match(self.plain, start).end()  # type: ignore[union-attr]
        builder, done = Builder(), start + 1
        for match in _ESCAPE.finditer(self.plain, done, end - 1):
            builder.append(self.text[done : match.start()])
            builder.extend(json.loads(f'"{match[0]}"'), first_origin(self.text[match.start()]))
            done = match.end()
        builder.append(self.text[done : end - 1])
        return builder.finish() or Traced("", first_origin(self.text[start])), end

    def _skip(self, start: int) -> int:
        return _SPACE.match(self.plain, start).end()  # type: ignore[union-attr]


def _at(path: Path, value: Any) -> Any:
    value._request_path = path
    return value
