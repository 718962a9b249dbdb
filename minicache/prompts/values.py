"""Values by their path: ("messages", 0, "content"). A payload is a request in the one form of `bodies`, as it is
rendered:

{"messages": […], "tools": […] | None, "documents": … | None, "template_kwargs": {…}, "add_generation_prompt": bool}
{"prompt": "…"}                                                                    the raw text of a completion
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from minicache.text.origin import Path

NOT_SAID = {"cache_control", "id", "tool_call_id", "call_id"}


class Missing:
    """The type of `MISSING`, which stands for a path without a value. (null is a value.)"""

    def __repr__(self) -> str:
        return "(missing)"


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True)
class Change:
    """A value at `path` that differs between A and B; `MISSING` on a side without the path."""

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
    """A copy of `payload` with `value` at `path` (`MISSING`: without it). Values off the path are shared, not
    copied."""
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
    """Every value that differs, in A's order, at the deepest path at which both sides have the same shape."""
    if a is b or (type(a) is type(b) and a == b and list_of_keys(a) == list_of_keys(b)):
        return
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        inner = [*a, *(key for key in b if key not in a)]
        found = [c for key in inner for c in changes(a.get(key, MISSING), b.get(key, MISSING), (*path, key))]
        # Equal values under equal keys: then the keys of this object itself are in a different order.
        yield from found or [Change(path, a, b)]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from changes(left, right, (*path, index))
    else:
        yield Change(path, a, b)


def edited_at(before: Any, after: Any, path: Path = ()) -> Change | None:
    """The deepest value that one call of `with_value` has changed; it finds it by identity, as all others are shared.
    `None` if there is no single such value below the top."""
    if type(before) is type(after) and isinstance(before, dict | list) and len(before) == len(after):
        keys = range(len(before)) if isinstance(before, list) else list(before)
        if isinstance(before, list) or keys == list(after):
            apart = [key for key in keys if before[key] is not after[key]]
            if len(apart) == 1:
                return edited_at(before[apart[0]], after[apart[0]], (*path, apart[0]))
    return Change(path, before, after) if path else None


def list_of_keys(value: Any) -> Any:
    """The keys of `value` in order, at every depth: two equal objects can have different orders."""
    if isinstance(value, Mapping):
        return [(key, list_of_keys(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return [list_of_keys(inner) for inner in value]
    return None


def said(value: Any) -> Any:
    """A message without the keys that templates rarely write: cache marks and ids of calls."""
    if isinstance(value, Mapping):
        return {key: said(inner) for key, inner in value.items() if key not in NOT_SAID}
    if isinstance(value, list):
        return [said(inner) for inner in value]
    return value


def saying(value: Any) -> Any:
    """A message in a form that can be hashed: equal if and only if `said` of both is written in the same way."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{", *((key, saying(inner)) for key, inner in value.items() if key not in NOT_SAID)
    return ("[", *map(saying, value)) if isinstance(value, list) else (repr(value),)


def text_of_path(path: Path) -> str:
    """`messages[0].content`. A key that is not a plain name is quoted."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif key.isidentifier():
            text += f".{key}" if text else key
        else:
            text += f"[{key!r}]"
    return text
