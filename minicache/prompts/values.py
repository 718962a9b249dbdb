"""Values by their path: ("messages", 0, "content"). A payload is what is rendered, in the one form of `bodies`.

{"messages": […], "tools": […] | None, "documents": … | None, "template_kwargs": {…}, "add_generation_prompt": bool}
{"prompt": "…"}                                                                    a completion's raw text
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from minicache.text.origin import Path

NOT_SAID = {"cache_control", "id", "tool_call_id", "call_id"}


class Missing:
    """There is no value at a path (null is a value)."""

    def __repr__(self) -> str:
        return "(missing)"


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True)
class Change:
    """A value at `path` that differs between A and B; `MISSING` where there is none."""

    path: Path
    a: Any
    b: Any


def value_at(payload: Any, path: Path) -> Any:
    """The value at `path`, or `MISSING`."""
    for key in path:
        if isinstance(payload, Mapping):
            payload = payload.get(key, MISSING)
        elif isinstance(payload, list | tuple) and isinstance(key, int) and 0 <= key < len(payload):
            payload = payload[key]
        else:
            return MISSING
    return payload


def with_value(payload: Any, path: Path, value: Any) -> Any:
    """A copy in which `value` stands at `path` (`MISSING`: nothing does); what is not on the path is shared."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(payload, Mapping):
        copy = dict(payload)
        if not rest and value is MISSING:
            copy.pop(str(key), None)
        else:
            copy[str(key)] = with_value(copy.get(str(key), {}), rest, value)
        return copy
    items = list(payload)
    assert isinstance(key, int)
    if not rest and value is MISSING:
        del items[key]
    elif key == len(items):
        items.append(value)
    else:
        items[key] = with_value(items[key], rest, value)
    return items


def changes(a: Any, b: Any, path: Path = ()) -> Iterator[Change]:
    """Every value that differs, as deep down as both sides have the same shape, in A's order."""
    if a is b or (type(a) is type(b) and a == b and list_of_keys(a) == list_of_keys(b)):
        return
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        inner = [*a, *(key for key in b if key not in a)]
        found = [c for key in inner for c in changes(a.get(key, MISSING), b.get(key, MISSING), (*path, key))]
        # Equal values under equal keys: what differs is the order of this object's own keys.
        yield from found or [Change(path, a, b)]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from changes(left, right, (*path, index))
    else:
        yield Change(path, a, b)


def edited_at(before: Any, after: Any, path: Path = ()) -> Change | None:
    """The one value that `with_value` has changed in a payload, as deep down as one does: all others are shared."""
    if type(before) is type(after) and isinstance(before, dict | list) and len(before) == len(after):
        keys = range(len(before)) if isinstance(before, list) else list(before)
        if isinstance(before, list) or keys == list(after):
            apart = [key for key in keys if before[key] is not after[key]]
            if len(apart) == 1:
                return edited_at(before[apart[0]], after[apart[0]], (*path, apart[0]))
    return Change(path, before, after) if path else None


def list_of_keys(value: Any) -> Any:
    """The order of keys in `value`, all the way down: two equal objects can still be written differently."""
    if isinstance(value, Mapping):
        return [(key, list_of_keys(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return [list_of_keys(inner) for inner in value]
    return None


def said(value: Any) -> Any:
    """A message without what templates hardly ever print: marks for a cache, ids of calls."""
    if isinstance(value, Mapping):
        return {key: said(inner) for key, inner in value.items() if key not in NOT_SAID}
    if isinstance(value, list):
        return [said(inner) for inner in value]
    return value


def saying(value: Any) -> Any:
    """What is said, in a form that can be hashed: equal for what is written alike, and only for that."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{", *((key, saying(inner)) for key, inner in value.items() if key not in NOT_SAID)
    return ("[", *map(saying, value)) if isinstance(value, list) else (repr(value),)


def text_of_path(path: Path) -> str:
    """`messages[0].content`; keys that are no plain names are quoted."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif key.isidentifier():
            text += f".{key}" if text else key
        else:
            text += f"[{key!r}]"
    return text
