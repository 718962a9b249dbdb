"""Reading logs: the bodies of four APIs, the wrapper, and everything that is not a request."""

import json
from datetime import UTC, datetime

import pytest

from minicache.prompts.bodies import Api
from minicache.prompts.errors import BadLog
from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.request_log import read_file, read_pair, to_request
from tests.prompts.cases import SYS, say, then
from tests.prompts.diffs import diff_of, means, verdicts

SAID = [
    {"role": "system", "content": SYS},
    {"role": "user", "content": "Weather in Oslo?"},
    {
        "role": "assistant",
        "content": "I look it up.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
        ],
    },
    {"role": "tool", "content": "12C", "tool_call_id": "c1"},
    {"role": "user", "content": "And tomorrow?"},
]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "x", "parameters": SCHEMA}}]


def anthropic(system=SYS, question="And tomorrow?", city="Oslo", tools=True):
    body = {
        "model": "m",
        "system": system,
        "messages": [
            {"role": "user", "content": "Weather in Oslo?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look it up."},
                    {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": city}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "12C"}]},
                    {"type": "text", "text": question},
                ],
            },
        ],
    }
    if tools:
        body["tools"] = [{"name": "weather", "description": "x", "input_schema": SCHEMA}]
    return body


def responses(instructions=SYS, question="And tomorrow?", arguments='{"city": "Oslo"}'):
    return {
        "model": "m",
        "instructions": instructions,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Weather in Oslo?"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look it up."}]},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": arguments},
            {"type": "function_call_output", "call_id": "c1", "output": "12C"},
            {"role": "user", "content": question},
        ],
        "tools": [{"type": "function", "name": "weather", "description": "x", "parameters": SCHEMA}],
    }


@pytest.mark.parametrize(
    ("body", "api"),
    [
        ({"messages": SAID, "tools": TOOLS}, Api.chat),
        (anthropic(), Api.anthropic),
        (responses(), Api.responses),
    ],
    ids=str,
)
def test_three_apis_say_the_same(body, api):
    read = to_request(body, "log").body
    assert read.api is api
    assert read.payload["messages"] == SAID
    assert read.payload["tools"] == TOOLS


@pytest.mark.parametrize(
    ("changed", "path", "offset"),
    [
        (
            anthropic(system=[{"type": "text", "text": SYS[:10]}, {"type": "text", "text": SYS[11:]}]),
            "system[0].text",
            10,
        ),
        (anthropic(question="And in 2 weeks?"), "messages[2].content[1].text", 4),
        (anthropic(city="Rome"), "messages[1].content[1].input", 10),
        (responses(question="And in 2 weeks?"), "input[4].content", 4),
        (responses(arguments='{"city": "Rome"}'), "input[2].arguments", 10),
        (responses(instructions=SYS.replace("brief", "short")), "instructions", SYS.index("brief")),
    ],
)
def test_paths_are_those_of_the_body_that_was_sent(changed, path, offset):
    base = anthropic() if "system" in changed else responses()
    later = json.loads(json.dumps(changed))
    more = [{"role": "assistant", "content": "Ten degrees."}, {"role": "user", "content": "Thanks."}]
    later["messages" if "messages" in later else "input"] += more
    (verdict,) = verdicts(diff_of(base, later, means("chatml-tools")))
    assert verdict[2:4] == (path, offset)


