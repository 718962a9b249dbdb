"""A prompt on one line that a person can edit: its parts with bars between, what is not text in brackets.

    It is 14:03:22. You are a support bot. | [rules and tools 640] | [answer of r1] | Where is my parcel?

To move a timestamp behind the tools is to move one piece of the line.
"""

import re
from collections.abc import Sequence

from minicache.core.errors import MinicacheError
from minicache.sim.prompt import OutputOf, Part, Segment, Text, Tokens

BAR = " | "
_ANSWER = re.compile(r"\[answer of (\S+?)(?: without (\d+))?\]")
_TOKENS = re.compile(r"\[tokens ((?:\d+ ?)+)\]")
_SEGMENT = re.compile(r"\[(.+) (\d+)\]")


class BadPrompt(MinicacheError):
    """A line that is no prompt."""


def write_prompt(parts: Sequence[Part]) -> str:
    """The parts on one line; line ends in a text become `\\n`."""
    return BAR.join(map(_write, parts))


def _write(part: Part) -> str:
    match part:
        case Text(text):
            return text.replace("\\", "\\\\").replace("\n", "\\n").replace("|", "\\|")
        case Segment(name, count):
            return f"[{name} {count}]"
        case OutputOf(request, drop):
            return f"[answer of {request} without {drop}]" if drop else f"[answer of {request}]"
        case Tokens(tokens):
            return f"[tokens {' '.join(map(str, tokens))}]"


def read_prompt(line: str) -> tuple[Part, ...]:
    """The parts of a line. Raises `BadPrompt` if there is none."""
    parts = tuple(_read(piece) for piece in re.split(r"(?<!\\)\s?\|\s?", line) if piece)
    if not parts:
        raise BadPrompt("the prompt is empty: write some text, or a segment such as [tools 64]")
    return parts


def _read(piece: str) -> Part:
    bare = piece.strip()
    if match := _ANSWER.fullmatch(bare):
        return OutputOf(match[1], int(match[2] or 0))
    if match := _TOKENS.fullmatch(bare):
        return Tokens(tuple(map(int, match[1].split())))
    if match := _SEGMENT.fullmatch(bare):
        if int(match[2]) == 0:
            raise BadPrompt(f"{bare}: a segment needs at least one token")
        return Segment(match[1], int(match[2]))
    return Text(re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], piece))
