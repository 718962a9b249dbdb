"""The changes that vLLM 0.33.0 and SGLang 0.5.23 make to a chat before they run the template."""

import json

import pytest
from hypothesis import given

from minicache.text.chat import Chat
from minicache.text.content_format import sglang_wants_parts, vllm_wants_parts
from minicache.text.errors import BadMessage, TemplateFailed
from minicache.text.origin import Field, Unknown, Value
from minicache.text.renderer import Renderer, RendererName
from minicache.text.sglang_steps import sglang
from minicache.text.template import ChatTemplate
from minicache.text.vllm_steps import vllm
from tests.text.conversations import OBJECT

TEXTS = "{% for m in messages %}{{ m.role ~ ':' ~ m.content ~ ';' }}{% endfor %}"
LISTS = "{% for m in messages %}{% for part in m.content %}{{ part | tojson }}{% endfor %}{% endfor %}"
CALL = "{% for m in messages %}{{ m.tool_calls[0].function.arguments | tojson }}{% endfor %}"
PARTS = [{"type": "text", "text": "a", "cache_control": {}}, {"type": "text", "text": "b"}]


def prompt(renderer: str, source: str, *messages: dict, tools: list | None = None) -> str:
    return Renderer(ChatTemplate(source), RendererName(renderer)).render(Chat(messages, tools))


def call(arguments) -> dict:
    return {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}


@pytest.mark.parametrize(("renderer", "separator"), [("vllm", "\n"), ("sglang", " ")])
def test_parts_become_one_text(renderer, separator):
    assert prompt(renderer, TEXTS, {"role": "user", "content": PARTS}) == f"user:a{separator}b;"
    letters = "".join(map(json.dumps, f"a{separator}b"))  # a tool's do even if the template loops over them
    assert prompt(renderer, LISTS, {"role": "tool", "content": PARTS}) == letters
    assert prompt(renderer, TEXTS, {"role": "assistant", "content": None}) == "assistant:;"


@pytest.mark.parametrize("renderer", ["vllm", "sglang"])
def test_parts_stay_for_a_template_that_loops_over_them(renderer):
    image = {"type": "image_url", "image_url": {"url": "http://example.com/a.png"}}
    expected = '{"type": "text", "text": "a"}{"type": "text", "text": "b"}{"type": "image"}'
    assert prompt(renderer, LISTS, {"role": "user", "content": [*PARTS, image]}) == expected


def test_a_text_is_one_part_for_vllm_alone():
    message = {"role": "user", "content": "hi"}
    assert prompt("vllm", LISTS, message) == '{"type": "text", "text": "hi"}'
    assert prompt("sglang", LISTS, message) == '"h""i"'


@pytest.mark.parametrize("renderer", ["vllm", "sglang"])
@given(arguments=OBJECT)
def test_arguments_that_are_text_become_an_object(renderer, arguments):
    expected = json.dumps(arguments, ensure_ascii=False)
    assert prompt(renderer, CALL, call(arguments)) == expected
    assert prompt(renderer, CALL, call(json.dumps(arguments, indent=1))) == expected


def test_arguments_that_are_no_object():
    for arguments in ("{", "[]", "3", "", None, []):
        assert prompt("vllm", CALL, call(arguments)) == "{}"
    for arguments in ("{", "[]", "3", ""):
        where = r"message 0: tool_calls\[0\]\.function\.arguments is text that is not a JSON object"
        with pytest.raises(BadMessage, match=where):
            prompt("sglang", CALL, call(arguments))


def test_the_origin_of_parsed_arguments_is_the_text_that_was_sent():
    path = ("messages", 0, "tool_calls", 0, "function", "arguments")
    chat = Chat([call('{"city":"Oslo"}')])
    rendered = Renderer(ChatTemplate(CALL), RendererName.vllm).render_with_origins(chat)
    assert [(rendered.text[run.start : run.end], run.origin) for run in rendered.runs] == [
        ('{"', Value(path)),
        ("city", Field(path, 2)),
        ('": "', Value(path)),
        ("Oslo", Field(path, 9)),
        ('"}', Value(path)),
    ]


def test_the_origin_of_joined_parts():
    rendered = Renderer(ChatTemplate("{{ messages[0].content }}"), RendererName.vllm).render_with_origins(
        Chat([{"role": "user", "content": PARTS}])
    )
    path = ("messages", 0, "content")
    assert [run.origin for run in rendered.runs] == [
        Field((*path, 0, "text"), 0),
        Value(path),
        Field((*path, 1, "text"), 0),
    ]


def test_what_is_kept_of_a_message():
    message = {
        "role": "assistant",
        "content": "x",
        "id": "9",
        "cache_control": {},
        "reasoning_content": "why",
        "name": "n",
        "tool_calls": [],
    }
    fields = "{% for key in messages[0] | sort %}{{ key }} {% endfor %}"
    assert prompt("vllm", fields, message) == "content name reasoning reasoning_content role thinking "
    assert prompt("sglang", fields, message) == "content name reasoning_content role thinking tool_calls "
    user = {**message, "role": "user"}
    assert prompt("vllm", fields, user) == "content name role "
    assert prompt("sglang", fields, user) == "content role "
    assert prompt("sglang", TEXTS, {"role": "Assistant", "content": "x"}) == "assistant:x;"


