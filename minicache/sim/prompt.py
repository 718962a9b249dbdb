"""Prompts as scenarios write them: a few parts, one after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minicache.sim.tokens import segment_tokens, text_tokens


@dataclass(frozen=True, slots=True)
class Text:
    """Text, one token a byte: `{ text = "You are a support bot." }`."""

    text: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids as they are: `{ tokens = [1, 2, 3] }`."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """`count` tokens of which only the name matters: `{ segment = "tools", tokens = 640 }`."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class OutputOf:
    """What an earlier request answered, without its first `drop` tokens: `{ output_of = "turn1", drop = 20 }`."""

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
    """Tokens of a part; `max_tokens` maps requests to the length of their answers."""
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
    """The tokens of a part; `outputs` holds the answers given so far."""
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
    """The tokens of a prompt, and which of them came from where."""
    tokens: list[int] = []
    runs = []
    for part in parts:
        start = len(tokens)
        tokens += part_tokens(part, seed, outputs)
        runs.append(Run(start, len(tokens), part_label(part)))
    return tokens, runs
