"""JSON that a stranger wrote: every reason why it cannot be read is a `ValueError` whose words a person understands."""

import json
from typing import Any

DEEPEST = 128  # levels of lists and objects; many functions of ours call themselves once or more for each level


def read_json(text: str | bytes) -> Any:
    """The value, as `json.loads` reads it (the last of two equal keys; NaN and Infinity as numbers).

    Raises `ValueError` if the text is not JSON, nested more than `DEEPEST` levels deep, or has a number of more digits
    than Python converts.
    """
    too_deep = ValueError(f"it is nested more than {DEEPEST} levels deep")
    try:
        value = json.loads(text)
    except RecursionError:
        raise too_deep from None
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not text in UTF-8: byte {error.start} is {error.object[error.start]:#04x}") from None
    except json.JSONDecodeError:
        raise
    except ValueError:  # the limit of int()
        raise ValueError("a number has more digits than can be converted") from None
    opening = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    if sum(map(text.count, opening)) > DEEPEST and is_nested(value):  # type: ignore[arg-type]
        raise too_deep
    return value


def num_values(value: Any) -> int:
    """The number of values in a value that `read_json` returned, itself and each list and object included."""
    level, found = [value], 0
    while level:
        found += len(level)
        level = [
            inner
            for outer in level
            if type(outer) is dict or type(outer) is list
            for inner in (outer.values() if type(outer) is dict else outer)
        ]
    return found


def is_nested(value: Any, deepest: int = DEEPEST) -> bool:
    """Whether lists and dictionaries are inside each other on more than `deepest` levels."""
    level = [value] if isinstance(value, (list, dict)) else []
    for _ in range(deepest):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
    return bool(level)
