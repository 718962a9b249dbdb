"""Where each character of a prompt comes from: a field of the request, a line of the template, or nobody knows.

    messages[0].content = "Hi"      {{ '<|user|>' + m.content }}   ->   <|user|>Hi
                                                                        Literal(line=1)     characters 0 to 8
                                                                        Field(path, 0)      characters 8 to 10

A `path` starts at a key of the chat (`messages`, `tools`, `documents`, `template_kwargs`): ("messages", 0, "content").
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import overload

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """Characters `offset`, `offset` + 1, … of the text at `path`. An escape (`\\n` in JSON) counts as its character."""

    path: Path
    offset: int


@dataclass(frozen=True, slots=True)
class Key:
    """Characters `offset`, … of a key; `path` is the path of the value under it, so it ends with the key."""

    path: Path
    offset: int


@dataclass(frozen=True, slots=True)
class Value:
    """Written for the value at `path`, without being characters of a text there.

    That is JSON's punctuation (the quotes around a text belong to the text, commas, colons and the quotes of keys to
    the object or list that they are in), numbers, booleans, null, and Python's notation of an object.
    """

    path: Path


@dataclass(frozen=True, slots=True)
class Literal:
    """Text of the template itself, from line `line` of it (the first is 1)."""

    line: int


@dataclass(frozen=True, slots=True)
class Clock:
    """Written by `strftime_now`, called on line `line` of the template: the template's doing, not the request's."""

    line: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """Written by an expression on line `line` whose origin is not known: blame nobody."""

    line: int


Origin = Field | Key | Value | Literal | Clock | Unknown


@dataclass(frozen=True, slots=True)
class Run:
    """Characters [start, end) of a prompt. The origin is that of the first; `shift` gives it for the others."""

    start: int
    end: int
    origin: Origin


def shift(origin: Origin, distance: int) -> Origin:
    """The origin `distance` characters further on in the same run."""
    if distance and isinstance(origin, (Field, Key)):
        return type(origin)(origin.path, origin.offset + distance)
    return origin


class Runs(Sequence[Run]):
    """Runs that tile a text, made when they are asked for: a start and an origin is all that is kept of each."""

    def __init__(self, starts: "array[int]", origins: Sequence[Origin], end: int) -> None:
        self._starts, self._origins, self._end = starts, origins, end

    @classmethod
    def from_lengths(cls, lengths: Iterable[int], origins: Sequence[Origin]) -> "Runs":
        starts = array("I", accumulate(lengths, initial=0))
        end = starts.pop()
        return cls(starts, origins, end)

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> list[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | list[Run]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        end = self._starts[index + 1] if index + 1 < len(self) else self._end
        return Run(self._starts[index], end, self._origins[index])

    def __iter__(self) -> Iterator[Run]:
        return map(self.__getitem__, range(len(self)))

    def resized(self, path: Path, old: int, new: int) -> "tuple[int, Runs] | None":
        """These runs when the text at `path` has `new` characters and no longer `old` (neither is 0), and where it
        begins; `None` unless it stands in one run, whole."""
        own = [i for i, origin in enumerate(self._origins) if getattr(origin, "path", None) == path]
        run = self[own[0]] if len(own) == 1 else None
        if run is None or run.origin != Field(path, 0) or run.end - run.start != old:
            return None
        after = own[0] + 1
        starts = self._starts[:after] + array(self._starts.typecode, (s + new - old for s in self._starts[after:]))
        return run.start, Runs(starts, self._origins, self._end + new - old)

    def index_at(self, character: int) -> int:
        """The number of the run that holds a character of the text."""
        return bisect_right(self._starts, character) - 1


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt and its origins: `runs` tile the text, and neighbours that continue each other are one run."""

    text: str
    runs: Runs

    def origin_at(self, index: int) -> Origin:
        """The origin of one character, with its exact offset. Raises `IndexError` outside the text."""
        if not 0 <= index < len(self.text):
            raise IndexError(f"character {index} is outside a text of {len(self.text)}")
        run = self.runs[self.runs.index_at(index)]
        return shift(run.origin, index - run.start)

    def slice(self, start: int, end: int) -> list[Run]:
        """The runs of characters [start, end), the first and the last cut to fit; empty if there are none."""
        start, end = max(start, 0), min(end, len(self.text))
        if start >= end:
            return []
        whole = self.runs[self.runs.index_at(start) : self.runs.index_at(end - 1) + 1]
        return [
            Run(max(run.start, start), min(run.end, end), shift(run.origin, max(start - run.start, 0))) for run in whole
        ]
