"""Options and arguments of every command with hostile values. The commands and options are those that Typer knows."""

import json
import os
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import typer

from tests.hostile.probe import Probe
from tests.hostile.values import NUMBERS, text

IMPORTS = ("minicache.engine.models.store", "minicache.bench.engine")
# What makes a command run with the least work, so that a hostile option reaches all that reads it.
GIVEN = {
    "sim run": ("two-equal-prompts",),
    "sim explain": ("two-equal-prompts",),
    "tui": ("two-equal-prompts", "--svg", "out.svg", "--size", "60x20"),
    "diff": ("a.json", "b.json"),
    "model pull": ("nobody/nothing",),
}
# What measures for seconds is stopped by this.
STOPPED = ("--model", "no-such-model"), ("--no-such-option",)
FILES = {
    "a.json": json.dumps({"messages": [{"role": "user", "content": "one two three"}]}).encode(),
    "b.json": json.dumps({"messages": [{"role": "user", "content": "one two four"}]}).encode(),
}
WRITES = ("out.svg", "out.html", "out.jsonl", "out.hash.jsonl", "out.radix.jsonl", "../home/store/")


def probe(random: Random) -> Probe:
    name, parameters = random.choice(commands())
    argv = [*name.split(), *(GIVEN.get(name, ()) if random.random() < 0.9 else ())]
    for _ in range(random.choice((1, 1, 2, 3))):
        if parameters and random.random() < 0.85:
            argv += _option(random, random.choice(parameters))
        else:
            argv.append(
                random.choice((text(random), "--", "-", "--=", "-hx", f"--{text(random)}", f"--svg={text(random)}"))
            )
    if name not in GIVEN and name not in ("sim list", "model list"):
        flags = [flag for parameter in parameters for flag in parameter.opts]
        argv += STOPPED[0] if STOPPED[0][0] in flags else STOPPED[1]
    arguments = tuple(map(as_argument, argv))
    named = tuple(each.removeprefix("--svg=") for each in arguments if each.startswith("--svg="))
    return Probe(arguments, FILES, writes=(*WRITES, *named))


def as_argument(value: str) -> str:
    """What a command line can hold: no null character, and half a surrogate pair only for a byte."""
    value = value.replace("\0", "")
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return os.fsdecode(value.encode("utf-8", "surrogatepass"))
    return value


@cache
def commands() -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """The name of every command, and its parameters."""
    from minicache.cli.main import app

    return tuple(_below(typer.main.get_command(app), ""))


def _below(group: Any, name: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    context = group.make_context("minicache", [], resilient_parsing=True)
    for each in (*group.list_commands(context), *getattr(group, "elsewhere", ())):
        command, path = group.get_command(context, each), f"{name} {each}".strip()
        if hasattr(command, "list_commands"):
            yield from _below(command, path)
        else:
            yield path, tuple(command.params)


def writes_a_file(name: str, parameter: Any) -> bool:
    """Whether this option names a file that the command writes."""
    return parameter.metavar == "FILE" and not (name == "tui" and "--events" in parameter.opts)


def _option(random: Random, parameter: Any) -> list[str]:
    flag = random.choice(parameter.opts)
    if not flag.startswith("-"):
        return [text(random)]
    if getattr(parameter, "is_flag", False):
        return [flag] if random.random() < 0.8 else [f"{flag}={text(random)}"]
    if parameter.metavar == "FILE":
        return [flag, {"--events": "out.jsonl", "--html": "out.html"}.get(flag, "out.svg")]
    numbers = (
        *map(str, NUMBERS),
        "1e-320",
        "1e308",
        "inf",
        "nan",
        "-inf",
        "0x10",
        "1_000",
        "٣",
        " 5",
        "9" * 5000,
        "+7",
    )
    return [flag, random.choice(numbers) if random.random() < 0.5 else text(random)]
