"""Text that a terminal can show and a stream can encode."""

import codecs
import json
import re
import shlex
from collections.abc import Callable

# Characters of our reports and screens, and what stands for them in an encoding that lacks them.
IN_ASCII = {
    "█": "#", "■": "#", "▒": "-", "░": ".", "╳": "X", "✓": "+", "✗": "x", "×": "x", "·": "-", "–": "-", "—": "-",
    "−": "-", "µ": "u", "μ": "u", "≤": "<=", "≥": ">=", "→": "->", "←": "<-", "…": "...", "“": '"', "”": '"', "‘": "'",
    "’": "'",
}  # fmt: skip
READABLE = "minicache.readable"  # as `errors` of a stream: never raises


def replace_unprintable(text: str, stand_in: Callable[[str], str]) -> str:
    """The text with `stand_in(char)` for each character that a terminal may obey or that nobody sees.

    These are controls (C0, DEL, C1), controls of the direction of writing and other characters without a shape, lone
    surrogates, separators of lines and paragraphs, spaces except for the common one, and code points without a meaning.
    Letters of all scripts, their accents, wide characters and variation selectors stay.
    """
    if text.isprintable():
        return text
    return _NOT_ASCII.sub(lambda found: found[0] if found[0].isprintable() else stand_in(found[0]), text)


_NOT_ASCII = re.compile(r"[^ -~]")  # all others are printable


def printable(text: str, keep: str = "") -> str:
    """The text with each unprintable character as its escape (`\\n`, `\\x1b`), except for the characters of `keep`.

    A terminal then obeys nothing in the text, and lone surrogates can be encoded. It is one line, unless "\\n" is kept.
    """
    return replace_unprintable(text, lambda char: char if char in keep else repr(char)[1:-1])


def printable_json(text: str) -> str:
    """JSON with each unprintable character of its texts escaped (`\\u009b`): the same value, on the same lines."""
    return replace_unprintable(text, lambda char: char if char == "\n" else json.dumps(char)[1:-1])


def without_middle(text: str, limit: int) -> str:
    """The text, or its beginning and end if it has more than `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit // 2]} […] {text[-limit // 2 :]}"


def shell_words(*words: str) -> str:
    """A command to paste into a shell: each word is one argument, and printable. The form of a word with an
    unprintable character, `$'\\x1b'`, is read by bash and zsh; every other shell reads a harmless text."""
    return " ".join(map(_shell_word, words))


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(c if c.isprintable() and c not in "'\\!" else _shell_escape(ord(c)) for c in word) + "'"


def _shell_escape(code: int) -> str:
    if code < 0x80 or 0xDC80 <= code < 0xDD00:  # the latter: a byte of an argument that is no UTF-8
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _readable(error: UnicodeError) -> tuple[str, int]:
    """Replaces what an encoding lacks: by a similar ASCII character, else by the escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    escapes = (IN_ASCII.get(char) or char.encode("ascii", "backslashreplace").decode("ascii") for char in missing)
    return "".join(escapes), error.end


codecs.register_error(READABLE, _readable)
