"""Tools: the same list in another order, another list, the same object written in another order."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from minicache.prompts.figures import common_prefix
from minicache.prompts.found import Found, whole_value, written
from minicache.prompts.site import Edit, Site
from minicache.prompts.values import MISSING, Change, list_of_keys, value_at
from minicache.text.origin import Path

SET_LIKE = {"required"}  # lists of a JSON schema whose order means nothing; `enum` and `anyOf` are not


def _lists(site: Site) -> tuple[list[Any], list[Any]] | None:
    """Both lists of tools, if the divergence is in tools and they are not written alike."""
    a, b = site.a.payload.get("tools") or [], site.b.payload.get("tools") or []
    if a == b and list_of_keys(a) == list_of_keys(b):
        return None
    return (a, b) if any(path[0] == "tools" for path in site.paths) or not (a and b) else None


def name_of(tool: Any) -> str:
    """A tool's name, wherever its API puts it; its JSON if it has none."""
    function = tool.get("function", tool) if isinstance(tool, Mapping) else tool
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else json.dumps(tool, sort_keys=True)


def tool_order(site: Site) -> Iterator[Found]:
    """The same tools by name, in another order. Repair: A's order, each tool as B writes it."""
    lists = _lists(site)
    if lists is None:
        return
    a, b = ([name_of(tool) for tool in tools] for tools in lists)
    if a != b and sorted(a) == sorted(b) and len(set(b)) == len(b):
        by_name = dict(zip(b, lists[1], strict=True))
        index = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        edit = Edit(site.b.with_value(("tools",), [by_name[name] for name in a]))
        permutation = [a.index(name) for name in b]
        path: Path = ("tools", index, "function", "name") if "function" in lists[0][index] else ("tools", index, "name")
        offset = common_prefix(a[index], b[index])
        yield Found(edit, path, offset, a[index], b[index], f"the order is {permutation} of the earlier one")


def tool_set_changed(site: Site) -> Iterator[Found]:
    """Tools came or went. Repair: A's tools."""
    lists = _lists(site)
    if lists is None:
        return
    a, b = ([name_of(tool) for tool in tools] for tools in lists)
    added, removed = [n for n in b if n not in a], [n for n in a if n not in b]
    if added or removed:
        index = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        detail = f"{len(added)} added, {len(removed)} removed"
        edit = Edit(site.b.with_value(("tools",), site.a.payload.get("tools")))
        gone = lists[0][index] if index < len(a) else MISSING
        come = lists[1][index] if index < len(b) else MISSING
        yield Found(edit, ("tools", index), 0, written(gone), written(come), detail)


def key_order(site: Site, change: Change) -> Iterator[Found]:
    """Equal objects, their keys in another order."""
    a, b = change.a, change.b
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a == b:
        index = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        keys = list(a)[index], list(b)[index]
        edit = Edit(site.b.with_value(change.path, a))
        yield Found(edit, change.path, index, *keys, f"key {index + 1} of {len(a)}")


def set_order(site: Site, change: Change) -> Iterator[Found]:
    """A list whose order means nothing, in another order. Not `enum`, `anyOf`, `prefixItems`: there it does."""
    place = next((key for key in reversed(change.path) if isinstance(key, str)), "")
    if place not in SET_LIKE:
        return
    path = change.path[: change.path.index(place) + 1] if isinstance(change.path[-1], int) else change.path
    a, b = value_at(site.a.payload, path), value_at(site.b.payload, path)
    if isinstance(a, list) and isinstance(b, list) and a != b and sorted(map(str, a)) == sorted(map(str, b)):
        index = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        yield whole_value(site, Change(path, a, b), offset=index)
