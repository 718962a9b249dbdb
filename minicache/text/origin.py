"""Where each character of a prompt comes from: a field of the request, a line of the template, or an unknown place.

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
    """Characters `offset`, `offset` + 1, … of the text at `path`. An escape (`\\n` in JSON) counts as one character."""

    path: Path
    offset: int


@dataclass(frozen=True, slots=True)
class Key:
    """Characters `offset`, … of a key. `path` is the path of the value under the key, so it ends with the key."""

    path: Path
    offset: int


@dataclass(frozen=True, slots=True)
class Value:
    """Characters written for the value at `path` that are not characters of a text there.

    These are numbers, booleans, null, Python's notation of an object, and JSON's punctuation: the quotes around a text
    belong to the text; commas, colons and the quotes of keys belong to the object or list around them.
    """

    path: Path


@dataclass(frozen=True, slots=True)
class Literal:
    """Text of the template itself, from its line `line`, counted from 1."""

    line: int


@dataclass(frozen=True, slots=True)
class Clock:
    """A time that the template wrote by calling `strftime_now` on its line `line`: it comes from no field."""

    line: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """Text written by an expression on line `line` of the template, whose origin is not known."""

    line: int


Origin = Field | Key | Value | Literal | Clock | Unknown


@dataclass(frozen=True, slots=True)
class Run:
    """Characters [start, end) of a prompt. `origin` is the origin of the first; `shift` gives those of the others."""

    start: int
    end: int
    origin: Origin


def shift(origin: Origin, distance: int) -> Origin:
    """The origin of the character `distance` characters later in the same run."""
    if distance and isinstance(origin, (Field, Key)):
        return type(origin)(origin.path, origin.offset + distance)
    return origin


class Runs(Sequence[Run]):
    """The runs of a text, which cover it without gaps. Only starts and origins are stored; a `Run` is made on
    access."""

    def __init__(self, starts: "array[int]", origins: Sequence[Origin], end: int) -> None:
        self._starts, self._origins, self._end = starts, origins, end

    @classmethod
    def from_lengths(cls, lengths: Iterable[int], origins: Sequence[Origin]) -> "Runs":
        """Runs from the length and origin of each, in order."""
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
        """These runs after the text at `path` changed from `old` characters to `new` (neither is 0), and the place
        where it begins. `None` unless the prompt holds the whole text once, in one run."""
        own = [i for i, origin in enumerate(self._origins) if isinstance(origin, Field) and origin.path == path]
        run = self[own[0]] if len(own) == 1 else None
        if run is None or run.origin != Field(path, 0) or run.end - run.start != old:
            return None
        after = own[0] + 1
        starts = self._starts[:after] + array(self._starts.typecode, (s + new - old for s in self._starts[after:]))
        return run.start, Runs(starts, self._origins, self._end + new - old)

    def index_at(self, character: int) -> int:
        """The index of the run that holds character number `character`."""
        return bisect_right(self._starts, character) - 1


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt and its origins. `runs` cover the text; no two neighbours could be one run."""

    text: str
    runs: Runs

    def origin_at(self, index: int) -> Origin:
        """The origin of character number `index`, with its exact offset. Raises `IndexError` outside the text."""
        if not 0 <= index < len(self.text):
            raise IndexError(f"character {index} is outside a text of {len(self.text)}")
        run = self.runs[self.runs.index_at(index)]
        return shift(run.origin, index - run.start)

    def slice(self, start: int, end: int) -> list[Run]:
        """The runs of characters [start, end), with the first and the last cut to this range."""
        start, end = max(start, 0), min(end, len(self.text))
        if start >= end:
            return []
        whole = self.runs[self.runs.index_at(start) : self.runs.index_at(end - 1) + 1]
        return [
            Run(max(run.start, start), min(run.end, end), shift(run.origin, max(start - run.start, 0))) for run in whole
        ]
