"""Logged requests that a stranger wrote: the bodies of four APIs and their responses, with values of other types, sizes
and depths, run through `minicache diff`."""

import copy
from random import Random
from typing import Any

from tests.hostile.escapes import BODY
from tests.hostile.probe import Probe
from tests.hostile.values import NUMBERS, Raw, encoded, nested, raw_json, spoil, spoil_bytes, text, to_json

PARTS = {**BODY, "messages": [{"role": "user", "content": [{"type": "text", "text": "Where?"}, {"type": "image_url"}]}]}
ANTHROPIC = {
    "model": "claude-x",
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Where?"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "There."}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {"d": "."}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}]},
    ],
    "tools": [{"name": "ls", "description": "lists", "input_schema": {"type": "object"}}],
}
RESPONSES = {
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Where?"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
    ],
    "tools": [{"type": "function", "name": "ls", "parameters": {"type": "object"}}],
}
COMPLETION = {"prompt": "Once upon a time there was a cache", "cache_salt": "s", "prompt_logprobs": 0}
IDS = {"prompt": [1, 2, 3, 4, 5, 6, 7, 8] * 5}
BODIES = (BODY, BODY, PARTS, ANTHROPIC, RESPONSES, COMPLETION, IDS)
RESPONSE = {
    "choices": [{"text": "ok"}],
    "usage": {"prompt_tokens_details": {"cached_tokens": 3}, "cache_read_input_tokens": 2},
    "meta_info": {"cached_tokens": 1},
}
TIMES: tuple[Any, ...] = (
    "2026-03-01T10:00:07Z",
    "2026-03-01T10:00:07",
    "2026-03-01T10:00:07+23:59",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2026-03-01",
    1_772_359_207,
    1_772_359_207_000,
    Raw("1e400"),
    Raw("9" * 400),
    Raw("NaN"),
    -1e18,
    *NUMBERS,
)


def probe(random: Random) -> Probe:
    first = _record(random, random.choice(BODIES))
    second = copy.deepcopy(first) if random.random() < 0.8 else _record(random, random.choice(BODIES))
    if random.random() < 0.8:
        second = spoil(random, second, random.choice((1, 1, 2, 4)))
    if random.random() < 0.3:
        first = spoil(random, first, 1)
    for record in (first, second):
        if random.random() < 0.3 and isinstance(record, dict) and "body" in record:
            record["time"] = random.choice(TIMES)
        if random.random() < 0.05:
            _grow(random, record)
    options = tuple(option for chosen in random.choices(OPTIONS, k=random.choice((0, 1, 2))) for option in chosen)
    lines = [encoded(to_json(record, ensure_ascii=random.random() < 0.5)) for record in (first, second)]
    if random.random() < 0.1:
        lines[1] = spoil_bytes(random, lines[1])
    if random.random() < 0.5:
        files = {"log.jsonl": b"\n".join(lines), "a.txt": b"generated"}
        return Probe(
            ("diff", "log.jsonl", "1", random.choice((*"222222", "r1", "0", "9" * 5000)), *options), files, WRITES
        )
    files = {"a.json": lines[0], "b.json": lines[1], "a.txt": b"\xff"}
    return Probe(("diff", "a.json", "b.json", *options), files, WRITES)


WRITES = ("out.html",)
OPTIONS = (
    ("--json",),
    ("--redact",),
    ("--html", "out.html"),
    ("--renderer", "vllm"),
    ("--renderer", "sglang"),
    ("--generated", "text of the answer"),
    ("--generated", "a.txt"),
    ("--block-size", "1"),
    ("--prefill-speed", "1e-320"),
    ("--price", "1e308", "--cached-price", "1e308"),
)


def _record(random: Random, body: dict[str, Any]) -> dict[str, Any]:
    if random.random() < 0.4:
        return copy.deepcopy(body)
    id = random.choice(("r1", "r2", "1", 1, None, text(random)))
    tokens = {"prompt_token_ids": [1, 2, 3], "output_ids": [4, 5]} if random.random() < 0.1 else {}
    return copy.deepcopy({"time": TIMES[0], "id": id, "body": body, "response": {**RESPONSE, **tokens}})


def _grow(random: Random, record: dict[str, Any]) -> None:
    """Thousands of something, or one thing of a great depth."""
    body = record.get("body", record)
    if not isinstance(body, dict):
        return
    key = random.choice(("messages", "tools", "input", "prompt", "chat_template_kwargs"))
    old = body.get(key)
    many = old * 2_000 if isinstance(old, list) else [3] * 20_000
    body[key] = random.choice((many, nested(random.choice((120, 600, 20_000))), raw_json(random), "x" * 300_000))
