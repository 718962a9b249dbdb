"""What one rendering of a template may cost: seconds, and characters of text.

A template is a stranger's program. Jinja's sandbox decides what it may touch; a budget, how long it may run and how
much memory it may fill. Everything that can be long or large asks the budget, before it begins if it could never end:

    a turn of a loop, a call          TICK
    a text that is made               its characters
    a list or object that is made     NODE for each member
    "x" * 10**10, "%999999999d", …    what the result would have, before it is made

Python's own operations stay as they are between two questions, so each of these must be bounded by what the operands
have already cost. This needs one limit more: a list that holds itself many times, on many levels, is small in memory
and endless when it is written, compared or hashed. So the weight of a container, counted through all its levels, has
the same limit.
"""

import re
from collections.abc import Iterable, Iterator, Sized
from time import monotonic
from typing import Any

from jinja2 import TemplateRuntimeError

SECONDS = 30.0  # what a rendering may take; a prompt of 10 MB takes less than one
PER_SECOND = 2**25  # characters that a template may make for each of these seconds
TICK, NODE = 32, 64  # in characters; NODE is about the bytes of a member in memory
BETWEEN_LOOKS = 2**14  # characters that are paid between two looks at the clock: less than a millisecond
LONGEST_INT = 2**20  # in bits: slower than any other operation from here on
OPTION = "--template-seconds (in Python: seconds)"

_CONTAINERS = (list, tuple, dict, set, frozenset)
_WIDTH = re.compile(r"\d+(?=[.\d]*[hlL]?[A-Za-z])")  # a width or precision before the letter of a conversion


class LimitReached(TemplateRuntimeError):
    """A template used up its budget."""


