"""What a detector returns, and small things that detectors share."""

import json
from dataclasses import dataclass
from typing import Any

from minicache.prompts.figures import common_prefix
from minicache.prompts.site import Edit, Repair, Site
from minicache.prompts.values import MISSING, Change
from minicache.text.origin import Path


@dataclass(frozen=True, slots=True)
class Found:
    """A detector's answer: where, both texts, and B repaired. `offset` counts characters of the text at `path`; in an
    object or a list it counts entries. `more` are further pairs of texts of this kind in the same field."""

    repair: Repair
    path: Path | None
    offset: int | None
    a: str
    b: str
    detail: str = ""  # what is particular to this case, without any text of the request
    more: tuple[tuple[str, str], ...] = ()


SYSTEM_ROLES = ("system", "developer")


def written(value: Any) -> str:
    """A value as a report shows it: text as it is, anything else as JSON, nothing for nothing."""
    return "" if value is MISSING else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def whole_value(site: Site, change: Change, *, offset: int | None = None, detail: str = "") -> Found:
    """The repair that puts A's value in the place of B's."""
    a, b = written(change.a), written(change.b)
    start = common_prefix(a, b) if offset is None else offset
    return Found(Edit(site.b.with_value(change.path, change.a)), change.path, start, a, b, detail)


def with_messages(site: Site, messages: list[Any]) -> Edit:
    return Edit(site.b.with_value(("messages",), messages))


def role_of(site: Site, path: Path) -> str:
    """The role of the message that `path` is in; empty outside messages."""
    if len(path) < 2 or path[0] != "messages" or not isinstance(path[1], int):
        return ""
    messages = site.a.messages
    return str(messages[path[1]].get("role", "")) if path[1] < len(messages) else ""


def in_head(site: Site, path: Path) -> bool:
    """Whether `path` is in the system prompt, the tools or one of the first two messages: what all turns stand on."""
    if path[0] != "messages":
        return True
    return role_of(site, path) in SYSTEM_ROLES or (isinstance(path[1], int) and path[1] <= 1)
