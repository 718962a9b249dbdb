"""Text that knows where its characters come from: a `str` that keeps origins through the operations of templates.

A `Traced` equals the plain text, has the same hash, and can be used in the same places. Operations that it does not
override return plain text. Joined to a `Traced`, plain text becomes characters of unknown origin (`None`). Attributes
that a template must not see start with an underscore, because the sandbox refuses such names.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Self, SupportsIndex

from markupsafe import Markup

from minicache.text.origin import Field, Key, Origin, shift

# The conversions of `%` in a text: %s, %(name)s, %-5d, %.3f, %%
_CONVERSION = re.compile(
    r"%(?:\((?P<name>.*?)\))?[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?(?P<type>[diouxXeEfFgGcrsa%])"
)

_MOST_PIECES = 2**22  # of a text that is cut with a step; the origins of more are not kept


class Traced(str):
    """Text in runs, each with one origin. `origin` is the origin of the whole text; `None` is unknown."""

    __slots__ = ("_origin", "_runs")
    _origin: Origin | None  # of the first character; of an empty text, the field that is empty
    _runs: "_Runs | None"  # None if there is one run

    def __new__(cls, text: str, origin: Origin | None = None) -> Self:
        self = str.__new__(cls, str.__str__(text))
        self._origin, self._runs = origin, None
        return self

    def __str__(self) -> str:
        return self

    def __add__(self, other: str) -> str:
        if not isinstance(other, str) or isinstance(other, Markup):
            return NotImplemented  # an undefined value raises its own error, markup escapes the other side
        return _sum(self, other)

    def __radd__(self, other: str) -> str:
        return _sum(other, self) if isinstance(other, str) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> str:
        if not hasattr(count, "__index__"):
            return NotImplemented
        if self._is_uniform():
            return Traced(str.__mul__(self, count), self._origin)
        return join_pieces([self] * count.__index__())

    __rmul__ = __mul__

    def __getitem__(self, index: SupportsIndex | slice) -> str:
        if not isinstance(index, slice):
            position = range(len(self))[index]
            return self._cut(position, position + 1)
        start, stop, step = index.indices(len(self))
        if step == 1:
            return self._cut(start, stop)
        if self._is_uniform() or (stop - start) // step > _MOST_PIECES:
            return Traced(str.__getitem__(self, index), self._origin if self._is_uniform() else None)
        return join_pieces(self._cut(position, position + 1) for position in range(start, stop, step))

    def __iter__(self) -> Iterator[str]:
        start = 0
        for length, origin in zip(*runs_of(self), strict=True):
            for distance in range(length):
                yield Traced(str.__getitem__(self, start + distance), origin and shift(origin, distance))
            start += length

    def __mod__(self, values: Any) -> str:
        return _interpolate(self, values)

    def join(self, parts: Iterable[str]) -> str:
        pieces: list[str] = []
        for part in parts:
            if not isinstance(part, str):
                raise TypeError(f"sequence item {len(pieces) // 2}: expected str instance, {type(part).__name__} found")
            pieces += (self, part)
        return join_pieces(pieces[1:])

    def strip(self, chars: str | None = None) -> str:
        start = len(self) - len(str.lstrip(self, chars))
        return self._cut(start, start + len(str.strip(self, chars)))

    def lstrip(self, chars: str | None = None) -> str:
        return self._cut(len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None) -> str:
        return self._cut(0, len(str.rstrip(self, chars)))

    def removeprefix(self, prefix: str) -> str:
        return self._cut(len(self) - len(str.removeprefix(self, prefix)), len(self))

    def removesuffix(self, suffix: str) -> str:
        return self._cut(0, len(str.removesuffix(self, suffix)))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._locate(str.split(self, sep, maxsplit))

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._locate(str.rsplit(self, sep, maxsplit))

    def splitlines(self, keepends: bool = False) -> list[str]:
        return self._locate(str.splitlines(self, keepends))

    def partition(self, sep: str) -> tuple[str, str, str]:
        before, middle, after = self._locate(str.partition(self, sep))
        return before, middle, after

    def rpartition(self, sep: str) -> tuple[str, str, str]:
        before, middle, _ = str.rpartition(self, sep)
        start = len(before)
        return self._cut(0, start), self._cut(start, start + len(middle)), self._cut(start + len(middle), len(self))

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> str:
        left = count.__index__()
        pieces: list[str] = []
        if not old:
            for character in self:
                pieces += (new, character) if left else (character,)
                left -= bool(left)
            return join_pieces([*pieces, new] if left else pieces)
        start = 0
        while left and (found := self.find(old, start)) >= 0:
            pieces += (self._cut(start, found), new)
            start, left = found + len(old), left - 1
        return join_pieces([*pieces, self._cut(start, len(self))]) if pieces else self

    def upper(self) -> str:
        return mapped(self, str.upper(self), str.upper)

    def lower(self) -> str:
        return mapped(self, str.lower(self), str.lower)

    def capitalize(self) -> str:
        return mapped(self, str.capitalize(self))

    def title(self) -> str:
        return mapped(self, str.title(self))

    def center(self, width: SupportsIndex, fillchar: str = " ") -> str:
        padding = max(width.__index__() - len(self), 0)
        left = padding // 2 + (padding & width.__index__() & 1)
        return join_pieces([fillchar * left, self, fillchar * (padding - left)])

    def ljust(self, width: SupportsIndex, fillchar: str = " ") -> str:
        return join_pieces([self, fillchar * (width.__index__() - len(self))])

    def rjust(self, width: SupportsIndex, fillchar: str = " ") -> str:
        return join_pieces([fillchar * (width.__index__() - len(self)), self])

    def _is_uniform(self) -> bool:
        """Whether all characters have the same origin, which counts no offset."""
        return self._runs is None and not isinstance(self._origin, (Field, Key))

    def _cut(self, start: int, stop: int) -> str:
        """Characters [start, stop), in time proportional to the runs in this range."""
        if start >= stop:
            return Traced("")
        if start == 0 and stop == len(self):
            return self
        text = str.__getitem__(self, slice(start, stop))
        if self._runs is None:
            return Traced(text, self._origin and shift(self._origin, start))
        first, last = self._runs.between(start, stop)
        starts, origins = self._runs.starts[first:last], self._runs.origins[first:last]
        origins[0] = origins[0] and shift(origins[0], start - starts[0])
        ends = [*starts[1:], stop]
        starts[0] = start
        return _traced(text, [end - start for start, end in zip(starts, ends, strict=True)], origins)

    def _locate(self, parts: Iterable[str]) -> list[str]:
        """`parts` of this text, in order, with their origins. Each is found at or after the end of the one before."""
        pieces, end = [], 0
        for part in parts:
            start = self.find(part, end)
            end = start + len(part)
            pieces.append(self._cut(start, end))
        return pieces


class _Runs:
    """The lengths and origins of the runs of a text, and their starts, computed when first needed. Never changed."""

    __slots__ = ("lengths", "origins", "starts")

    def __init__(self, lengths: list[int], origins: list[Origin | None]) -> None:
        self.lengths, self.origins = lengths, origins
        self.starts: list[int] = []

    def between(self, start: int, stop: int) -> tuple[int, int]:
        """The range of the indices of the runs that hold characters [start, stop)."""
        if not self.starts:
            self.starts = [0, *accumulate(self.lengths)]
        return bisect_right(self.starts, start) - 1, bisect_right(self.starts, stop - 1)


class Builder:
    """Collects text piece by piece, and merges neighbouring runs that continue each other."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.lengths: list[int] = []
        self.origins: list[Origin | None] = []

    def extend(self, text: str, origin: Origin | None) -> None:
        """Add text of one origin, given as the origin of its first character."""
        self.parts.append(text)
        self._run(len(text), origin)

    def append(self, text: str) -> None:
        """Add text with the origins that it has."""
        self.parts.append(plain_text(text))  # the plain text, so that its own lists of runs can be freed
        lengths, origins = runs_of(text)
        if lengths:
            self._run(lengths[0], origins[0])
        if len(lengths) > 1:  # the others are runs of their own already
            self.lengths += lengths[1:]
            self.origins += origins[1:]

    def finish(self) -> Traced:
        return _traced("".join(self.parts), self.lengths, self.origins)

    def _run(self, length: int, origin: Origin | None) -> None:
        if self.origins and _continues(self.origins[-1], self.lengths[-1], origin):
            self.lengths[-1] += length
        elif length:
            self.lengths.append(length)
            self.origins.append(origin)


