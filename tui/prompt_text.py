"""A prompt on one line that a person can edit: its parts with bars between, what is not text in brackets.

    It is 14:03:22. You are a support bot. | [rules and tools 640] | [answer of r1] | Where is my parcel?

To move a timestamp behind the tools is to move one piece of the line. A bar takes one space on either side; all other
spaces belong to a text. A backslash makes the character behind it a plain one, `\\n` is the end of a line, and
`\\u{1b}` stands for a character that cannot be shown. `read_prompt(write_prompt(parts)) == parts`.
"""

import re
from collections.abc import Sequence

from minicache.core.errors import MinicacheError
from minicache.sim.prompt import OutputOf, Part, Segment, Text, Tokens

HELP = """\
A **prompt** is text, or parts with `|` between them. A `|` takes one space on either side with it, if there is one: all
other spaces belong to the text. `[tools 64]` is a part that has a name and so many tokens, `[answer of r1]` what a
request generated. A backslash makes the character behind it a plain one: `\\|` is a `|` of your text, `\\[` a bracket,
`\\\\` a backslash. `\\n` is the end of a line.
"""
BAR = " | "
MOST_DIGITS = 20  # of a number in brackets: a token is below 2**64
_ATOM = re.compile(r"\\u\{([0-9a-fA-F]{1,8})\}|\\(.)|( ?\| ?)|.", re.DOTALL)  # code point, plain character, bar
_ANSWER = re.compile(r"\[answer of (\S+?)(?: without (\d+))?\]")
_TOKENS = re.compile(r"\[tokens ((?:\d+ ?)+)\]")
_SEGMENT = re.compile(r"\[(.+) (\d+)\]")


class BadPrompt(MinicacheError):
    """A line that is no prompt."""


def write_prompt(parts: Sequence[Part]) -> str:
    """The parts on one line, of printable characters only."""
    line = BAR.join(map(_write, parts))
    return line[:-1] + "\\u{20}" if line.endswith(" ") else line  # at the end of a line nobody sees a space


def _write(part: Part) -> str:
    match part:
        case Text(text):
            written = _escape(text)
            return written if _is_text(written) else written.replace("[", "\\[", 1)
        case Segment(name, count):
            written = _escape(name)
            taken = _ANSWER.fullmatch(f"[{written} {count}]") or _TOKENS.fullmatch(f"[{written} {count}]")
            return f"[\\{written} {count}]" if taken else f"[{written} {count}]"
        case OutputOf(request, drop):
            request = _escape(request).replace(" ", "\\u{20}")
            return f"[answer of {request} without {drop}]" if drop else f"[answer of {request}]"
        case Tokens(tokens):
            return f"[tokens {' '.join(map(str, tokens))}]"


def _is_text(piece: str) -> bool:
    """Whether it is not read as a part in brackets."""
    return not any(form.fullmatch(piece.strip()) for form in (_ANSWER, _TOKENS, _SEGMENT))


def _escape(text: str) -> str:
    return "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    if char == "\n":
        return "\\n"
    if char in "\\|":
        return f"\\{char}"
    return char if char.isprintable() else f"\\u{{{ord(char):x}}}"


def read_prompt(line: str) -> tuple[Part, ...]:
    """The parts of a line. Raises `BadPrompt` if there is none."""
    pieces = [""]
    for atom in _ATOM.finditer(line):
        if atom[3]:
            pieces.append("")
        else:
            pieces[-1] += atom[0]
    parts = tuple(_read(piece) for piece in pieces if piece)
    if not parts:
        raise BadPrompt("the prompt is empty: write some text, or a segment such as [tools 64]")
    return parts


def _read(piece: str) -> Part:
    bare = piece.strip()
    if match := _ANSWER.fullmatch(bare):
        return OutputOf(_plain(match[1]), _number(match[2] or "0", bare))
    if match := _TOKENS.fullmatch(bare):
        return Tokens(tuple(_number(token, bare) for token in match[1].split()))
    if match := _SEGMENT.fullmatch(bare):
        count = _number(match[2], bare)
        if count == 0:
            raise BadPrompt(f"{bare}: a segment needs at least one token")
        return Segment(_plain(match[1]), count)
    return Text(_plain(piece))


def _number(digits: str, piece: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise BadPrompt(f"{piece[:24]}…: a number of {len(digits):,} digits is too large")
    return int(digits)


def _plain(written: str) -> str:
    return _ATOM.sub(_character, written)


def _character(atom: re.Match[str]) -> str:
    if atom[1]:
        code = int(atom[1], 16)
        if code > 0x10FFFF:
            raise BadPrompt(f"{atom[0]} is no character: the last one is \\u{{10ffff}}")
        if 0xD800 <= code < 0xE000:
            raise BadPrompt(f"{atom[0]} is no character: it is half of a pair of surrogates")
        return chr(code)
    if atom[2]:
        return "\n" if atom[2] == "n" else atom[2]
    return atom[0]
