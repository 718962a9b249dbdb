"""`json.dumps` for values with origins: the same text, with the origin of every character."""

import json
import re
from collections.abc import Iterable
from typing import Any

from minicache.text.origin import Origin, Path, Value
from minicache.text.payload import PlacedBool, path_of
from minicache.text.traced import Builder, Traced, first_origin, plain_text

# The characters that JSON escapes: always, and if the text must be ASCII.
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_ESCAPED_ASCII = re.compile(r'["\\]|[^ -~]')


def dumps(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> Traced:
    """The JSON of `value`. The characters of a text or key have its origin; all other characters have the `Value` that
    they were written for. A value that the template made itself has an unknown origin.

    Raises as `json.dumps` does.
    """
    item, colon = separators or (", " if indent is None else ",", ": ")
    step = indent if indent is None or isinstance(indent, str) else " " * indent
    writer = _Writer(ensure_ascii, step, item, colon, sort_keys)
    writer.write(value, path_of(value), 0)
    return writer.builder.finish()


class _Writer:
    def __init__(self, ascii: bool, indent: str | None, item: str, colon: str, sort_keys: bool) -> None:
        self.ascii, self.indent, self.item, self.colon, self.sort_keys = ascii, indent, item, colon, sort_keys
        self.escaped = _ESCAPED_ASCII if ascii else _ESCAPED
        self.builder = Builder()

    def write(self, value: Any, path: Path | None, depth: int) -> None:
        """`path` is the path of the value; `None` if it is not known."""
        origin = None if path is None else Value(path)
        if isinstance(value, str):
            self.text(value, origin)
        elif isinstance(value, dict):
            members = sorted(value.items()) if self.sort_keys else value.items()
            self.container("{}", members, len(value), path, depth)
        elif isinstance(value, (list, tuple)):
            self.container("[]", enumerate(value), len(value), path, depth)
        else:
            self.builder.extend(json.dumps(bool(value) if isinstance(value, PlacedBool) else value), origin)

    def container(
        self, brackets: str, members: Iterable[tuple[Any, Any]], count: int, path: Path | None, depth: int
    ) -> None:
        origin = None if path is None else Value(path)
        if not count:
            self.builder.extend(brackets, origin)
            return
        newline, before = "" if self.indent is None else "\n" + self.indent * depth, brackets[0]
        step = "" if self.indent is None else self.indent
        for key, member in members:
            self.builder.extend(before + newline + step, origin)
            before = self.item
            if brackets == "{}":
                self.text(_key_text(key), origin)
                self.builder.extend(self.colon, origin)
            inner = path_of(member)
            if member is None and path is not None:
                inner = (*path, key)
            self.write(member, inner, depth + 1)
        self.builder.extend(newline + brackets[1], origin)

    def text(self, text: str, quote: Origin | None) -> None:
        """Write a text in quotes. Every character of an escape has the origin of the character that it stands for."""
        plain, done = plain_text(text), 0
        self.builder.extend('"', quote)
        for match in self.escaped.finditer(plain):
            self.builder.append(text[done : match.start()])
            done = match.end()
            origin = first_origin(text[match.start() : done])
            for character in json.dumps(match[0], ensure_ascii=self.ascii)[1:-1]:
                self.builder.extend(character, origin)
        self.builder.append(text[done:])
        self.builder.extend('"', quote)


def _key_text(key: Any) -> str:
    """A key as JSON writes it: as text. Raises `TypeError` if the key cannot be one in JSON."""
    if isinstance(key, str):
        return key
    plain = bool(key) if isinstance(key, PlacedBool) else key
    return next(iter(json.loads(json.dumps({plain: None}))))
