"""The fields of events, read from a log and checked: the log may come from any program."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from math import isfinite
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from minicache.core.errors import InvalidArgument
from minicache.core.events import Event
from minicache.core.request import Adapter, Namespace

Reader = Callable[[Any], Any]

LONGEST_NAME = 10_000  # characters of an id, a salt or the name of an adapter: each of them is shown in many places


def read_fields(kind: type[Event], record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields and stamps, by name, of an event of type `kind`. Raises `ValueError`, which names the key."""
    values = {}
    for name, reader, words in _FIELDS[kind]:
        if name not in record:
            raise ValueError(f"{kind.__name__}: the key {name!r} is missing")
        try:
            values[name] = reader(record[name])
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError, InvalidArgument):
            raise ValueError(f"{kind.__name__}: {name} must be {words}, not {_short(record[name])}") from None
    return values


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _exactly(kind: type) -> Reader:
    """A reader that accepts only values of exactly this type: True is not an integer."""

    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError
        return value

    return read


def _integer(least: int) -> Reader:
    """A reader of integers that a machine's word holds: arrays keep them."""

    def read(value: Any) -> Any:
        if type(value) is not int or not least <= value < 1 << 63:
            raise ValueError
        return value

    return read


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isfinite(value):
        raise ValueError
    number: float = value
    return number


def _integers(value: Any) -> tuple[int, ...]:
    if type(value) not in (list, tuple) or not set(map(type, value)) <= {int}:
        raise TypeError
    if value and not (min(value) >= 0 and max(value) < 1 << 64):
        raise ValueError
    return tuple(value)


def _name(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    if len(value) > LONGEST_NAME:
        raise ValueError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if type(value) not in (list, tuple):
        raise TypeError
    return tuple(map(_name, value))


def _hashes(value: Any) -> tuple[bytes, ...]:
    return tuple(map(bytes.fromhex, _texts(value)))


def _namespace(value: Any) -> Namespace:
    adapter, salt = value["adapter"], value["salt"]
    for text in (*(adapter or {}).values(), salt):
        _name(text or "")
    return Namespace(Adapter(**adapter) if adapter is not None else None, salt, _texts(value["extra"]))


PRIORITY = (_integer(-(1 << 63)), "an integer of 64 bits")
READERS: dict[Any, tuple[Reader, str]] = {
    int: (_integer(0), "an integer from 0 to 2**63 - 1"),
    float: (_number, "a number"),
    str: (_name, f"a text of at most {LONGEST_NAME:,} characters"),
    bool: (_exactly(bool), "true or false"),
    bytes: (bytes.fromhex, "bytes in hex"),
    Namespace: (_namespace, "an object with adapter, salt and extra"),
    tuple[int, ...]: (_integers, "a list of integers from 0 to 2**64 - 1"),
    tuple[str, ...]: (_texts, "a list of texts"),
    tuple[bytes, ...]: (_hashes, "a list of bytes in hex"),
}


def _reader(hint: Any) -> tuple[Reader, str]:
    if hint in READERS:
        return READERS[hint]
    options = get_args(hint)
    if get_origin(hint) is Literal:
        return {option: option for option in options}.__getitem__, f"one of {', '.join(options)}"
    assert NoneType in options, hint
    reader, words = READERS[options[0]]
    return lambda value: None if value is None else reader(value), f"{words} or null"


def _of(kind: type[Event]) -> list[tuple[str, Reader, str]]:
    hints = get_type_hints(kind)
    readers = {name: _reader(hint) for name, hint in hints.items()} | {"priority": PRIORITY}
    return [(item.name, *readers[item.name]) for item in fields(kind)]


_FIELDS = {kind: _of(kind) for kind in Event.__subclasses__()}
