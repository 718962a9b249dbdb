"""Templates of real models: rendered as transformers does, with the origin of every character, in every renderer."""

import json
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.text.chat import Chat
from minicache.text.errors import MinicacheError
from minicache.text.origin import Field, Key, Unknown
from minicache.text.renderer import Renderer, RendererName
from minicache.text.sources import open_template, open_tokenizer
from minicache.text.template import ChatTemplate
from tests.text.conversations import TOOLS, marked, messages
from tests.text.test_origins import check_marks, check_runs

CALL = {"function": {"name": "ls", "arguments": {"d": "."}}}
LOOP = [
    {"role": "system", "content": "You are a careful coding helper. Follow the house rules. Answer briefly."},
    {"role": "user", "content": "Sum the repo"},
    {"role": "assistant", "content": "", "reasoning_content": "I should look at the tree first.", "tool_calls": [CALL]},
    {"role": "tool", "content": "a.py b.py"},
]


def check(template: ChatTemplate, chat: Chat, name: RendererName, places: dict) -> None:
    renderer = Renderer(template, name)
    try:
        plain = renderer.render(chat)
    except MinicacheError as error:
        with pytest.raises(type(error)):
            renderer.render_with_origins(chat)
        return
    prompt = renderer.render_with_origins(chat)
    assert prompt.text == plain
    check_runs(prompt)
    check_marks(prompt, places)
    assert not any(isinstance(run.origin, Unknown) for run in prompt.runs)


CHATS = st.tuples(messages(), TOOLS, st.sampled_from([{}, {"enable_thinking": False}, {"enable_thinking": True}]))


@pytest.mark.model
@given(chat=CHATS, name=st.sampled_from(RendererName))
def test_smollm2(chat, name):
    request, places = marked({"messages": chat[0], "tools": chat[1]})
    check(open_template("smollm2"), Chat(**request, template_kwargs=chat[2]), name, places)


@given(chat=CHATS, name=st.sampled_from(RendererName))
def test_qwen3(qwen3, chat, name):
    request, places = marked({"messages": chat[0], "tools": chat[1]})
    check(_template(qwen3), Chat(**request, template_kwargs=chat[2], time=datetime(2026, 3, 1)), name, places)


_templates: dict[Path, ChatTemplate] = {}


def _template(folder: Path) -> ChatTemplate:
    return _templates.setdefault(folder, open_template(folder))


@given(chat=CHATS)
def test_qwen3_equals_transformers(qwen3, chat):
    transformers = pytest.importorskip(
        "transformers", reason="transformers is the oracle: pip install 'minicache-llm[engine]'"
    )
    utils = transformers.utils.chat_template_utils
    conversation, tools, kwargs = chat
    try:
        ours = Renderer(_template(qwen3)).render(Chat(conversation, tools, template_kwargs=kwargs))
    except MinicacheError:
        ours = None
    try:
        normal = utils._normalize_chat_messages(conversation)
        theirs = utils.render_jinja_template(
            [normal], tools=tools, chat_template=_template(qwen3).source, add_generation_prompt=True, **kwargs
        )[0][0]
    except Exception:  # whatever a template raises
        theirs = None
    assert ours == theirs


def test_qwen3_drops_the_thoughts_of_a_finished_loop(qwen3):
    """The payload only grows, and the prompts diverge where the earlier one has its reasoning."""
    tokenizer, renderer = open_tokenizer(qwen3), Renderer(_template(qwen3))
    later = [*LOOP, {"role": "assistant", "content": "It prints 1.", "reasoning_content": "Enough."}]
    a, b = (renderer.render_with_origins(Chat(m)) for m in (LOOP, [*later, {"role": "user", "content": "Hi"}]))
    ids, spans = tokenizer.encode_with_offsets(a.text)
    shared = next(i for i, (x, y) in enumerate(zip(ids, tokenizer.encode(b.text), strict=False)) if x != y)
    start, end = spans[shared]
    assert a.text[start:end] == "<think>"
    assert a.text[end:].startswith("\nI should look")
    assert a.origin_at(end + 1) == Field(("messages", 2, "reasoning_content"), 0)


def test_the_normaliser_of_qwen3_is_named(qwen3):
    tokenizer = open_tokenizer(qwen3)
    composed, decomposed = "caf\N{LATIN SMALL LETTER E WITH ACUTE} ok", "cafe\N{COMBINING ACUTE ACCENT} ok"
    assert tokenizer.normalizer == "NFC"
    assert tokenizer.encode(composed) == tokenizer.encode(decomposed)
    ids, spans = tokenizer.encode_with_offsets(decomposed)
    assert [decomposed[start:end] for start, end in spans] == ["ca", "fe\N{COMBINING ACUTE ACCENT}", " ok"]
    assert len(ids) == 3


def test_what_qwen3_cannot_take(qwen3):
    renderer = Renderer(_template(qwen3))
    source = json.dumps({"d": "."})
    chat = Chat([*LOOP[:2], {**LOOP[2], "tool_calls": [{"function": {"name": "ls", "arguments": source}}]}])
    prompt = renderer.render_with_origins(chat)
    assert source in prompt.text  # it takes arguments that are text
    origins = {type(prompt.origin_at(prompt.text.index(source) + i)) for i in range(len(source))}
    assert origins == {Field}
    assert not any(isinstance(run.origin, Key) for run in prompt.runs)