def test_joined_texts_name_the_part_with_its_own_offset():
    parts = [[{"type": "text", "text": f"Be {word}."}, {"type": "text", "text": f"id {id}"}] for word, id in
             (("brief", "97bd6f0c"), ("brief", "24c2d9ee"))]  # fmt: skip
    bodies = [{"system": system, "messages": [{"role": "user", "content": "hi"}]} for system in parts]
    bodies[1]["messages"] += [{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]
    assert verdicts(diff_of(*bodies, means()))[0][:4] == (Layer.payload, Kind.nonce, "system[1].text", 3)


def test_a_tool_s_schema_has_anthropic_s_name():
    other = anthropic()
    other["tools"] = [{"name": "weather", "description": "x", "input_schema": dict(reversed(SCHEMA.items()))}]
    (verdict, *_) = verdicts(diff_of(anthropic(), other, means("chatml-tools")))
    assert verdict[1:4] == (Kind.key_order, "tools[0].input_schema", 0)


def test_thinking_becomes_reasoning():
    thought = {"type": "thinking", "thinking": "Look first.", "signature": "x"}
    body = {"system": SYS, "messages": [
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": [thought, {"type": "text", "text": "ok"}]},
    ]}  # fmt: skip
    message = to_request(body, "log").body.payload["messages"][2]
    assert message == {"role": "assistant", "content": "ok", "reasoning_content": "Look first."}
    item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look first."}]}
    inputs = [{"role": "user", "content": "hi"}, item, {"role": "assistant", "content": "ok"}]
    assert to_request({"input": inputs}, "log").body.payload["messages"][1] == message


def test_the_wrapper():
    body = say(SYS, "hi")
    usage = {"prompt_tokens_details": {"cached_tokens": 32}}
    value = {"time": "2026-03-01T10:00:07+01:00", "id": 7, "body": body, "response": {"usage": usage}, "host": "r1"}
    request = to_request(value, "log")
    assert (request.id, request.response.cached_tokens) == ("7", 32)
    assert request.time is not None
    assert request.time.strftime("%H:%M") == "10:00"
    assert to_request({**value, "time": 1772359207}, "log").time == datetime(2026, 3, 1, 10, 0, 7, tzinfo=UTC)
    assert to_request({**value, "time": 1772359207000}, "log").time == datetime(2026, 3, 1, 10, 0, 7, tzinfo=UTC)
    bare = to_request(body, "log")
    assert (bare.id, bare.time, bare.response.cached_tokens) == (None, None, None)  # absent is not zero


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 0}}, 0),
        ({"input_tokens_details": {"cached_tokens": 5}}, 5),
        ({"cache_read_input_tokens": 6}, 6),
        ({"prompt_cache_hit_tokens": 7}, 7),
        ({"prompt_tokens_details": None}, None),
        ({"prompt_tokens_details": {"cached_tokens": None}, "cache_read_input_tokens": 6}, 6),
        ({}, None),
    ],
)
def test_reported_tokens_of_each_api(usage, cached):
    assert to_request({"body": say(SYS, "hi"), "response": {"usage": usage}}, "log").response.cached_tokens == cached


def test_a_pair_of_a_log_by_line_and_by_id(tmp_path):
    log = tmp_path / "log.jsonl"
    bodies = [say(SYS, "hi"), say(SYS, "one"), then(say(SYS, "one"), "1", "two")]
    lines = [json.dumps({"id": id, "body": body}) for id, body in zip(("r1", "r2", "1"), bodies, strict=True)]
    log.write_text("\n".join(["", *lines]) + "\n")
    a, b = read_pair(log, "r2", "1")
    assert (a.id, b.id, b.where) == ("r2", "1", f"{log} line 4")  # an id goes before a line number
    assert read_pair(log, "2", "3")[0].id == "r1"
    with pytest.raises(BadLog, match="has 4 lines, and no request with the id or line number 'r9'"):
        read_pair(log, "r9", "1")
    with pytest.raises(BadLog, match="no request with the id or line number '999"):
        read_pair(log, "1", "9" * 5000)  # more digits than Python makes a number of
    with pytest.raises(BadLog, match="no request with the id or line number '5'"):
        read_pair(log, "5", "1")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"\xff\xfe\x00\x01\x80", "is not text in UTF-8"),
        (b"{", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON: it is nested more than 128 levels deep"),
        (b"[1]", "holds a list, not a request"),
        (b'{"request": {"messages": []}}', r"is not a request of a known form \(its keys: 'request'\)"),
        (b'{"body": []}', "body must be an object"),
        (b'{"messages": []}', "messages is empty"),
        (b'{"messages": {}}', "messages must be a list"),
        (b'{"messages": ["hi"]}', r"messages\[0\] must be an object"),
        (b'{"body": {"messages": [{}]}, "time": "noon"}', "time must be ISO 8601"),
        (b'{"body": {"messages": [{}]}, "response": []}', "response must be an object"),
        (b'{"body": {"messages": [{}]}, "response": {"output_ids": ["a"]}}', "must be a list of token ids"),
        (b'{"input": "x", "previous_response_id": "r"}', "log the whole input instead"),
        (b'{"input": [{"type": "web_search_call"}]}', "which cannot be rendered"),
        (b'{"prompt": ["a", "b"]}', "prompt must be one text or a list of token ids"),
        (b'{"messages": [{}], "chat_template_kwargs": 3}', "chat_template_kwargs must be an object"),
        (b'{"system": 3, "messages": [{}]}', "system must be a text or a list of parts"),
    ],
)
def test_no_request(tmp_path, text, sentence):
    file = tmp_path / "request.json"
    file.write_bytes(text)
    with pytest.raises(BadLog, match=sentence) as error:
        read_file(file)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadLog, match=r"none\.json cannot be read: No such file"):
        read_file(tmp_path / "none.json")


def test_a_renderer_that_parses_arguments_needs_no_equal_spaces():
    """vLLM parses arguments that are text into an object before it renders."""
    pair = (
        say(SYS, "w", c, {"role": "tool", "content": "12C"})
        for c in (call_with('{"city": "Oslo"}'), call_with('{"city":"Oslo"}'))
    )
    diff = diff_of(*pair, means("args-tojson", renderer="vllm"))
    assert verdicts(diff)[0][:2] == (Layer.none, Kind.reserialised)


def call_with(arguments):
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "weather", "arguments": arguments}}],
    }
