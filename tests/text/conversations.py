"""Random conversations, and conversations in which every character is unique."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["<b>'&", "日本", " x\n", "{{ 1 }}", 'say "hi"\t', "\\n", "e\N{COMBINING ACUTE ACCENT}", "ΑΣ ß İ", ""]
)
SCALAR = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | TEXT
JSON = st.recursive(SCALAR, lambda inner: st.dictionaries(TEXT, inner, max_size=3) | st.lists(inner, max_size=3))
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)


def calls(arguments: st.SearchStrategy) -> st.SearchStrategy[list[dict[str, Any]]]:
    function = st.fixed_dictionaries({"name": TEXT, "arguments": arguments})
    call = st.fixed_dictionaries({"function": function}, optional={"id": TEXT, "type": st.just("function")})
    return st.lists(call, max_size=2)


def messages(content: st.SearchStrategy = TEXT, arguments: st.SearchStrategy = OBJECT) -> st.SearchStrategy[list[Any]]:
    message = st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": content},
        optional={
            "name": TEXT | st.none(),
            "reasoning": TEXT | st.none(),
            "reasoning_content": TEXT | st.none(),
            "thinking": TEXT | st.none(),
            "tool_call_id": TEXT,
            "tool_calls": calls(arguments) | st.none(),
            "count": st.integers(-3, 3) | st.booleans() | st.floats(allow_nan=False) | st.none(),
        },
    )
    return st.lists(message, min_size=1, max_size=4)


FUNCTION = st.fixed_dictionaries({"name": TEXT}, optional={"description": TEXT, "parameters": OBJECT, "strict": JSON})
TOOLS = st.none() | st.lists(st.fixed_dictionaries({"type": st.just("function"), "function": FUNCTION}), max_size=2)


Places = dict[str, tuple[tuple[Any, ...], int]]
FREE = {"arguments", "parameters"}  # objects whose keys a client may choose


def marked(value: Any) -> tuple[Any, Places]:
    """A copy with a unique character after each character of every text and free key; and where each of these is.

    Roles and types stay unchanged, because templates and servers compare them.
    """
    places: Places = {}
    return _marked(value, (), places, map(chr, count(0xF0000))), places


def _marked(value: Any, path: tuple[Any, ...], places: Places, fresh: Iterator[str]) -> Any:
    if isinstance(value, str) and path[-1] not in ("role", "type"):
        text, marks = _spread(value, fresh)
        places.update((mark, (path, offset)) for mark, offset in marks.items())
        return text
    if isinstance(value, dict):
        members = {}
        for key, member in value.items():
            if FREE & set(path):
                key, marks = _spread(key, fresh)
                places.update((mark, ((*path, key), offset)) for mark, offset in marks.items())
            members[key] = _marked(member, (*path, key), places, fresh)
        return members
    if isinstance(value, list):
        return [_marked(item, (*path, index), places, fresh) for index, item in enumerate(value)]
    return value


def _spread(text: str, fresh: Iterator[str]) -> tuple[str, dict[str, int]]:
    marks = {next(fresh): 2 * index + 1 for index in range(len(text or "-"))}
    return "".join(character + mark for character, mark in zip(text or "-", marks, strict=True)), marks


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """The value at a path."""
    for step in path:
        value = value[step]
    return value
