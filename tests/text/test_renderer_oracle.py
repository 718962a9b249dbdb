"""Our rendering equals `apply_chat_template` on random conversations and templates."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.text.chat import Chat
from minicache.text.errors import TemplateFailed
from minicache.text.renderer import Renderer
from minicache.text.template import ChatTemplate
from tests.text.chat_templates import TEMPLATES
from tests.text.conversations import TEXT, TOOLS, messages
from tests.text.tiny_hub import write_hub_folder

SPECIAL = {"eos_token": "<|im_end|>", "bos_token": "<|im_start|>"}
TODAY = datetime(2026, 3, 1, 23, 59, 58)
PARTS = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), max_size=3)
WITH_PARTS = """{{ bos_token }}{% for m in messages %}{{ m.role }}:
{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content or [] %}{{ part.type ~ part.text }}
{% endfor %}{% endif %}{% endfor %}{{ documents | length if documents else 'none' }}{{ style | default('plain') }}"""


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    transformers = pytest.importorskip(
        "transformers", reason="transformers is the oracle: pip install 'minicache-llm[engine]'"
    )
    folder = write_hub_folder(tmp_path_factory.mktemp("hub"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **SPECIAL)

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return TODAY

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformers.utils.chat_template_utils.datetime", Clock)
        yield tokenizer


def theirs(oracle, source: str, chat: Chat) -> str | None:
    """None if the template fails."""
    try:
        return oracle.apply_chat_template(
            list(chat.messages),
            tools=chat.tools,
            documents=chat.documents,
            chat_template=source,
            add_generation_prompt=chat.add_generation_prompt,
            tokenize=False,
            **chat.template_kwargs,
        )
    except Exception:  # whatever a template raises
        return None


def ours(source: str, chat: Chat) -> str | None:
    try:
        return Renderer(ChatTemplate(source, special_tokens=SPECIAL)).render(chat)
    except TemplateFailed:
        return None


@pytest.mark.parametrize("name", TEMPLATES)
@given(
    conversation=messages(content=TEXT | st.none()),
    tools=TOOLS,
    prompt=st.booleans(),
    kwargs=st.fixed_dictionaries({}, optional={"enable_thinking": st.booleans()}),
)
def test_templates_of_every_habit(oracle, name, conversation, tools, prompt, kwargs):
    chat = Chat(conversation, tools, add_generation_prompt=prompt, template_kwargs=kwargs, time=TODAY)
    assert ours(TEMPLATES[name], chat) == theirs(oracle, TEMPLATES[name], chat)


@given(
    conversation=messages(content=TEXT | PARTS | st.none()),
    documents=st.none() | st.lists(st.dictionaries(TEXT, TEXT), max_size=2),
    kwargs=st.fixed_dictionaries({}, optional={"style": TEXT, "bos_token": TEXT}),
)
def test_parts_documents_and_arguments_of_the_template(oracle, conversation, documents, kwargs):
    chat = Chat(conversation, documents=documents, template_kwargs=kwargs)
    assert ours(WITH_PARTS, chat) == theirs(oracle, WITH_PARTS, chat) is not None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ strftime_now('%H:%M') }}", "23:59"),
        ("{% set n = namespace(a=1, self=2) %}{% set n.a = 3 %}{{ n.a ~ n.self }}", "32"),
        ("{{ namespace(_a=1) }}", None),
        ("{% set n = namespace() %}{% set n._a = 1 %}", None),
        ("{{ dict(a=1) | tojson }}{{ dict.fromkeys(['k'], 2) | tojson }}", '{"a": 1}{"k": 2}'),
        ("{{ dict.items is defined }}", "False"),
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}", "hi"),
        ("{{ {'a': '<é>'} | tojson(ensure_ascii=true, separators=(',', ':')) }}", '{"a":"<\\u00e9>"}'),
        ("{{ messages.append(1) }}", None),
    ],
)
def test_what_a_template_can_use(oracle, source, expected):
    chat = Chat([{"role": "user", "content": "hi"}], time=TODAY)
    assert ours(source, chat) == theirs(oracle, source, chat) == expected
