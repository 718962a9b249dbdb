"""TOML with line numbers: the line of each key, and tables that report their own errors.

`tomllib` gives values without lines, so the lines are found by reading the text a second time, header by header and key
by key. Keys inside an inline table have the line of the key that holds it.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from minicache.common.json_reader import DEEPEST, is_nested
from minicache.common.suggest import not_one_of, suggestion
from minicache.sim.errors import BadScenario

Path = tuple[str | int, ...]  # ("request", 2, "prompt", 0, "text")

LONGEST = 10_000  # characters of a text, such as a story or an id
_LONGEST: Mapping[str | int, int] = {"text": 1 << 21}  # of a prompt's text: as many as the largest pool has tokens
_WIDEST = 1 << 64  # of an integer's size; token ids are below it
# More keys in a row, joined by points, than a value may have levels: tomllib's time grows with the square of them.
_KEYS_IN_A_ROW = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % DEEPEST  # noqa: UP031
)
_HEADER = re.compile(r"^\s*+(\[\[?)([^\[\]]++)\]\]?\s*+(?:#.*)?$")  # no second try: a line may be long
_KEY = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_NAME = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)")


def line_numbers(text: str) -> dict[Path, int]:
    """The line of each table header and of each key that begins a line."""
    found: dict[Path, int] = {}
    arrays: dict[Path, int] = {}
    table: Path = ()
    quoted = ""  # the quotes that end the text of several lines in which this line is
    for number, line in enumerate(text.split("\n"), start=1):
        if not quoted:
            if header := _HEADER.match(line):
                table = tuple(_names(header[2]))
                if header[1] == "[[":
                    arrays[table] = arrays.get(table, -1) + 1
                    table = (*table, arrays[table])
                found.setdefault(table, number)
            elif key := _KEY.match(line):
                found.setdefault((*table, *_names(key[1])), number)
        for quotes in ('"""', "'''"):
            if (not quoted or quoted == quotes) and line.count(quotes) % 2:
                quoted = "" if quoted else quotes
    return found


def _names(dotted: str) -> list[str]:
    return [name.strip("\"'") for name in _NAME.findall(dotted)]


def dotted(path: Path) -> str:
    """`request[2].prompt[0].text`, counted from 0."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def loads(text: str) -> dict[str, Any]:
    """The values of a TOML text. Raises `ValueError`, mostly `tomllib.TOMLDecodeError`."""
    too_deep = ValueError(f"it is nested more than {DEEPEST} levels deep")
    if _KEYS_IN_A_ROW.search(text):
        raise too_deep
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise too_deep from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # the limit of int()
        raise ValueError("a number has too many digits") from None
    if is_nested(data):
        raise too_deep
    return data


@dataclass
class Document:
    """A parsed file: `source` is its name, `overridden` are the paths that `--set` gave."""

    source: str
    data: dict[str, Any]
    lines: dict[Path, int]
    overridden: set[Path] = field(default_factory=set)

    @classmethod
    def parse(cls, text: str, source: str) -> "Document":
        """Parse a file. Raises `BadScenario`, which names the line and the key."""
        try:
            data = loads(text)
        except tomllib.TOMLDecodeError as error:
            message = str(error)
            position = _POSITION.search(message)
            written = text.removesuffix("\n").split("\n")  # only this character ends a line of TOML
            number = int(position[1]) if position else len(written)
            line = written[max(0, min(number, len(written)) - 1)]
            key = _KEY.match(line)
            named = f": {key[1]}" if key else ""
            raise BadScenario(
                f"{source}, line {number}{named}: not TOML: {_POSITION.sub('', message).strip()}"
            ) from None
        except ValueError as error:
            raise BadScenario(f"{source}: {error}") from None
        return cls(source, data, line_numbers(text))

    def require_plain(self) -> None:
        """Raises `BadScenario` for an integer or a text that is larger than any that means something."""
        todo: list[tuple[Path, Any]] = [((), self.data)]
        while todo:
            path, value = todo.pop()
            if isinstance(value, dict):
                todo.extend(((*path, key), inner) for key, inner in value.items())
            elif isinstance(value, list):
                todo.extend(((*path, index), inner) for index, inner in enumerate(value))
            elif isinstance(value, int) and not -_WIDEST < value < _WIDEST:
                self.fail(path, "must be between -2**64 and 2**64")
            elif isinstance(value, str) and len(value) > (longest := _LONGEST.get(path[-1], LONGEST)):
                self.fail(path, f"must have at most {longest:,} characters, not {len(value):,}")

    def override(self, path: Path, value: object) -> None:
        """Put `value` at `path`, as `--set` does; raises `BadScenario` if a table on the path is a value."""
        table: Any = self.data
        for name in path[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise BadScenario(f"--set {dotted(path)}: {name} is not a table in {self.source}")
        table[path[-1]] = value
        self.overridden.add(path)

    def fail(self, path: Path, message: str) -> NoReturn:
        if path in self.overridden:
            raise BadScenario(f"--set {dotted(path)}: {message}")
        number = self.line(path)
        where = f"{self.source}, line {number}" if number else self.source
        raise BadScenario(": ".join(part for part in (where, dotted(path), message) if part))

    def line(self, path: Path) -> int:
        """The line of the innermost part of `path` that has one; 0 if none has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)

    @property
    def root(self) -> "Table":
        return Table(self, (), self.data)


