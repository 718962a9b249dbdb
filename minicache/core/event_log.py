"""Event logs: JSON Lines with a header line, then one event per line.

    {"minicache_events": 2, "block_size": 16, "num_blocks": 64, ...}
    {"type": "StepStarted", "seq": 0, "step": 1, "time": 0.0}

Bytes are written in hex, namespaces as objects. The events read from a log equal those written to it, and so do the
views folded from them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import IO, Any

from minicache.core import events
from minicache.core.errors import MinicacheError
from minicache.core.event_fields import read_fields
from minicache.core.events import Event
from minicache.core.request import Namespace

SCHEMA_VERSION = 2  # 2: PoolReplaced, PoolShrunk; causes as values instead of sentences; where published tokens start
TYPES: dict[str, type[Event]] = {kind.__name__: kind for kind in Event.__subclasses__()}
_STAMPS = ("seq", "step", "time")


class BadLog(MinicacheError):
    """The file is not an event log of this schema. The message names the line."""


def to_json(event: Event) -> dict[str, Any]:
    """The event and its stamps as an object that `json` can write."""
    record: dict[str, Any] = {"type": type(event).__name__}
    for stamp in _STAMPS:
        record[stamp] = getattr(event, stamp)
    for item in fields(event):
        if item.name not in _STAMPS:
            record[item.name] = _plain(getattr(event, item.name))
    return record


def _plain(value: object) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return asdict(value) if isinstance(value, Namespace) else value


def from_json(record: Mapping[str, Any]) -> Event:
    """The event from an object that `to_json` made, with its stamps. Raises `BadLog`."""
    name = record.get("type")
    if not isinstance(name, str) or name not in TYPES:
        raise BadLog(f"not an event of schema {SCHEMA_VERSION}: {name!r} is not an event type")
    kind = TYPES[name]
    try:
        values = read_fields(kind, record)
    except ValueError as error:
        raise BadLog(f"not an event of schema {SCHEMA_VERSION}: {error}") from None
    stamps = {stamp: values.pop(stamp) for stamp in _STAMPS}
    event = kind(**values)
    for stamp, value in stamps.items():
        object.__setattr__(event, stamp, value)
    return event


class LogWriter:
    """A sink that writes each event as a line to the text file `out`, which the caller opens and closes.

    `settings` go into the header. They must contain at least `num_blocks` and `block_size`, which a view needs.
    """

    def __init__(self, out: IO[str], settings: Mapping[str, Any]) -> None:
        self.out = out
        out.write(json.dumps({"minicache_events": SCHEMA_VERSION, **settings}) + "\n")

    def __call__(self, event: Event) -> None:
        self.out.write(json.dumps(to_json(event), separators=(",", ":")) + "\n")


def read_log(
    lines: Iterable[str], read_json: Callable[[str], Any] = json.loads
) -> tuple[dict[str, Any], Iterator[Event]]:
    """The settings of the header, and an iterator that reads the events. Both raise `BadLog`, which names the line.

    `read_json` reads the value of a line or raises `ValueError`: for the log of a stranger, one that limits its depth.
    """
    numbered = enumerate(lines, start=1)
    header = _parse(*next(numbered, (1, "")), read_json)
    version = header.pop("minicache_events", None)
    try:
        json.dumps(header, allow_nan=False)
    except ValueError:
        raise BadLog("line 1: JSON has no NaN and no Infinity, and the header has one") from None
    if version is None:
        raise BadLog("line 1: this is not an event log: the header has no key 'minicache_events'")
    if version != SCHEMA_VERSION:
        raise BadLog(
            f"line 1: this log has schema {version!r}, and this version of minicache reads only schema "
            f"{SCHEMA_VERSION}: record the run again"
        )
    return header, (_event(number, line, read_json) for number, line in numbered if line.strip())


def _parse(number: int, line: str, read_json: Callable[[str], Any]) -> dict[str, Any]:
    try:
        record = read_json(line)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")  # some messages of Python end like this
        raise BadLog(f"line {number}: not JSON: {what} at column {error.colno}") from None
    except ValueError as error:
        raise BadLog(f"line {number}: {error}") from None
    if not isinstance(record, dict):
        raise BadLog(f"line {number}: expected an object, not {type(record).__name__}")
    return record


def _event(number: int, line: str, read_json: Callable[[str], Any]) -> Event:
    try:
        return from_json(_parse(number, line, read_json))
    except BadLog as error:
        message = str(error)
        raise BadLog(message if message.startswith("line") else f"line {number}: {message}") from None


__all__ = ["SCHEMA_VERSION", "BadLog", "LogWriter", "events", "from_json", "read_log", "to_json"]
