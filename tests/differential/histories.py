"""A history: settings and operations, played on ours and on theirs, and compared after every operation."""

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

Operation = tuple[Any, ...]
DONE: Counter[str] = Counter()  # what the histories did: hits, evictions, … A part counts into it


class Differs(Exception):
    """Ours and theirs are not the same."""


def same(what: str, ours: Any, theirs: Any) -> None:
    if ours != theirs:
        raise Differs(f"{what}: minicache {ours!r}, the engine {theirs!r}")


class Pair:
    """Both sides of a part. Operations are methods; one that makes no sense now returns `False`, and does nothing."""

    def compare(self) -> None:
        """Compare the whole state of both."""
        raise NotImplementedError

    def end(self) -> None:
        """What is left to do when a history is over; compares, too."""

    def state(self) -> str:
        """Both states, for people."""
        raise NotImplementedError


@dataclass(frozen=True)
class Part:
    """`draw` makes a random history; `pair` makes both sides, which start empty."""

    name: str
    draw: Callable[[Random], tuple[dict[str, Any], list[Operation]]]
    pair: Callable[[dict[str, Any]], Pair]


@dataclass(frozen=True)
class Found:
    """A difference, or an error of either side, at one operation."""

    operation: Operation
    error: Exception
    pair: Pair | None

    @property
    def kind(self) -> str:
        """What differs, without the values."""
        return f"{type(self.error).__name__}: {str(self.error).split(':')[0]}"[:40]


def play(part: Part, settings: dict[str, Any], operations: list[Operation]) -> Found | None:
    pair, operation = None, ("start",)
    try:
        pair = part.pair(settings)
        for operation in operations:
            name, *values = operation
            if getattr(pair, name)(*values) is not False:
                DONE["operations"] += 1
                pair.compare()
        operation = ("end",)
        pair.end()
    except Exception as error:
        return Found(operation, error, pair)
    return None


def shrink(part: Part, settings: dict[str, Any], operations: list[Operation], kind: str) -> list[Operation]:
    """Fewer operations that still show the difference `kind`: runs of them are left out, shorter and shorter ones."""
    counted = Counter(DONE)
    size = max(1, len(operations) // 2)
    while True:
        at, is_shorter = 0, False
        while at < len(operations):
            rest = operations[:at] + operations[at + size :]
            found = play(part, settings, rest)
            if found and found.kind == kind:
                operations, is_shorter = rest, True
            else:
                at += size
        if size == 1 and not is_shorter:
            break
        size = max(1, size // 2)
    DONE.clear()
    DONE.update(counted)
    return operations


def token_runs(random: Random, alphabet: int, longest: int) -> list[list[int]]:
    """One to four runs of 1 to `longest` tokens: the beginnings that prompts share."""
    return [
        [random.randrange(alphabet) for _ in range(random.randint(1, longest))] for _ in range(random.randint(1, 4))
    ]


def search(part: Part, seed: int, count: int, seconds: float) -> Iterator[Found | None]:
    """Play up to `count` random histories, for at most `seconds`; the result of each."""
    start = time.monotonic()
    for number in range(count):
        if time.monotonic() - start > seconds:
            return
        yield play(part, *part.draw(Random(f"{part.name} {seed} {number}")))


def describe(part: Part, seed: int, number: int) -> str:
    """The difference that history `number` shows, in as few operations as it takes."""
    settings, operations = part.draw(Random(f"{part.name} {seed} {number}"))
    found = play(part, settings, operations)
    if found is None:
        return "it does not show again: one of the sides keeps something between histories"
    operations = shrink(part, settings, operations, found.kind)
    found = play(part, settings, operations) or found
    lines = [f"{part.name}, seed {seed}, history {number}, at {found.operation}: {found.error}", f"settings {settings}"]
    lines += [f"    {operation}" for operation in operations]
    if found.pair is not None:
        lines.append(found.pair.state())
    if not isinstance(found.error, Differs):
        lines += traceback.format_exception(found.error)
    return "\n".join(lines)