def test_vllm_drops_the_line_that_differs_in_every_request():
    header = "x-anthropic-billing-header: cch=97bd6;"
    assert prompt("vllm", TEXTS, {"role": "system", "content": f"{header}\nRules"}) == "system:Rules;"
    parts = [{"type": "text", "text": header}, {"type": "text", "text": "Rules"}]
    assert prompt("vllm", TEXTS, {"role": "system", "content": parts}) == "system:Rules;"
    assert prompt("vllm", TEXTS, {"role": "user", "content": header}) == f"user:{header};"
    assert header in prompt("sglang", TEXTS, {"role": "system", "content": header})


def test_vllm_makes_developers_part_of_the_system_message():
    messages = [
        {"role": "system", "content": "a"},
        {"role": "user", "content": "u"},
        {"role": "developer", "content": "b"},
    ]
    assert prompt("vllm", TEXTS, *messages) == "system:a\n\nb;user:u;"
    assert prompt("vllm", TEXTS, {"role": "developer", "content": "b"}, messages[1]) == "system:b;user:u;"
    rendered = Renderer(ChatTemplate(TEXTS), RendererName.vllm).render_with_origins(Chat(messages))
    assert not any(isinstance(run.origin, Unknown) for run in rendered.runs)
    knows = TEXTS + "{% if messages[0].role == 'developer' %}{% endif %}"
    assert prompt("vllm", knows, *messages) == "system:a;user:u;developer:b;"


TOOL = {"function": {"parameters": {}, "x": 1, "name": "f"}, "id": 3}


def test_tools_as_the_servers_dump_them():
    source = "{{ tools | tojson }}"
    user = {"role": "user", "content": ""}
    function = '{"name": "f", "description": null, "parameters": {}}'
    assert prompt("vllm", source, user, tools=[TOOL]) == '[{"type": "function", "function": ' + function + "}]"
    function = '{"parameters": {}, "name": "f", "description": null}'
    expected = '[{"type": "function", "function": ' + function + ', "defer_loading": null}]'
    assert prompt("sglang", source, user, tools=[TOOL]) == expected
    for renderer in ("vllm", "sglang"):
        with pytest.raises(BadMessage, match="tool 0 has no function with a name"):
            prompt(renderer, source, user, tools=[{"name": "f"}])


def test_sglang_tries_again_with_the_functions_alone():
    source = "{{ tools[0].name + ':' + messages[0].content }}"
    message = {"role": "user", "content": "hi"}
    assert prompt("sglang", source, message, tools=[TOOL]) == "f:hi"
    chat = Chat([message], [TOOL])
    rendered = Renderer(ChatTemplate(source), RendererName.sglang).render_with_origins(chat)
    assert rendered.origin_at(0) == Field(("tools", 0, "function", "name"), 0)


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("message 0: content has a part of type 'image_url': what vLLM writes for it", [{"type": "image_url"}]),
        ("message 0: content has a part of type 'x': vLLM refuses it", [{"type": "x"}]),
        (r"message 0: content\[0\] must be a part with a type, not int", [3]),
    ],
)
def test_parts_that_vllm_cannot_make_text_of(sentence, message):
    with pytest.raises(BadMessage, match=f"^{sentence}"):
        prompt("vllm", TEXTS, {"role": "user", "content": message})


@pytest.mark.parametrize("renderer", ["vllm", "sglang"])
@pytest.mark.parametrize("calls", [[3], [{}], {"function": {}}])
def test_calls_without_a_function(renderer, calls):
    with pytest.raises(BadMessage, match=r"^message 0: tool_calls"):
        prompt(renderer, CALL, {"role": "assistant", "tool_calls": calls})


@pytest.mark.parametrize(
    ("source", "by_vllm", "by_sglang"),
    [
        (TEXTS, False, False),
        (LISTS, True, True),
        ("{% for m in messages %}{% for p in m['content'] | list %}{% endfor %}{% endfor %}", True, True),
        ("{% for turn in messages[1:] %}{% for p in turn.content %}{% endfor %}{% endfor %}", True, False),
        ("{% set rest = messages %}{% for t in rest %}{% for p in t.content %}{% endfor %}{% endfor %}", True, False),
        (
            "{% set ns = namespace(l=messages) %}{% for t in ns.l %}{% for p in t.content %}{% endfor %}{% endfor %}",
            1,
            0,
        ),
        ("{% set content = messages[0].content %}{% for p in content %}{% endfor %}", True, False),
        (
            "{% macro show(x) %}{% for p in x %}{% endfor %}{% endmacro %}"
            "{% for t in messages %}{{ show(t.content) }}{% endfor %}",
            True,
            False,
        ),
        ("{% macro show(content) %}{% for p in content %}{% endfor %}{% endmacro %}", False, False),
        ("{# an image #}{{ messages[0].content }}", False, True),
    ],
)
def test_which_templates_want_parts(source, by_vllm, by_sglang):
    assert (vllm_wants_parts(source), sglang_wants_parts(source)) == (bool(by_vllm), bool(by_sglang))


def test_a_chat_is_not_changed():
    chat = Chat([call('{"a": 1}'), {"role": "user", "content": PARTS}], [TOOL])
    before = json.dumps([chat.messages, chat.tools])
    for steps in (vllm, sglang):
        steps(chat, TEXTS)
    assert json.dumps([chat.messages, chat.tools]) == before


@pytest.mark.parametrize("tools", ["x", [3], [{"a": 1}], {"a": 1}, 7, True])
def test_tools_among_the_arguments_of_the_template_may_be_anything(tools):
    """They are not checked as tools, and SGLang's second try needs the function of each."""
    chat = Chat([{"role": "user", "content": "hi"}], template_kwargs={"tools": tools})
    with pytest.raises(TemplateFailed, match="divi"):
        Renderer(ChatTemplate("{{ 1 // 0 }}"), RendererName.sglang).render(chat)