class Table:
    """One table. Its reader asks for each key that has a meaning; `done()` rejects the others."""

    def __init__(self, document: Document, path: Path, data: Mapping[str, Any]) -> None:
        self.document, self.path, self.data = document, path, data
        self._asked: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self.data

    @property
    def line(self) -> int:
        return self.document.line(self.path)

    def is_overridden(self, key: str) -> bool:
        """Whether `--set` gave its value."""
        return (*self.path, key) in self.document.overridden

    def fail(self, key: str, message: str) -> NoReturn:
        self.document.fail((*self.path, key) if key else self.path, message)

    def get(self, key: str, kind: type | tuple[type, ...], named: str, default: Any = None) -> Any:
        """The value of `key`, checked; `named` describes the type. Without a default the key is required."""
        self._asked.add(key)
        if key not in self.data:
            if default is None:
                self.document.fail(self.path, f"the key {key!r} is missing ({named})")
            return default
        value = self.data[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.fail(key, f"must be {named}, not {value!r}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value: str = self.get(key, str, "a text", default)
        return value

    def integer(self, key: str, default: int | None = None, minimum: int = 0) -> int:
        value: int = self.get(key, int, "an integer", default)
        if value < minimum and key in self.data:
            self.fail(key, f"must be at least {minimum}, not {value}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self.get(key, (int, float), "a number", default)
        if not 0 <= value < float("inf"):
            self.fail(key, f"must be a number of at least 0, not {value}")
        return float(value)

    def flag(self, key: str) -> bool:
        value: bool = self.get(key, bool, "true or false", False)
        return value

    def choice(self, key: str, options: Iterable[str], default: str | None = None) -> str:
        value, options = self.text(key, default), list(options)
        if value not in options:
            self.fail(key, not_one_of(value, options))
        return value

    def table(self, key: str) -> "Table":
        """The table at `key`, or an empty one."""
        self._asked.add(key)
        data = self.data.get(key, {})
        if not isinstance(data, dict):
            self.fail(key, f"must be a table, not {data!r}")
        return Table(self.document, (*self.path, key), data)

    def tables(self, key: str, required: str) -> list["Table"]:
        """The tables in the array at `key`; at least one, which `required` describes."""
        self._asked.add(key)
        items = self.data.get(key, [])
        if not isinstance(items, list) or not items or not all(isinstance(item, dict) for item in items):
            self.fail(key, f"must be {required}")
        return [Table(self.document, (*self.path, key, index), item) for index, item in enumerate(items)]

    def allow(self, keys: Iterable[str]) -> None:
        """Accept these keys, whether they are asked for or not."""
        self._asked.update(keys)

    def done(self) -> None:
        """Raises `BadScenario` for a key that has no meaning here, with the nearest key that has one."""
        for key in self.data:
            if key not in self._asked:
                hint = suggestion(key, self._asked) or f": the keys are {', '.join(sorted(self._asked))}"
                self.fail(key, f"this key has no meaning here{hint}")
