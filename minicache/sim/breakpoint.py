"""Breakpoints: which events a player stops at."""

import re
from dataclasses import dataclass

from minicache.common.suggest import nearest, suggestion
from minicache.core.event_log import TYPES
from minicache.core.events import Event
from minicache.sim.errors import BadBreakpoint

EXAMPLES = {
    "kind": "kind=BlocksEvicted",
    "request": "request=ID",
    "block": "block=7",
    "hash": "hash=9c1f",
    "hit_rate": "hit_rate<0.5",
}
HOW = "write kind=BlocksEvicted, request=ID, block=7, hash=9c1f, or hit_rate<0.5"
_WRITTEN = re.compile(r"(\w+)(=|<)(\S+)")
_SIGN = re.compile(r"\s*([=<])\s*")
BLOCK_FIELDS = ("blocks", "freed")  # fields of events that hold block ids


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Stops at an event that matches every given field.

    `kind` is the name of an event type, `block` a block's id, `hash` the beginning of a hash in hex. `hit_rate_below`
    stops at an admission if the hit rate ("tokens of all", so far) falls below it there.
    """

    kind: str | None = None
    request: str | None = None
    block: int | None = None
    hash: str | None = None
    hit_rate_below: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Breakpoint":
        """Read one condition, or several that are separated by spaces; raises `BadBreakpoint`."""
        found: dict[str, object] = {}
        for word in _SIGN.sub(r"\1", text).split():
            written = _WRITTEN.fullmatch(word)
            if written is None:
                near = _near(word)
                raise BadBreakpoint(f"{word!r} is not a condition: {f'did you mean kind={near}?' if near else HOW}")
            name, sign, value = written.groups()
            if name not in EXAMPLES:
                raise BadBreakpoint(f"{name!r} is not a field of a condition{suggestion(name, EXAMPLES) or f': {HOW}'}")
            field = "hit_rate_below" if name == "hit_rate" else name
            if sign not in EXAMPLES[name]:
                raise BadBreakpoint(f"{word!r}: write {EXAMPLES[name]}")
            if field in found:
                raise BadBreakpoint(f"{name} is given twice, and one event cannot match both: set two breakpoints")
            found[field] = _value(name, value)
        if not found:
            raise BadBreakpoint(f"the breakpoint is empty: {HOW}")
        return cls(**found)  # type: ignore[arg-type]

    def describe(self) -> str:
        """The conditions in the form that `parse` reads."""
        words = [
            f"{name}={value}"
            for name in ("kind", "request", "block", "hash")
            if (value := getattr(self, name)) is not None
        ]
        if self.hit_rate_below is not None:
            words.append(f"hit_rate<{self.hit_rate_below:g}")
        return " ".join(words)

    def matches(self, event: Event, rate: tuple[float, float] | None = None) -> bool:
        """Whether to stop at `event`; `rate` is the hit rate before and after it, if it is an admission."""
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


_ALLOWED = {
    "block": "a block's number",
    "hash": "the beginning of a hash in hex",
    "hit_rate": "a share above 0, up to 1",
}


def _near(word: str) -> str | None:
    """The event type that a person may have meant: one with the word in its name, else one with a similar spelling."""
    within = [kind for kind in sorted(TYPES) if word.lower() in kind.lower()]
    return next(iter(within), None) or nearest(word, TYPES)


def _value(name: str, text: str) -> object:
    try:
        if name == "block":
            return int(text)
        if name == "hit_rate":
            rate = float(text)
            if not 0 < rate <= 1:
                raise ValueError
            return rate
        if name == "hash":
            int(text, 16)
            return text.lower()
    except ValueError:
        raise BadBreakpoint(f"{text!r} is not {_ALLOWED[name]}: write {EXAMPLES[name]}") from None
    if name == "kind" and text not in TYPES:
        near = _near(text)
        hint = f"did you mean {near!r}?" if near else f"the types are {', '.join(sorted(TYPES))}"
        raise BadBreakpoint(f"{text!r} is not an event type: {hint}")
    return text
