"""One value of the request that differs, by its structure: two forms of the same JSON, text or list; an image; a text
that was moved to or from this field."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from minicache.common.json_reader import read_json
from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.reuse import common_prefix
from minicache.prompts.rules.rule import KEEP, SYSTEM_ROLES, FieldRule, Found, role_of, whole_value, written
from minicache.prompts.site import Edit, Site
from minicache.prompts.spans import difference
from minicache.prompts.values import MISSING, Change, value_at

ID_KEYS = {"id", "tool_call_id", "call_id"}
SET_LIKE = {"required"}  # lists of a JSON schema whose order has no meaning; that of `enum` and `anyOf` has one
MANY_MARKS = 256  # after one letter; Unicode's own limit for streams is 30
MOVED_FROM = 20  # a text of at least this many characters, found in another message, is no coincidence
TEXT_PARTS = ("text", "input_text", "output_text")
IMAGE = re.compile(r"<image\b|\[image\b|<\|image|<\|vision_start\|>|data:image/|\[(file|img): ", re.I)
LIST_ITEM = re.compile(r"\s*([-*]|\d+\.|\[[ xX~]\])\s")


def parsed(value: Any) -> Any:
    """`value` itself, or the object or list that it holds as JSON text; `MISSING` for any other text."""
    if not isinstance(value, str):
        return value
    if value[:1] not in ("{", "["):
        return MISSING
    try:
        return read_json(value)
    except ValueError:
        return MISSING


def double_encoded(site: Site, change: Change) -> Iterator[Found]:
    """One request has an object and the other its JSON as text, and the template writes the text in quotes."""
    if isinstance(change.a, str) == isinstance(change.b, str):
        return
    quoted = any(text.startswith(('"{', '"['), at) for text, at in ((site.a_text, site.a_at), (site.b_text, site.b_at)))
    if quoted and parsed(change.a) == parsed(change.b) is not MISSING:
        yield whole_value(site, change, offset=0)


def reserialised(site: Site, change: Change) -> Iterator[Found]:
    """Equal as JSON and written differently: spaces, escapes, `1` and `1.0`, or an object and its JSON as text."""
    if not (isinstance(change.a, str) or isinstance(change.b, str)):
        return
    value = parsed(change.a)
    if value is not MISSING and isinstance(value, Mapping | list) and value == parsed(change.b):
        yield whole_value(site, change)


def parts(site: Site, change: Change) -> Iterator[Found]:
    """One request has a text, and the other a list of parts that hold the same text."""
    if _joined(change.a) is not None and _joined(change.a) == _joined(change.b):
        yield whole_value(site, change, offset=0)


def _joined(content: Any) -> str | None:
    """The text of a message, whole or in parts; `None` if it holds anything else than text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(p, Mapping) and p.get("type") in TEXT_PARTS for p in content):
        return "".join(str(part.get("text", "")) for part in content)
    return None


def null(site: Site, change: Change) -> Iterator[Found]:
    """Two forms of no value: null, an empty text, list or object, or no key at all."""
    if change.a in EMPTY and change.b in EMPTY:
        yield whole_value(site, change, offset=0)


EMPTY: list[Any] = [None, "", MISSING, [], {}]


def ids(site: Site, change: Change) -> Iterator[Found]:
    """The id of a tool call."""
    if change.path[-1] in ID_KEYS:
        yield whole_value(site, change)


def cache_control(site: Site, change: Change) -> Iterator[Found]:
    """A mark that controls the cache of a hosted API."""
    if "cache_control" in change.path or "cache_control" in _keys(change.a) ^ _keys(change.b):
        yield whole_value(site, change, offset=0)


def _keys(value: Any) -> set[str]:
    return set(value) if isinstance(value, Mapping) else set()


def trim(site: Site, change: Change) -> Iterator[Found]:
    """Equal except for white space at the beginning or the end."""
    if isinstance(change.a, str) and isinstance(change.b, str) and change.a.strip() == change.b.strip():
        yield whole_value(site, change)


def normaliser(site: Site, change: Change) -> Iterator[Found]:
    """Equal after both are brought into Unicode's form NFC."""
    if isinstance(change.a, str) and isinstance(change.b, str) and _can_be_normalised(change.a + change.b):
        forms = [unicodedata.normalize("NFC", text) for text in (change.a, change.b)]
        if forms[0] == forms[1]:
            yield whole_value(site, change, detail="the two texts are equal in Unicode's form NFC")


