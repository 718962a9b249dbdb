"""Text that a terminal can show and a stream can encode."""

import codecs

# Characters of our reports and screens, and what stands for them in an encoding that lacks them.
IN_ASCII = {
    "█": "#", "■": "#", "▒": "-", "░": ".", "╳": "X", "✓": "+", "✗": "x", "×": "x", "·": "-", "–": "-", "—": "-",
    "−": "-", "µ": "u", "μ": "u", "≤": "<=", "≥": ">=", "→": "->", "←": "<-", "…": "...", "“": '"', "”": '"', "‘": "'",
    "’": "'",
}  # fmt: skip
READABLE = "minicache.readable"  # as `errors` of a stream: never raises


def printable(text: str, keep: str = "") -> str:
    """The text with each unprintable character as its escape (`\\n`, `\\x1b`), except for the characters of `keep`.

    A terminal then obeys nothing in the text, and lone surrogates can be encoded.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else repr(char)[1:-1] for char in text)


def _readable(error: UnicodeError) -> tuple[str, int]:
    """Replaces what an encoding lacks: by a similar ASCII character, else by the escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    escapes = (IN_ASCII.get(char) or char.encode("ascii", "backslashreplace").decode("ascii") for char in missing)
    return "".join(escapes), error.end


codecs.register_error(READABLE, _readable)