class Budget:
    """The budget of one rendering that may take `seconds`, and must end at `until` on the clock of `monotonic`.

    Every method raises `LimitReached` once the budget is used up.
    """

    __slots__ = ("_left", "_look", "_until", "_weights", "seconds", "total")

    def __init__(self, seconds: float = SECONDS, until: float = float("inf")) -> None:
        self.seconds = seconds
        self.total = self._left = self._look = int(min(seconds, 1e9) * PER_SECOND)
        self._until = min(monotonic() + seconds, until)
        self._weights: dict[int, tuple[int, Any]] = {}  # by id; the container is kept, so that the id stays its own

    def spend(self, size: int) -> None:
        """Pay for `size` characters."""
        self._left -= size
        if self._left < self._look:
            self._check()

    def _check(self) -> None:
        if self._left < 0:
            raise LimitReached(
                f"it made more than {self.total:,} characters, the limit for {self.seconds:g} seconds: "
                f"if it must, raise {OPTION}"
            )
        if monotonic() > self._until:
            raise LimitReached(f"it ran for more than {self.seconds:g} seconds: if it must, raise {OPTION}")
        self._look = max(self._left - BETWEEN_LOOKS, 0)

    def tick(self) -> None:
        """Pay for a turn of a loop."""
        self._left -= TICK
        if self._left < self._look:
            self._check()

    def ticked(self, value: Any) -> Any:
        """`value`, the result of looking through others, paid as one turn of a loop. Always looks at the clock."""
        self._left -= TICK
        self._check()
        return value

    def measured(self, value: Any) -> Any:
        """`value`, paid by what it has."""
        if isinstance(value, str):
            self.spend(len(value))
        elif isinstance(value, _CONTAINERS):
            self.spend(NODE * len(value))
        elif isinstance(value, int):
            self.spend_bits(value.bit_length())
        else:
            self.spend(len(value) if isinstance(value, bytes) else TICK)
        return value

    def counted(self, value: Any) -> Any:
        """The same for a value that may hold another value several times."""
        self.measured(value)
        if isinstance(value, _CONTAINERS):
            self.weigh(value)
        return value

    def starred(self, values: Any) -> Any:
        """`values`, paid before they are unpacked into the arguments of a call, or before a loop chooses from them."""
        self.spend(NODE * length(values))
        return values

    def metered(self, pieces: Iterable[str]) -> Iterator[str]:
        """The pieces of a text, paid one by one."""
        for piece in pieces:
            self._left -= len(piece)
            if self._left < self._look:
                self._check()
            yield piece

    def spend_bits(self, bits: int) -> None:
        """Pay for a whole number."""
        if bits > LONGEST_INT:
            raise LimitReached(f"it made a whole number of more than {LONGEST_INT:,} bits")
        self.spend(TICK + bits // 8)

    def weigh(self, value: Any) -> int:
        """The characters of a value and of everything in it, as often as it is in it."""
        if isinstance(value, str):
            return len(value)
        if not isinstance(value, _CONTAINERS):
            return NODE
        known = self._weights.get(id(value))
        if known is not None:
            return known[0]
        weight = NODE + sum(map(self.weigh, value))
        if isinstance(value, dict):
            weight += sum(map(self.weigh, value.values()))
        if weight > self.total:
            self.spend(weight)
        self._weights[id(value)] = weight, value
        return weight


def length(value: Any) -> int:
    return len(value) if isinstance(value, Sized) else 0


def percent(budget: Budget, template: str | bytes, values: Any) -> int:
    """The characters of `template % values`, or more."""
    text = template if isinstance(template, str) else template.decode("latin-1")
    arguments = values if isinstance(values, tuple) else (values,)
    stars = text.count("*") * max(map(size, arguments), default=0)
    inserted = text.count("%") * max(map(budget.weigh, arguments), default=0)
    return len(text) + numbers(budget, text, _WIDTH) + stars + inserted


def numbers(budget: Budget, text: str, pattern: re.Pattern[str] = re.compile(r"\d+")) -> int:
    """The sum of the numbers in a text; of a number beyond every limit, the budget."""
    return sum(int(found) if len(found) < 16 else budget.total + 1 for found in pattern.findall(text))


# Methods of texts, lists and objects whose result is no longer than their operands, made in one pass.
_CHEAP_NAMES = (
    "upper lower casefold capitalize title swapcase startswith endswith find index count removeprefix removesuffix "
    "partition keys values items get copy isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric "
    "isprintable isspace istitle isupper bit_length is_integer"
)
CHEAP = frozenset(_CHEAP_NAMES.split())
_STRIPS = ("strip", "lstrip", "rstrip")


def method(budget: Budget, owner: Any, name: str, args: tuple[Any, ...]) -> int:
    """The characters, or the work, of `owner.name(*args)` with an owner of Python's own types, or more."""
    if name in CHEAP or (not args and name in _STRIPS):
        return TICK
    own, first = length(owner), args[0] if args else None
    if name in _STRIPS or name in ("rfind", "rindex", "rpartition"):  # each character with each other one
        return TICK + (own * length(first) >> 6)
    if name in ("split", "rsplit"):
        if isinstance(first, str | bytes) and first:
            pieces = owner.count(first) + (own * len(first) >> 12)
        else:
            pieces = own // 2 if own > 2**20 else 0  # the result pays for the pieces of a short text
        return min(pieces, args[1] if len(args) > 1 and isinstance(args[1], int) and args[1] >= 0 else pieces) * NODE
    if name == "splitlines":
        return own * NODE // 8 if own > 2**20 else TICK
    if name in ("center", "ljust", "rjust", "zfill"):
        return size(first)
    if name == "to_bytes":
        return size(first) if args else TICK
    if name == "expandtabs":
        return own * (size(first) if args else 8)
    if name == "replace" and len(args) > 1:
        found = owner.count(first) if isinstance(first, type(owner) if isinstance(owner, bytes) else str) else 0
        return own + found * (NODE + length(args[1]))
    if name == "translate":
        longest = max(map(length, first.values()), default=0) if isinstance(first, dict) else 1
        return own * max(longest, 1)
    return TICK + NODE * (own + sum(map(length, args)))


def size(value: Any) -> int:
    """The size that a width or a count asks for."""
    return abs(value) if isinstance(value, int) else 0
