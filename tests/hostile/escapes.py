"""Valid inputs of every kind, with escape sequences and controls of direction in their free texts."""

import copy
import json
from random import Random
from typing import Any

from tests.hostile.arguments import as_argument
from tests.hostile.event_logs import recorded
from tests.hostile.probe import Probe
from tests.hostile.scenarios import SMALL, built_in, command, to_toml
from tests.hostile.values import ESCAPES, at, encoded, places

# Keys whose values are a choice or are compared with others, so that another text would end the run early.
CHOICES = (
    "kind",
    "strategy",
    "group",
    "profile",
    "role",
    "type",
    "end",
    "reason",
    "why",
    "object",
    "cache",
    "model",
    "time",
)


def probe(random: Random) -> Probe:
    return random.choice((_scenario, _event_log, _requests, _requests, _template, _named))(random)


def escaped(random: Random, tree: Any, rate: float = 0.5) -> Any:
    """The tree with an escape in many of its texts; the same text gets the same everywhere."""
    tree, words = copy.deepcopy(tree), {}
    for path in list(places(tree)):
        value = at(tree, path)
        if isinstance(value, str) and path[-1] not in CHOICES:
            if value not in words:
                place = random.randrange(len(value) + 1)
                more = random.choice(ESCAPES) if random.random() < rate else ""
                words[value] = value[:place] + more + value[place:]
            at(tree, path[:-1])[path[-1]] = words[value]
    return tree


def _scenario(random: Random) -> Probe:
    document = built_in(random.choice(SMALL))
    document = escaped(random, {key: value for key, value in document.items() if key != "expect"})
    argv, writes = command(random, "a.toml")
    if "--request" in argv:
        argv = (*argv[:4], as_argument(random.choice(document["request"])["id"].replace("{n}", "1")))
    return Probe(argv, {"a.toml": encoded(to_toml(document))}, writes=writes)


def _event_log(random: Random) -> Probe:
    lines = [json.loads(line) for line in recorded(random.choice(("two-equal-prompts", "adapters-and-salts")))]
    kept = [{key: line.pop(key) for key in ("type", "hashes", "parent") if key in line} for line in lines]
    changed = [{**line, **keys} for line, keys in zip(escaped(random, lines), kept, strict=True)]
    argv, writes = command(random, "a.jsonl")
    return Probe(argv, {"a.jsonl": encoded("\n".join(map(json.dumps, changed)))}, writes=writes)


TOOL = {
    "name": "search",
    "description": "finds",
    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
}
BODY = {
    "model": "m",
    "cache_salt": "salt",
    "chat_template_kwargs": {"a_flag": "x", "thinking": True},
    "messages": [
        {"role": "system", "content": "You are helpful. It is 2026-01-01 10:00:00."},
        {"role": "user", "content": "Where?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}],
        },
        {"role": "tool", "content": "There.", "tool_call_id": "c1"},
        {"role": "user", "content": "And when?"},
    ],
    "tools": [{"type": "function", "function": TOOL}],
}


def _requests(random: Random) -> Probe:
    first = {"time": "2026-03-01T10:00:07Z", "id": "r1", "body": BODY, "response": {"choices": [{"text": "ok"}]}}
    second = {**escaped(random, first, 0.3), "id": random.choice(("r2", *ESCAPES))}
    log = [escaped(random, first), second]
    named = ("1", as_argument(random.choice(("2", second["id"], random.choice(ESCAPES)))))
    options = random.choice(((), ("--json",), ("--redact",), ("--json", "--redact"), ("--html", "out.html")))
    renderer = ("--renderer", random.choice(("transformers", "vllm", "sglang")))
    content = encoded("\n".join(json.dumps(record, ensure_ascii=random.random() < 0.5) for record in log))
    return Probe(("diff", "log.jsonl", *named, *options, *renderer), {"log.jsonl": content}, writes=("out.html",))


def _template(random: Random) -> Probe:
    escape = random.choice(ESCAPES)
    source = random.choice(
        (
            f"{escape}{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}",
            f"{{{{ raise_exception('{escape}'.replace('a', 'b')) }}}}",
            f"{{% for m in messages %}}{{% {escape} %}}{{% endfor %}}",
            f"{{{{ messages[0]['{escape}'].x.y }}}}",
            f"{{{{ strftime_now('{escape}%Y') }}}}",
        )
    )
    first = {"messages": [{"role": "user", "content": f"one {escape}"}]}
    files = {"a.json": first, "b.json": {"messages": [{"role": "user", "content": f"one {escape} two"}]}}
    content = {name: json.dumps(body).encode() for name, body in files.items()}
    options = random.choice(((), ("--json",), ("--redact",)))
    return Probe(
        ("diff", "a.json", "b.json", "--template", "t.jinja", *options), {**content, "t.jinja": encoded(source)}
    )


def _named(random: Random) -> Probe:
    """Escapes in the names of files, models, options, commands and the environment."""
    name = as_argument(random.choice(ESCAPES)).replace("/", "_")
    document = encoded(to_toml({k: v for k, v in built_in("two-equal-prompts").items() if k != "expect"}))
    body = json.dumps(BODY).encode()
    match random.randrange(9):
        case 0:
            return Probe(("sim", "run", f"{name}.toml"), {f"{name}.toml": document})
        case 1:
            return Probe(("sim", "run", f"{name}.toml", "--events", f"{name}.x"), {f"{name}.toml": b""})
        case 2:
            return Probe(("diff", name, name), {name: body})
        case 3:
            return Probe(("diff", name, "b.json"), {name: b"{", "b.json": body})
        case 4:
            return Probe(
                ("diff", "b.json", "b.json", "--tokenizer", name), {f"{name}/tokenizer.json": b"{}", "b.json": body}
            )
        case 5:
            return Probe(("experiment", "three-forms", "--model", name), {f"{name}/x": b""})
        case 6:
            return Probe((name, name))
        case 7:
            return Probe(("model", "list"), env={"MINICACHE_HOME": f"../home/{name}"})
        case _:
            return Probe(("tui", f"{name}.toml", "--svg", "out.svg"), {f"{name}.toml": document}, writes=("out.svg",))
