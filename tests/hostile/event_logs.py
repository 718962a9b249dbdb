"""Event logs that a stranger wrote: a recorded run in which fields, lines and the header were changed."""

import json
from collections.abc import Iterable
from functools import cache
from io import StringIO
from random import Random

from tests.hostile.probe import Probe
from tests.hostile.scenarios import command
from tests.hostile.values import NUMBERS, encoded, raw_json, spoil, spoil_bytes, text, to_json, value

RECORDED = ("two-equal-prompts", "last-token", "preempt-and-resume", "adapters-and-salts", "radix-split-and-prune")


def probe(random: Random) -> Probe:
    content = _log(random)
    argv, writes = command(random, "a.jsonl")
    return Probe(argv, {"a.jsonl": content}, writes=writes)


@cache
def recorded(name: str) -> tuple[str, ...]:
    """The lines of the log of a built-in scenario."""
    from minicache.core.event_log import LogWriter
    from minicache.sim.library import find_scenario
    from minicache.sim.timeline import Timeline

    timeline = Timeline.record(find_scenario(name))
    out = StringIO()
    writer = LogWriter(out, json.loads(json.dumps(timeline.settings)))
    for event in timeline.events:
        writer(event)
    return tuple(out.getvalue().splitlines())


def _log(random: Random) -> bytes:
    lines = list(recorded(random.choice(RECORDED)))
    if len(lines) > 60 and random.random() < 0.7:
        del lines[random.randrange(20, 60) :]
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        number = random.randrange(len(lines)) if random.random() < 0.9 else 0
        match random.randrange(14):
            case 0:
                lines.pop(number)
            case 1:
                lines.insert(number, lines[number])
            case 2:
                other = random.randrange(len(lines))
                lines[number], lines[other] = lines[other], lines[number]
            case 3:
                lines[number] = lines[number][: random.randrange(len(lines[number]) + 1)]
            case 4:
                lines[number] = raw_json(random).text
            case 5:
                lines = _renamed(random, lines)
            case _:
                lines[number] = _changed(random, lines[number])
        if not lines:
            break
        if random.random() < 0.7:
            lines = _renumbered(lines)
    content = encoded("\n".join(lines) + "\n")
    return spoil_bytes(random, content) if random.random() < 0.1 else content


def _changed(random: Random, line: str) -> str:
    """The event with one field of another value, of the same type or not."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(event, dict) or not event:
        return line
    key = random.choice([*event])
    old = event[key]
    if isinstance(old, int) and random.random() < 0.5:
        event[key] = random.choice((*NUMBERS, old + 1, max(old - 1, 0)))
    elif isinstance(old, list) and random.random() < 0.5:
        kept = old[: random.randrange(len(old) + 1)]
        event[key] = random.choice((kept, old + old, old[::-1], [*kept, random.choice(NUMBERS)], old * 1000))
    elif isinstance(old, str) and random.random() < 0.5:
        event[key] = text(random)
    elif random.random() < 0.5:
        event[key] = value(random)
    else:
        event = spoil(random, event, 1, (key,))
    return to_json(event)


def _renamed(random: Random, lines: Iterable[str]) -> list[str]:
    """Another id of a request, everywhere: such a log is whole, and its words go through every sentence."""
    new = json.dumps(text(random))[1:-1]
    old = random.choice(("user1", "user2", "base-1", "legal-1", "first", "a", "legal", "tenant-a"))
    return [line.replace(f'"{old}"', f'"{new}"') for line in lines]


def _renumbered(lines: Iterable[str]) -> list[str]:
    """With the numbers that the reader expects, so that it does not stop at them."""
    renumbered = []
    for number, line in enumerate(lines):
        if number and line.startswith('{"type"') and '"seq"' in line:
            head, _, rest = line.partition('"seq":')
            digits = len(rest) - len(rest.lstrip("0123456789 "))
            line = f'{head}"seq":{number - 1}{rest[digits:]}' if digits else line
        renumbered.append(line)
    return renumbered
