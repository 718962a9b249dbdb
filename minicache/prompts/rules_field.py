"""One field whose two values are the same in some way: as JSON, without the space around, as Unicode, as parts …"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from minicache.prompts.figures import common_prefix
from minicache.prompts.found import SYSTEM_ROLES, Found, role_of, whole_value, written
from minicache.prompts.site import Edit, Site
from minicache.prompts.spans import difference
from minicache.prompts.values import MISSING, Change

ID_KEYS = {"id", "tool_call_id", "call_id"}
MOVED_FROM = 20  # characters of a text found elsewhere that are too many to be a coincidence
TEXT_PARTS = ("text", "input_text", "output_text")
IMAGE = re.compile(r"<image\b|\[image\b|<\|image|<\|vision_start\|>|data:image/|\[(file|img): ", re.I)
LIST_ITEM = re.compile(r"\s*([-*]|\d+\.|\[[ xX~]\])\s")


def parsed(value: Any) -> Any:
    """The object or list that a text is the JSON of; `MISSING` for any other text."""
    if not isinstance(value, str):
        return value
    if value[:1] not in ("{", "["):
        return MISSING
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return MISSING


def double_encoded(site: Site, change: Change) -> Iterator[Found]:
    """An object on one side, its JSON as a text on the other, and the template writes the text in quotes."""
    if isinstance(change.a, str) == isinstance(change.b, str):
        return
    quoted = any(text.startswith(('"{', '"['), at) for text, at in ((site.a_text, site.a_at), (site.b_text, site.b_at)))
    if quoted and parsed(change.a) == parsed(change.b) is not MISSING:
        yield whole_value(site, change, offset=0)


def reserialised(site: Site, change: Change) -> Iterator[Found]:
    """Equal as JSON, written differently: spaces, escapes, `1` and `1.0`, a text and the object it is the JSON of."""
    if not (isinstance(change.a, str) or isinstance(change.b, str)):
        return
    value = parsed(change.a)
    if value is not MISSING and isinstance(value, Mapping | list) and value == parsed(change.b):
        yield whole_value(site, change)


def parts(site: Site, change: Change) -> Iterator[Found]:
    """One text on one side, a list of parts with that text on the other."""
    if _joined(change.a) is not None and _joined(change.a) == _joined(change.b):
        yield whole_value(site, change, offset=0)


def _joined(content: Any) -> str | None:
    """The text of a message, however it is divided; `None` if there is more than text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(p, Mapping) and p.get("type") in TEXT_PARTS for p in content):
        return "".join(str(part.get("text", "")) for part in content)
    return None


def null(site: Site, change: Change) -> Iterator[Found]:
    """Null, an empty text or list, and nothing at all: three ways to say nothing."""
    if change.a in NOTHING and change.b in NOTHING:
        yield whole_value(site, change, offset=0)


NOTHING: list[Any] = [None, "", MISSING, [], {}]


def ids(site: Site, change: Change) -> Iterator[Found]:
    """An id of a call."""
    if change.path[-1] in ID_KEYS:
        yield whole_value(site, change)


def cache_control(site: Site, change: Change) -> Iterator[Found]:
    """A mark for a hosted API's cache."""
    if "cache_control" in change.path or "cache_control" in _keys(change.a) ^ _keys(change.b):
        yield whole_value(site, change, offset=0)


def _keys(value: Any) -> set[str]:
    return set(value) if isinstance(value, Mapping) else set()


def trim(site: Site, change: Change) -> Iterator[Found]:
    """Equal but for the space around."""
    if isinstance(change.a, str) and isinstance(change.b, str) and change.a.strip() == change.b.strip():
        yield whole_value(site, change)


def normaliser(site: Site, change: Change) -> Iterator[Found]:
    """Equal when both are in Unicode's composed form."""
    if isinstance(change.a, str) and isinstance(change.b, str):
        forms = [unicodedata.normalize("NFC", text) for text in (change.a, change.b)]
        if forms[0] == forms[1]:
            yield whole_value(site, change, detail="the two are one text in Unicode's form NFC")


def image_replaced(site: Site, change: Change) -> Iterator[Found]:
    """An image became text (a pointer, a placeholder), or another image."""
    if _is_image_part(change):
        yield whole_value(site, change, offset=0)
    elif isinstance(change.a, str) and isinstance(change.b, str):
        span = difference(change.a, change.b)
        a = change.a[span.a_start : span.a_end]
        b = change.b[span.b_start : span.b_end]
        if IMAGE.match(a) and b:
            edit = Edit(site.b.with_value(change.path, change.a))
            yield Found(edit, change.path, span.a_start, a, b)


def _is_image_part(change: Change) -> bool:
    values = [value.get("type") if isinstance(value, Mapping) else value for value in (change.a, change.b)]
    whole = change.path[-1] == "type" or isinstance(change.a, Mapping) or isinstance(change.b, Mapping)
    return whole and any("image" in str(value) for value in values)


def hoist(site: Site, change: Change) -> Iterator[Found]:
    """Text at the end of the system prompt that the other request has not: a late system message was moved there."""
    a, b = change.a, change.b
    if not (isinstance(a, str) and isinstance(b, str)) or role_of(site, change.path) not in SYSTEM_ROLES:
        return
    start = common_prefix(a, b)
    rest = b[start:] or a[start:]
    if start == min(len(a), len(b)) and start and not _goes_on_with_a_list(a[:start], rest):
        edit = Edit(site.b.with_value(change.path, a))
        yield Found(edit, change.path, start, a[start:], b[start:])


def _goes_on_with_a_list(before: str, rest: str) -> bool:
    return bool(LIST_ITEM.match(rest.lstrip("\n")) and LIST_ITEM.match(before.rstrip("\n").rpartition("\n")[2]))


def moved_block(site: Site, change: Change) -> Iterator[Found]:
    """Text that is gone here and stands, whole, in a later message of B, where it did not stand in A."""
    if not isinstance(change.a, str) or not (isinstance(change.b, str) or change.b is MISSING):
        return
    b = written(change.b)
    span = difference(change.a, b)
    gone = change.a[span.a_start : span.a_end]
    if len(gone) < MOVED_FROM or change.path[0] != "messages" or not isinstance(change.path[1], int):
        return
    for index in range(change.path[1] + 1, len(site.b.messages)):
        before = site.a.messages[index] if index < len(site.a.messages) else {}
        if gone in _all_text(site.b.messages[index]) and gone not in _all_text(before):
            edit = Edit(site.b.with_value(change.path, change.a))
            detail = f"it stands in messages[{index}] now"
            yield Found(edit, change.path, span.a_start, gone, b[span.b_start : span.b_end], detail)
            return


def _all_text(message: Mapping[str, Any]) -> str:
    return _joined(message.get("content")) or ""
