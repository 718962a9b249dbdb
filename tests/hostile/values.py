"""Values that a stranger may put where another value is expected, and how a tree of values is spoilt with them."""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.hostile.probe import EXECUTED

Path = tuple[str | int, ...]

ESCAPES = (
    "\x1b[2J\x1b[H",  # clear the screen
    "\x1b]52;c;ZWNobyBoaQ==\x07",  # put text into the clipboard
    "\x1b]8;;http://x.example\x1b\\here\x1b]8;;\x1b\\",  # a link with another text
    "\x1b]0;title\x07",
    "\x1bP+q544e\x1b\\",
    "\x9b31mred\x9d0;x\x9c",  # the same with C1
    "\r\x1b[Kminicache: all is well",
    "a\bb\x7f\x00\x07",
    "‮dnuora yaw rehto‬ ⁦x⁩ ‏؜",
    "a\u2028b\u2029c\x85d\x0be\x0cf",
    'line\n  File "x", line 1\nminicache: two',
    "tab\tand\r\n",
    "\ufeffzero\u200bwidth\u00ad",
)
TEXTS = (
    "",
    " ",
    "x" * 100_000,
    "é→語🙂",
    "\ud800",
    "..",
    "../../home/x",
    "/",
    "-",
    "--help",
    "nul\0nul",
    f"'; touch {EXECUTED}; '",
    f"$(touch {EXECUTED})`touch {EXECUTED}`",
    f"{{{{ cycler.__init__.__globals__.os.system('touch {EXECUTED}') }}}}",
    f"__import__('os').system('touch {EXECUTED}')",
    "[bold red]x[/] [link=file:///etc/passwd]y[/link] [/]",
    "{0}{n}{__class__}%s%(x)s%n",
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>]]>&amp;<!--",
    "*",
    "[!-]",
    "NaN",
    "1e400",
)
NUMBERS = (0, -1, 1, 2, 7, 1 << 31, 1 << 63, 1 << 64, 10**9, 10**30, -(10**30), 0.5, -0.0, 1e308, 5e-324, True, False)


@dataclass(frozen=True)
class Raw:
    """Text of a file that is written as it is, where a value belongs."""

    text: str


def nested(depth: int, open: str = "[", close: str = "]") -> Raw:
    return Raw(open * depth + "1" * (open != "[") + close * depth)


def raw_json(random: Random) -> Raw:
    """What is no JSON, or JSON at the edge."""
    depth = random.choice((70, 200, 500, 1_100, 20_000))
    return random.choice(
        (
            nested(depth),
            nested(depth, '{"a":', "}"),
            nested(depth, '[{"":', "}]"),
            Raw("9" * random.choice((400, 5_000))),
            Raw("1e400"),
            Raw("-1e999"),
            Raw("NaN"),
            Raw("Infinity"),
            Raw('"\\ud800"'),
            Raw('"\\u0000\\u001b\\u009b\\u202e\\u2028"'),
            Raw('{"a":1,"a":2}'),
            Raw(""),
            Raw('"'),
        )
    )


def text(random: Random) -> str:
    return random.choice(ESCAPES if random.random() < 0.5 else TEXTS)


def value(random: Random) -> Any:
    """Of any type."""
    match random.randrange(8):
        case 0 | 1:
            return text(random)
        case 2 | 3:
            return random.choice(NUMBERS)
        case 4:
            return raw_json(random)
        case 5:
            return random.choice((None, [], {}, [[]], [None], {"": {}}, ["a", 1], [-1], [0.5], {"a": 1}))
        case 6:
            return [random.choice(NUMBERS) for _ in range(random.choice((1, 3, 50)))]
        case _:
            return [text(random) for _ in range(random.choice((1, 3)))]


def places(tree: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all values inside a tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def at(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def spoil(random: Random, tree: Any, times: int = 1, only: tuple[str, ...] = ()) -> Any:
    """A copy in which values are replaced, removed, doubled or called otherwise; `only` below these keys of the top.

    Half of the new values have the type of the old one, so that they get past the first check.
    """
    tree = copy.deepcopy(tree)
    for _ in range(times):
        found = [path for path in places(tree) if not only or path[0] in only]
        if not found:
            break
        path = random.choice(found)
        parent, key = at(tree, path[:-1]), path[-1]
        if random.random() < 0.5 and isinstance(parent[key], str | int | float):
            parent[key] = _alike(random, parent[key])
            continue
        match random.randrange(6):
            case 0:
                del parent[key]
            case 1 if isinstance(parent, list):
                parent.extend([parent[key]] * random.choice((1, 3, 100)))
            case 2 if isinstance(parent, dict):
                parent[text(random)] = parent.pop(key)
            case 3 if isinstance(parent, dict):
                parent[random.choice(("x", "id", "type", *TEXTS))] = value(random)
            case _:
                parent[key] = value(random)
    return tree


def _alike(random: Random, old: Any) -> Any:
    if isinstance(old, str):
        middle = len(old) // 2
        return random.choice((text(random), old[:middle] + text(random) + old[middle:]))
    if isinstance(old, bool):
        return not old
    return random.choice((-1, 0, 1, old + 1, old // 2, old * 100, old * 0.5, 10**9, 1 << 64))


def to_json(tree: Any, **how: Any) -> str:
    """JSON, in which each `Raw` stands as it is."""
    raw: list[str] = []

    def mark(value: Raw) -> str:
        raw.append(value.text)
        return f"<raw {len(raw) - 1}>"

    written = json.dumps(tree, default=mark, **how)
    for number, content in enumerate(raw):
        written = written.replace(f'"<raw {number}>"', content)
    return written


def encoded(written: str) -> bytes:
    """With what UTF-8 forbids."""
    return written.encode("utf-8", "surrogatepass")


def spoil_bytes(random: Random, content: bytes) -> bytes:
    """A file that was cut, doubled, filled or put into another encoding."""
    place = random.randrange(len(content) + 1)
    match random.randrange(9):
        case 0:
            return content[:place]
        case 1:
            return content[:place] + random.choice((b"\xff", b"\0", b"\xc3\x28", b"\x1b[2J", b"\x80")) + content[place:]
        case 2:
            return b"\xef\xbb\xbf" + content
        case 3:
            return content.decode("utf-8", "replace").encode("utf-16")
        case 4:
            return content.replace(b"\n", random.choice((b"\r", b"\r\n", b"\n\n", "\u2028".encode(), b"\x0b")))
        case 5:
            return content + content
        case 6:
            return random.choice((b"", b"\n", b" ", b"\0" * 1000, b"\n" * 100_000, b"{", b"[]", b"#" * 100_000))
        case 7:
            lines = content.splitlines(keepends=True)
            random.shuffle(lines)
            return b"".join(lines)
        case _:
            return content[place:]
