"""A rule: the kind and layer of a cause, the detector that finds it, and the advice to print. And what detectors
share."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.reuse import common_prefix
from minicache.prompts.site import Edit, Repair, Site
from minicache.prompts.values import MISSING, Change
from minicache.text.origin import Path


@dataclass(frozen=True, slots=True)
class Found:
    """What a detector found: the place in the request, the two texts, and the repair of B.

    `offset` counts characters of the text at `path`, or entries if the value there is an object or a list. `detail`
    says what is particular to this case, and quotes no text of the request. `more` holds further pairs of texts of the
    same kind in the same field.
    """

    repair: Repair
    path: Path | None
    offset: int | None
    a: str
    b: str
    detail: str = ""
    more: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SiteRule:
    """A rule whose detector looks at a divergence as a whole."""

    kind: Kind
    layer: Layer
    detect: Callable[[Site], Iterable[Found]]
    fix: str


@dataclass(frozen=True, slots=True)
class FieldRule:
    """A rule whose detector looks at one value that differs between the two requests."""

    kind: Kind
    layer: Layer
    detect: Callable[[Site, Change], Iterable[Found]]
    fix: str


Rule = SiteRule | FieldRule

# Advice that several rules give.
APPEND = "Put it into the newest user turn or an appended message, and leave everything sent before unchanged."
KEEP = "Keep the text exactly as the model wrote it, and send it back unchanged."
CUT_RARELY = "Cut rarely and in large steps, and leave everything sent before unchanged: each cut costs one prefill."
VARIANT = "Use a variant of the template that writes earlier turns as they were first written, or accept the loss."

SYSTEM_ROLES = ("system", "developer")


def written(value: Any) -> str:
    """A value as the report shows it: text as it is, `MISSING` as an empty text, anything else as JSON."""
    return "" if value is MISSING else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def counted(number: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def without(texts: Iterable[str], others: Iterable[str]) -> list[str]:
    """The texts that are not among `others`."""
    known = set(others)
    return [text for text in texts if text not in known]


def whole_value(site: Site, change: Change, *, offset: int | None = None, detail: str = "") -> Found:
    """A finding whose repair replaces B's whole value by A's."""
    a, b = written(change.a), written(change.b)
    start = common_prefix(a, b) if offset is None else offset
    return Found(Edit(site.b.with_value(change.path, change.a)), change.path, start, a, b, detail)


def role_of(site: Site, path: Path) -> str:
    """The role of A's message that `path` is in; empty if `path` is not in a message of A."""
    if len(path) < 2 or path[0] != "messages" or not isinstance(path[1], int):
        return ""
    messages = site.a.messages
    return str(messages[path[1]].get("role", "")) if path[1] < len(messages) else ""


def in_head(site: Site, path: Path) -> bool:
    """Whether `path` is in the part that every later turn repeats: the system prompt, the tools, or one of the first
    two messages."""
    if path[0] != "messages":
        return True
    return role_of(site, path) in SYSTEM_ROLES or (isinstance(path[1], int) and path[1] <= 1)
