"""The help in rows of styled text: what a panel shows, the legend of signs, words, the keys as they are now.

A panel's own words are its `HELP`: paragraphs, `# headings` and `* items`, with `**stress**` and code in backticks;
`{forward}` stands for the key of an action.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from textual.content import Content

from minicache.sim.phrases import GLOSSARY

from .keys import GROUPS
from .model.strip import GLYPHS, KINDS, WORDS
from .panels.line import ascii_only, printable, width_of, wrapped
from .signs import ASCII, MEANINGS, NEWS, UNICODE, Sign

Row = list[tuple[str, str]]  # runs of text with their styles
Keys = Mapping[str, Sequence[str]]  # action -> its keys as they are typed

_INLINE = re.compile(r"\*\*(.+?)\*\*|`(.+?)`")
READABLE = 100  # columns of a paragraph
SHARERS = 3  # in the legend
NEWS_AND_ORIGIN = (
    "In the pool, the chain and the tree `◆ ▲ ▴ ✕ !` are news of this step, and go with it. Below the tokens of a "
    "request `◆ ▲ ▴` stay: there they say how each block got its KV."
)
OTHER_SIGNS = (
    ("▼", "evicted", "the first token that differs: from there on nothing can be found"),
    ("[ ]", "focus", "around what belongs to whatever is selected, else what a lookup has just found"),
    ("■", "preempted", "on the event strip: a breakpoint stops here"),
    ("▶", "text", "a request runs"),
    ("▷", "quiet", "it waits"),
    ("!", "preempted", "it was preempted and waits again"),
    ("✓", "quiet", "it is done"),
    ("†", "evicted", "it was refused or aborted"),
)


def about(help: str, keys: Keys, width: int) -> Iterator[Row]:
    """What a panel says of itself."""
    first = {action: names[0] for action, names in keys.items()}
    width = min(width, READABLE)
    for paragraph in re.split(r"\n\s*\n|\n(?=\* )", help.format_map(first).strip()):
        if paragraph.startswith("# "):
            yield from heading(paragraph[2:])
        elif paragraph.startswith("* "):
            yield from beside([("•", "$mc-quiet")], " ".join(paragraph[2:].split()), 2, width)
        else:
            yield []
            yield from _flow(" ".join(paragraph.split()), width)


def legend(ascii: bool, width: int) -> Iterator[Row]:
    """Every sign in its colour, and what it means."""
    glyphs = ASCII if ascii else UNICODE
    yield from heading("Signs of blocks")
    for sign in Sign:
        colour = "$mc-quiet" if sign is Sign.NULL else f"$mc-{sign}"
        style = f"bold {colour} on {colour}-tint" if sign in NEWS else colour
        yield from beside(
            [(glyphs.mark(sign, SHARERS), style)], MEANINGS[sign].replace("several", str(SHARERS)), 4, width
        )
    yield []
    yield from _flow(NEWS_AND_ORIGIN, min(width, READABLE))
    yield from heading("Signs on the event strip: the rarest of a stretch")
    for glyph, kind, words in zip(GLYPHS, KINDS, WORDS, strict=True):
        yield from beside([(glyph, f"$mc-{kind}")], words, 4, width)
    yield from heading("Other signs")
    for glyph, kind, words in OTHER_SIGNS:
        yield from beside([(glyph, f"$mc-{kind}")], words, 4, width)


def glossary(width: int) -> Iterator[Row]:
    """The words of the field that the sentences use."""
    yield from heading("Words")
    column = max(map(width_of, GLOSSARY)) + 2
    for word, meaning in GLOSSARY.items():
        yield from beside([(word, "bold $mc-text")], meaning, column, width)


def key_table(keys: Keys, fixed: Sequence[tuple[str, str]], width: int) -> Iterator[Row]:
    """All keys by group."""
    groups = [(name, [(" ".join(keys[key.action]), key.what) for key in group]) for name, group in GROUPS.items()]
    groups.append(("In the panels, and everywhere", list(fixed)))
    column = max(width_of(names) for _, group in groups for names, _ in group) + 2
    for name, group in groups:
        yield from heading(name)
        for names, what in group:
            yield from beside([(names, "bold $mc-focus")], what, column, width)


def heading(text: str) -> Iterator[Row]:
    yield []
    yield [(text, "bold underline $mc-text")]


def beside(head: Row, text: str, column: int, width: int) -> Iterator[Row]:
    """`head`, and from `column` on the text in as many rows as it takes."""
    room = max(8, min(width, READABLE) - column)
    for row in _flow(text, room):
        taken = sum(width_of(part) for part, _ in head)
        yield [*head, (" " * (column - taken), ""), *row]
        head = []


def _flow(text: str, width: int) -> Iterator[Row]:
    """Broken between words; `**stress**` and code have their styles."""
    styles: list[str] = []
    plain = ""
    end = 0
    for found in _INLINE.finditer(text):
        for part, style in ((text[end : found.start()], "$mc-text"), (found[1] or found[2], "bold $mc-text")):
            plain += part
            styles += [style for char in part if not char.isspace()]
        end = found.end()
    plain += text[end:]
    styles += ["$mc-text" for char in text[end:] if not char.isspace()]
    left = iter(styles)
    for line in wrapped(plain, width):
        yield [(char, "$mc-text" if char == " " else next(left)) for char in line]


def sheet(rows: Sequence[Row], ascii: bool) -> Content:
    """The rows as one text."""
    clean = ascii_only if ascii else str
    lines = [Content.assemble(*((clean(printable(text)), style) for text, style in row)) for row in rows]
    return Content("\n").join(lines)
