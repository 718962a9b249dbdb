"""The stream of requests of the timestamp experiment.

Most requests begin a conversation, each in a second of its own. Some of these come in a burst, in the same second as
another one. Some requests are later turns of a conversation, which send its earlier turns again. With the time at the
top of the system prompt only these two can hit.
"""

from dataclasses import dataclass
from random import Random

from minicache.core.errors import InvalidArgument, require_int

SECONDS_BETWEEN = 7
START = 14 * 3600 + 3 * 60 + 22  # 14:03:22


@dataclass(frozen=True)
class Stream:
    """A stream of `requests` requests. `same_second` is the fraction that come in the same second as another one,
    `later_turns` the fraction that are later turns. `turn_tokens` are the tokens of a user turn with the template's
    text around it. `seed` gives the order. Raises `InvalidArgument` for a value out of range."""

    requests: int = 50
    same_second: float = 0.02
    later_turns: float = 0.02
    turn_tokens: int = 240
    seed: int = 0

    def __post_init__(self) -> None:
        require_int("requests", self.requests, 1)
        require_int("turn_tokens", self.turn_tokens, 1)
        for name in ("same_second", "later_turns"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidArgument(f"{name} must be between 0 and 1, not {getattr(self, name)!r}")
        if self.num_new < 1:
            raise InvalidArgument("same_second and later_turns leave no request that begins a conversation")

    @property
    def num_same_second(self) -> int:
        return round(self.requests * self.same_second)

    @property
    def num_later_turns(self) -> int:
        return round(self.requests * self.later_turns)

    @property
    def num_new(self) -> int:
        """The number of requests that begin a conversation in a second of their own."""
        return self.requests - self.num_same_second - self.num_later_turns


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: the seconds since the stream began, and its conversation."""

    second: int
    conversation: int


def arrivals(stream: Stream) -> list[Arrival]:
    """The requests in order; equal streams have equal requests."""
    random = Random(stream.seed)
    sizes = [1] * stream.num_new  # conversations that begin in one second
    for _ in range(stream.num_same_second):
        sizes[random.randrange(len(sizes))] += 1
    first, *others = sizes
    others += [0] * stream.num_later_turns  # 0: a later turn instead
    random.shuffle(others)

    found: list[Arrival] = []
    conversations = 0
    for index, size in enumerate([first, *others]):
        second = index * SECONDS_BETWEEN
        if not size:
            found.append(Arrival(second, random.randrange(conversations)))
        found += [Arrival(second, conversations + number) for number in range(size)]
        conversations += size
    return found


def clock(second: int) -> str:
    """The time of day, `second` seconds after the stream began."""
    now = START + second
    return f"{now // 3600 % 24:02}:{now // 60 % 60:02}:{now % 60:02}"