def join_pieces(pieces: Iterable[str]) -> Traced:
    """All pieces, joined. Plain pieces have an unknown origin."""
    builder = Builder()
    for piece in pieces:
        builder.append(piece)
    return builder.finish()


def _sum(left: str, right: str) -> Traced:
    """The same for two pieces, but faster: templates mostly add texts."""
    (lengths, origins), (more, others) = runs_of(left), runs_of(right)
    if not lengths or not more:
        return join_pieces((left, right))
    if type(origins[-1]) is type(others[0]) and _continues(origins[-1], lengths[-1], others[0]):
        lengths, more, others = [*lengths[:-1], lengths[-1] + more[0]], more[1:], others[1:]
    return _traced(str.__add__(left, right), [*lengths, *more], [*origins, *others])


def runs_of(text: str) -> tuple[list[int], list[Origin | None]]:
    """The lengths and origins of the runs of a text; a plain text is one run of unknown origin. Do not change them."""
    if not text:
        return [], []
    if not isinstance(text, Traced):
        return [len(text)], [None]
    if text._runs is None:
        return [len(text)], [text._origin]
    return text._runs.lengths, text._runs.origins


def first_origin(text: str) -> Origin | None:
    """The origin of the first character; of an empty text, the field that is empty; of a plain text, `None`."""
    return text._origin if isinstance(text, Traced) else None


