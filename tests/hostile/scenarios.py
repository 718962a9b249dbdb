"""Scenarios (TOML) and `--set` that a stranger wrote: built-in scenarios with wrong types, sizes, depths and texts."""

import json
import tomllib
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any

from tests.hostile.probe import Probe
from tests.hostile.values import NUMBERS, Raw, encoded, nested, spoil, spoil_bytes, text

FOLDER = files("minicache.sim") / "scenarios"
SMALL = ("two-equal-prompts", "last-token", "adapters-and-salts", "chunked-prefill", "thrashing", "multi-turn")
SETTINGS = ("cache.num_blocks", "block_size", "scheduler.watermark", "seed", "cost.model", "cache.radix.strategy")


def probe(random: Random) -> Probe:
    content = _file(random)
    name = random.choice(("a.toml", "a.toml", "./-a.toml", "d/é 'a;b.toml"))
    argv, writes = command(random, name)
    return Probe((*argv, *_settings(random)), {name: content}, writes=writes)


def command(random: Random, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """One of the commands that read a scenario or a log, and what it writes."""
    cache = random.choice(((), (), ("--cache", "radix"), ("--cache", "both")))
    if name.endswith(".jsonl"):
        cache = ()
    match random.randrange(12):
        case 0 | 1 | 2:
            return ("sim", "run", name, *cache), ()
        case 3 | 4:
            return ("sim", "run", name, "--plain", *cache), ()
        case 5:
            return ("sim", "run", name, "--json", *cache), ()
        case 6:
            return ("sim", "run", name, "--plain", "--redact", *cache), ()
        case 7:
            return ("sim", "run", name, "--json", "--redact", *cache), ()
        case 8:
            names = ("out.jsonl", "out.hash.jsonl", "out.radix.jsonl")
            return ("sim", "run", name, "--events", "out.jsonl", *cache), names
        case 9:
            subject = random.choice((("--event", "3"), ("--block", "1"), ("--request", "user1"), ("--event", "9")))
            return ("sim", "explain", name, *subject, *random.choice(((), ("--json",), ("--at", "5")))), ()
        case 10:
            return ("sim", "explain", name, "--request", text(random)), ()
        case _:
            source = ("--events", name) if name.endswith(".jsonl") else (name, *cache)
            return ("tui", *source, "--svg", "out.svg", "--size", "80x24", "--event", "9"), ("out.svg",)


@cache
def built_in(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def _file(random: Random) -> bytes:
    document = built_in(random.choice(SMALL))
    document.pop("expect", None)
    match random.randrange(10):
        case 0:
            return spoil_bytes(random, encoded(to_toml(document)))
        case 1:
            depth = random.choice((100, 600, 20_000))
            more = random.choice(
                (
                    f"\n[{'.'.join('a' * depth)}]\n",
                    f"\n{'.'.join('a' * depth)} = 1\n",
                    f"\nx = {nested(depth).text}\n",
                    f"\nx = {nested(depth, '{a=', '}').text}\n",
                    f"\nx = {nested(depth, '[{a=', '}]').text}\n",
                )
            )
            return encoded(more + to_toml(document)) if random.random() < 0.5 else encoded(to_toml(document) + more)
        case 2:
            request = random.choice(document["request"])
            key = random.choice(("count", "every", "at", "max_tokens", "step", "priority", "prompt_logprobs"))
            few = (
                50,
                3_000,
                1e300,
                Raw("inf"),
                Raw("nan"),
                Raw("9" * 400),
                Raw("9" * 5000),
                Raw("2026-01-01T00:00:00Z"),
            )
            changed = {**request, "id": "r{n}", key: random.choice((*NUMBERS, *few))}
            return encoded(to_toml({**document, "request": [changed]}))
        case _:
            return encoded(to_toml(spoil(random, document, random.choice((1, 1, 2, 4)))))


def _settings(random: Random) -> tuple[str, ...]:
    if random.random() < 0.85:
        return ()
    value = random.choice(
        (
            *map(str, NUMBERS),
            text(random),
            nested(random.choice((100, 20_000))).text,
            "nan",
            "inf",
            "9" * 5000,
            "'",
            "{a=1}",
        )
    )
    return ("--set", f"{random.choice((*SETTINGS, text(random)))}={value}".replace("\0", ""))


def to_toml(document: dict[str, Any]) -> str:
    """The values first, then the tables, as they must stand in TOML."""
    lines, tables = [], []
    for key, value in document.items():
        if isinstance(value, dict) and value:
            tables.append(f"\n[{_key(key)}]\n" + _pairs(value))
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            tables.extend(f"\n[[{_key(key)}]]\n" + _pairs(item) for item in value)
        else:
            lines.append(f"{_key(key)} = {_inline(value)}\n")
    return "".join(lines + tables)


def _pairs(table: dict[str, Any]) -> str:
    return "".join(f"{_key(key)} = {_inline(value)}\n" for key, value in table.items())


def _key(key: str) -> str:
    return key if key.isidentifier() and key.isascii() else _text(key)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _inline(value: Any) -> str:
    match value:
        case Raw():
            return value.text or "''"
        case str():
            return _text(value)
        case bool():
            return str(value).lower()
        case None:
            return "[]"
        case dict():
            return "{" + ", ".join(f"{_key(key)} = {_inline(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_inline, value)) + "]"
        case _:
            return repr(value)
