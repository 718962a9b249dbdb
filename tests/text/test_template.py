"""Rendering equals transformers' `apply_chat_template`, and a chat that cannot be rendered is refused in one
sentence."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.text.errors import BadMessage, TemplateFailed
from minicache.text.template import CHATML, ChatTemplate
from minicache.text.tokenizer import HubTokenizer
from tests.text.tiny_hub import SMOLLM2_TEMPLATE, write_hub_folder

TOOLS_TEMPLATE = """
{%- if tools %}
    {{- bos_token + "tools\n" }}
    {%- for tool in tools %}
        {{- tool | tojson }}
        {{- tool | tojson(indent=2) }}
    {%- endfor %}
{%- endif %}
{% for message in messages %}
    {% if message.role == "tool" %}
        {% continue %}
    {% endif %}
    {% if message.reasoning_content is defined %}
<think>{{ message.reasoning_content }}</think>{{ message.thinking }}
    {% endif %}
{{ message.role }}: {% generation %}{{ message.content | trim }}{% endgeneration %}

    {% for call in message.tool_calls or [] %}
call {{ call | tojson }}
    {% endfor %}
{% endfor %}
{% if add_generation_prompt %}{{ eos_token }}{% endif %}"""
TEMPLATES = {"chatml": CHATML, "smollm2": SMOLLM2_TEMPLATE, "tools": TOOLS_TEMPLATE}

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["<b>'&", "日本", " x\n", "{{ 1 }}"]
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXT},
    optional={"name": TEXT | st.none()},
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.dictionaries(TEXT, inner) | st.lists(inner)
)
RICH_MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXT},
    optional={
        "reasoning": TEXT | st.none(),
        "reasoning_content": TEXT | st.none(),
        "thinking": TEXT,
        "tool_calls": st.lists(st.dictionaries(TEXT, JSON), max_size=2) | st.none(),
    },
)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    transformers = pytest.importorskip(
        "transformers", reason="transformers is the oracle: pip install 'minicache-llm[engine]'"
    )
    folder = write_hub_folder(tmp_path_factory.mktemp("hub"))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), eos_token="<|im_end|>", bos_token="<|im_start|>"
    )


SPECIAL = {"eos_token": "<|im_end|>", "bos_token": "<|im_start|>"}


def both(oracle, name, messages, tools=None, add_generation_prompt=True):
    options = {"tools": tools, "add_generation_prompt": add_generation_prompt}
    ours = ChatTemplate(TEMPLATES[name], special_tokens=SPECIAL).render(messages, **options)
    theirs = oracle.apply_chat_template(messages, chat_template=TEMPLATES[name], tokenize=False, **options)
    return ours, theirs


@given(
    messages=st.lists(MESSAGE, min_size=1, max_size=5),
    prompt=st.booleans(),
    name=st.sampled_from(["chatml", "smollm2"]),
)
def test_plain_conversations_equal_transformers(oracle, messages, prompt, name):
    ours, theirs = both(oracle, name, messages, add_generation_prompt=prompt)
    assert ours == theirs


@given(
    messages=st.lists(RICH_MESSAGE, min_size=1, max_size=4),
    tools=st.none() | st.lists(st.dictionaries(TEXT, JSON, min_size=1), max_size=2),
    prompt=st.booleans(),
)
def test_tools_reasoning_and_json_equal_transformers(oracle, messages, tools, prompt):
    ours, theirs = both(oracle, "tools", messages, tools, prompt)
    assert ours == theirs


def test_the_template_of_a_folder_and_its_tokens_equal_transformers(tmp_path):
    transformers = pytest.importorskip(
        "transformers", reason="transformers is the oracle: pip install 'minicache-llm[engine]'"
    )
    write_hub_folder(tmp_path)
    oracle = transformers.PreTrainedTokenizerFast.from_pretrained(str(tmp_path))
    messages = [{"role": "user", "content": "Where is my parcel? Zoë <|im_end|> 日本"}]
    text = ChatTemplate.from_folder(tmp_path).render(messages)
    theirs = oracle.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert HubTokenizer(tmp_path).encode(text) == theirs


def test_the_clock_is_injected():
    template = ChatTemplate("{{ strftime_now('%d %B %Y') }}", now=lambda: datetime(2024, 5, 17))
    assert template.render([{"role": "user", "content": ""}]) == "17 May 2024"


def test_a_template_file_goes_before_the_config(tmp_path):
    write_hub_folder(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("from the file")
    assert ChatTemplate.from_folder(tmp_path).render([{"role": "user", "content": ""}]) == "from the file"


def test_a_list_of_templates_has_a_default(tmp_path):
    named = [{"name": "rag", "template": "no"}, {"name": "default", "template": "yes"}]
    write_hub_folder(tmp_path, chat_template=named)
    assert ChatTemplate.from_folder(tmp_path).render([{"role": "user", "content": ""}]) == "yes"


USER = {"role": "user", "content": "hi"}
BAD_MESSAGES = {
    "messages is empty: a chat needs at least one message": [],
    "messages must be a list of messages, not str": "hi",
    "messages must be a list of messages, not dict": USER,
    "message 1 must be an object with a role and content, not str": [USER, "hi"],
    "message 1 has no role: add one, such as 'user'": [USER, {"content": "hi"}],
    "message 0: role must be text, not int": [{"role": 3, "content": "hi"}],
    r"message 1 \(role 'assistant'\) has no content": [USER, {"role": "assistant"}],
    r"message 0 \(role 'user'\) has no content": [{"role": "user", "content": None}],
    "message 0: content must be text or a list of parts, not int": [{"role": "user", "content": 3}],
}


@pytest.mark.parametrize("sentence", BAD_MESSAGES)
def test_a_bad_message_is_named(sentence):
    with pytest.raises(BadMessage, match=f"^{sentence}$"):
        ChatTemplate(CHATML).render(BAD_MESSAGES[sentence])


def test_a_bad_tool_is_named():
    with pytest.raises(BadMessage, match="tool 1 must be an object with a JSON schema, not str"):
        ChatTemplate(CHATML).render([USER], tools=[{}, "search"])


def test_a_call_without_words_needs_no_content():
    template = ChatTemplate("{{ messages[0].tool_calls[0].name }}")
    assert template.render([{"role": "assistant", "content": None, "tool_calls": [{"name": "track"}]}]) == "track"


def test_a_template_that_does_not_parse():
    with pytest.raises(TemplateFailed, match=r"the chat template does not parse: .*\(line 2\)"):
        ChatTemplate("\n{% if %}")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[0].nothing + 'x' }}", "has no attribute 'nothing'"),
        ("{{ messages.append(1) }}", "append' of 'list' object is unsafe"),
        ("{{ 1 / 0 }}", "division by zero"),
    ],
)
def test_a_template_that_fails(source, reason):
    with pytest.raises(TemplateFailed, match=f"the chat template failed: .*{reason}"):
        ChatTemplate(source).render([USER])


def test_a_folder_without_a_template(tmp_path):
    with pytest.raises(TemplateFailed, match="has no chat template"):
        ChatTemplate.from_folder(tmp_path)