def plain_text(text: str) -> str:
    """The same text as an ordinary `str`."""
    return str.__str__(text)


def mapped(source: str, text: str, character: Callable[[str], str] | None = None) -> Traced:
    """`text`, the result of a change of `source`, with origins. One character comes from one, or, if `character` is
    given, as many as it returns for one. If the lengths do not agree, the origin is unknown."""
    if len(text) == len(source):
        return _traced(text, *runs_of(source))
    if character is None:
        return Traced(text)
    builder, start = Builder(), 0
    for one in source:
        length = len(character(one))
        for written in text[start : start + length]:
            builder.extend(written, first_origin(one))
        start += length
    return builder.finish() if start == len(text) else Traced(text)


def _traced(text: str, lengths: list[int], origins: list[Origin | None]) -> Traced:
    self = str.__new__(Traced, text)
    self._origin = origins[0] if origins else None
    self._runs = _Runs(lengths, origins) if len(origins) > 1 else None
    return self


def _continues(origin: Origin | None, length: int, following: Origin | None) -> bool:
    """Whether a run of `length` characters from `origin` and the next run, from `following`, are one run."""
    if isinstance(origin, Field) and isinstance(following, Field):
        return origin.offset + length == following.offset and origin.path == following.path
    if isinstance(origin, Key) and isinstance(following, Key):
        return origin.offset + length == following.offset and origin.path == following.path
    return origin is following or origin == following


def _interpolate(template: Traced, values: Any) -> str:
    """`template % values`, conversion by conversion."""
    whole = str.__mod__(template, values)  # raises what `%` raises
    remaining = iter(values if isinstance(values, tuple) else (values,))
    builder, start = Builder(), 0
    for match in _CONVERSION.finditer(template):
        builder.append(template[start : match.start()])
        start = match.end()
        spec = template[match.start() : start]
        if match["type"] == "%":
            builder.extend("%", runs_of(spec)[1][0])
        elif "*" in spec:
            return Traced(whole)
        elif match["name"] is not None and isinstance(values, Mapping):
            builder.append(formatted(str.__mod__(spec, values), values[match["name"]]))
        else:
            value = next(remaining)
            builder.append(formatted(str.__mod__(spec, (value,)), value))
    builder.append(template[start:])
    return builder.finish()


def formatted(text: str, value: Any) -> str:
    """`text`, which was written for `value`, with the origins of `value` for its characters, if `text` contains
    them."""
    own = str(value)
    start = text.find(own) if own and isinstance(own, Traced) else -1
    return text if start < 0 else join_pieces([text[:start], own, text[start + len(own) :]])
