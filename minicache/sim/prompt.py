"""Prompts as scenarios write them: a few parts, one after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minicache.sim.tokens import segment_tokens, text_tokens


@dataclass(frozen=True, slots=True)
class Text:
    """Text, one token per byte: `{ text = "You are a support bot." }`."""

    text: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids as they are: `{ tokens = [1, 2, 3] }`."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """`count` tokens that stand for a text of that name: `{ segment = "tools", tokens = 640 }`."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class OutputOf:
    """The answer of an earlier request, without its first `drop` tokens: `{ output_of = "turn1", drop = 20 }`."""

    request: str
    drop: int = 0


Part = Text | Tokens | Segment | OutputOf
Outputs = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Run:
    """Positions `[start, end)` of a prompt come from one part, which `label` names."""

    start: int
    end: int
    label: str


def part_length(part: Part, max_tokens: Mapping[str, int]) -> int:
    """How many tokens a part has; `max_tokens` maps request ids to the lengths of their answers."""
    match part:
        case Text():
            return len(part.text.encode())
        case Tokens():
            return len(part.tokens)
        case Segment():
            return part.count
        case OutputOf():
            return max(0, max_tokens[part.request] - part.drop)


def part_tokens(part: Part, seed: int, outputs: Outputs) -> list[int]:
    """The tokens of a part; `outputs` maps request ids to the answers so far."""
    match part:
        case Text():
            return text_tokens(part.text)
        case Tokens():
            return list(part.tokens)
        case Segment():
            return segment_tokens(seed, part.name, part.count)
        case OutputOf():
            return list(outputs[part.request][part.drop :])


def part_label(part: Part) -> str:
    match part:
        case Text():
            return "text"
        case Tokens():
            return "tokens"
        case Segment():
            return part.name
        case OutputOf():
            return f"answer of {part.request}"


def build(parts: Sequence[Part], seed: int, outputs: Outputs) -> tuple[list[int], list[Run]]:
    """The tokens of a prompt, and the part that each run of them came from."""
    tokens: list[int] = []
    runs = []
    for part in parts:
        start = len(tokens)
        tokens += part_tokens(part, seed, outputs)
        runs.append(Run(start, len(tokens), part_label(part)))
    return tokens, runs