def _can_be_normalised(text: str) -> bool:
    """Whether NFC may change the text, and takes a time that is linear in its length: Python sorts the marks after a
    letter by insertion."""
    runs = groupby(map(unicodedata.combining, text), key=bool)
    return not text.isascii() and all(sum(1 for _ in run) <= MANY_MARKS for marks, run in runs if marks)


def image_replaced(site: Site, change: Change) -> Iterator[Found]:
    """An image was replaced by a text (a reference or placeholder) or by another image."""
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
    """Only one of the requests has this text at the end of its system prompt: a later system message was moved
    there."""
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
    """A text is missing here, and a later message of B holds all of it, where A's message did not."""
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
            detail = f"B has it in messages[{index}]"
            yield Found(edit, change.path, span.a_start, gone, b[span.b_start : span.b_end], detail)
            return


def _all_text(message: Mapping[str, Any]) -> str:
    return _joined(message.get("content")) or ""


def key_order(site: Site, change: Change) -> Iterator[Found]:
    """Equal objects whose keys are in a different order."""
    a, b = change.a, change.b
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a == b:
        index = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        keys = list(a)[index], list(b)[index]
        edit = Edit(site.b.with_value(change.path, a))
        yield Found(edit, change.path, index, *keys, f"key {index + 1} of {len(a)}")


def set_order(site: Site, change: Change) -> Iterator[Found]:
    """A list whose order has no meaning, in a different order. In `enum`, `anyOf` and `prefixItems` the order has
    one."""
    place = next((key for key in reversed(change.path) if isinstance(key, str)), "")
    if place not in SET_LIKE:
        return
    path = change.path[: change.path.index(place) + 1] if isinstance(change.path[-1], int) else change.path
    a, b = value_at(site.a.payload, path), value_at(site.b.payload, path)
    if isinstance(a, list) and isinstance(b, list) and a != b and sorted(map(str, a)) == sorted(map(str, b)):
        index = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        yield whole_value(site, Change(path, a, b), offset=index)


RULES: tuple[FieldRule, ...] = (
    FieldRule(
        Kind.key_order, Layer.payload, key_order,
        "Sort the keys of objects where they are written: the order of a map can differ from process to process.",
    ),
    FieldRule(
        Kind.set_order, Layer.payload, set_order,
        "Sort lists whose order has no meaning, such as `required`, but not `enum`, `anyOf` and `prefixItems`.",
    ),
    FieldRule(
        Kind.double_encoded, Layer.renderer, double_encoded,
        "Parse the arguments into an object before the template writes them as JSON.",
    ),
    FieldRule(Kind.reserialised, Layer.payload, reserialised, KEEP),
    FieldRule(
        Kind.null, Layer.payload, null,
        "Write an empty value always in the same way: as null, as an empty text, or not at all.",
    ),
    FieldRule(
        Kind.parts, Layer.payload, parts,
        "Send a text always in the same form: as a text or as a list of parts.",
    ),
    FieldRule(
        Kind.cache_control, Layer.payload, cache_control,
        "Remove the mark: this template writes it into the prompt.",
    ),
    FieldRule(
        Kind.ids, Layer.payload, ids,
        "Keep the ids that were sent first: this template writes them into the prompt.",
    ),
    FieldRule(Kind.trim, Layer.payload, trim, KEEP),
    FieldRule(
        Kind.normaliser, Layer.payload, normaliser,
        "Bring text into one Unicode form (NFC) where it enters your system: this tokenizer gives the forms different "
        "tokens.",
    ),
    FieldRule(
        Kind.moved_block, Layer.payload, moved_block,
        "Leave the text where it was first sent, and append a new one when it changes.",
    ),
    FieldRule(
        Kind.image_replaced, Layer.payload, image_replaced,
        "Keep an image that was sent, byte for byte, or send a reference to it from the beginning.",
    ),
    FieldRule(
        Kind.hoist, Layer.payload, hoist,
        "Leave a later system message in its place, or send it as a reminder in a user turn.",
    ),
)  # fmt: skip
