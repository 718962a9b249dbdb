"""Breakpoints: which events a player stops at."""

import re
from dataclasses import dataclass

from minicache.core.event_log import TYPES
from minicache.core.events import Event
from minicache.sim.errors import BadBreakpoint
from minicache.sim.toml_table import suggestion

HOW = "write kind=BlocksEvicted, request=r2, block=7, hash=9c1f, or hit_rate<0.5"
_WRITTEN = re.compile(r"\s*(\w+)\s*(=|<)\s*(\S+)\s*")
BLOCK_FIELDS = ("blocks", "freed")  # fields of events that hold block ids


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Stops at an event that is as every given field says.

    `kind` is an event type's name, `block` a block's id, `hash` the beginning of a hash in hex. `hit_rate_below` stops
    at the admission by which the hit rate ("tokens of all", so far) falls below it.
    """

    kind: str | None = None
    request: str | None = None
    block: int | None = None
    hash: str | None = None
    hit_rate_below: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Breakpoint":
        """Read one condition, or several with spaces between; raises `BadBreakpoint`."""
        found: dict[str, object] = {}
        for word in text.split():
            written = _WRITTEN.fullmatch(word)
            name = written[1] if written else ""
            if written is None or name not in ("kind", "request", "block", "hash", "hit_rate"):
                raise BadBreakpoint(f"breakpoint {word!r}: {HOW}")
            if (name == "hit_rate") != (written[2] == "<"):
                raise BadBreakpoint(f"breakpoint {word!r}: {HOW}")
            found["hit_rate_below" if name == "hit_rate" else name] = _value(name, written[3])
        if not found:
            raise BadBreakpoint(f"an empty breakpoint: {HOW}")
        return cls(**found)  # type: ignore[arg-type]

    def describe(self) -> str:
        """As `parse` reads it."""
        words = [
            f"{name}={value}"
            for name in ("kind", "request", "block", "hash")
            if (value := getattr(self, name)) is not None
        ]
        if self.hit_rate_below is not None:
            words.append(f"hit_rate<{self.hit_rate_below:g}")
        return " ".join(words)

    def matches(self, event: Event, rate: tuple[float, float] | None = None) -> bool:
        """Whether to stop at `event`; `rate` is the hit rate before and after it, where it is an admission."""
        if self.kind is not None and type(event).__name__ != self.kind:
            return False
        if self.request is not None and getattr(event, "request", None) != self.request:
            return False
        if self.block is not None and not any(self.block in getattr(event, name, ()) for name in BLOCK_FIELDS):
            return False
        if self.hash is not None and not any(h.hex().startswith(self.hash) for h in getattr(event, "hashes", ())):
            return False
        below = self.hit_rate_below
        return below is None or (rate is not None and rate[1] < below <= rate[0])


def _value(name: str, text: str) -> object:
    try:
        if name == "block":
            return int(text)
        if name == "hit_rate":
            return float(text)
        if name == "hash":
            int(text, 16)
            return text.lower()
    except ValueError:
        raise BadBreakpoint(f"breakpoint {name}={text}: {HOW}") from None
    if name == "kind" and text not in TYPES:
        raise BadBreakpoint(f"breakpoint kind={text}: there is no such event{suggestion(text, TYPES)}")
    return text
