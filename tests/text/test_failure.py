"""A template that fails on a chat: one sentence with the message and field on which it fails."""

import pytest

from minicache.text.chat import Chat
from minicache.text.errors import TemplateFailed
from minicache.text.renderer import Renderer, RendererName
from minicache.text.template import CHATML, ChatTemplate

ITEMS = """{% for m in messages %}{{ m.role }}
{% for call in m.tool_calls or [] %}
{% for key, value in call.function.arguments | items %}{{ key ~ value }}{% endfor %}
{% endfor %}{% endfor %}"""
ALTERNATE = """{% for m in messages %}
{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
{% endfor %}"""
USER, ANSWER = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}


def failure(source: str, chat: Chat, renderer: str = "transformers") -> TemplateFailed:
    """The error of `render`, which `render_with_origins` raises too."""
    with pytest.raises(TemplateFailed) as plain:
        Renderer(ChatTemplate(source), RendererName(renderer)).render(chat)
    with pytest.raises(TemplateFailed) as traced:
        Renderer(ChatTemplate(source), RendererName(renderer)).render_with_origins(chat)
    assert str(plain.value).count("\n") == 0
    assert (plain.value.path, plain.value.fix) == (traced.value.path, traced.value.fix)
    return plain.value


def call(arguments) -> dict:
    return {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}


def test_content_that_is_null():
    error = failure(CHATML, Chat([USER, {**ANSWER, "content": None}, USER]))
    assert error.path == ("messages", 1, "content")
    assert str(error).startswith(
        "message 1: content is null, and this template needs text: send an empty text (the chat"
    )
    assert Renderer(ChatTemplate(CHATML), RendererName.vllm).render(Chat([{**ANSWER, "content": None}]))


def test_content_that_is_missing_or_of_parts():
    assert str(failure(CHATML, Chat([{"role": "user"}]))).startswith("message 0: content is missing: send an empty")
    error = failure(CHATML, Chat([USER, {"role": "user", "content": [{"type": "text", "text": "x"}]}]))
    assert error.path == ("messages", 1, "content")
    assert "message 1: content is a list of parts, and this template needs text: send one text" in str(error)


def test_arguments_that_are_text():
    error = failure(ITEMS, Chat([USER, call({"a": 1}), call('{"a": 1}'), call('{"b": 2}')]))
    assert error.path == ("messages", 2, "tool_calls", 0, "function", "arguments")
    assert str(error).startswith(
        "message 2: tool_calls[0].function.arguments is text, and this template needs an object: "
        "parse the text before you send it (the chat template failed: "
    )
    assert error.fix == "parse the text before you send it"
    assert Renderer(ChatTemplate(ITEMS), RendererName.vllm).render(Chat([USER, call('{"a": 1}')]))


def test_harmless_fields_are_not_blamed():
    error = failure(ITEMS, Chat([{**ANSWER, "content": None}, call('{"a": 1}')]))
    assert error.path[:2] == ("messages", 1)
    error = failure(ITEMS + CHATML, Chat([{**ANSWER, "content": None}, call('{"a": 1}')]))
    assert error.path == ("messages", 0, "content")  # the first of two fields that must both be repaired
    error = failure("{% for m in messages %}{{ m.content or '' }}{% endfor %}{{ 1 / 0 }}", Chat([{"role": "user"}]))
    assert error.path is None


def test_the_message_at_which_a_template_gives_up():
    error = failure(ALTERNATE, Chat([USER, ANSWER, USER, USER, ANSWER]))
    assert error.path == ("messages", 3)
    assert str(error) == "the chat template failed: roles must alternate (line 2), at message 3 (role 'user')"


def test_a_template_that_always_fails_blames_no_message():
    error = failure("\n{{ nothing.at.all }}", Chat([USER, ANSWER]))
    assert error.path is None
    assert str(error) == "the chat template failed: 'nothing' is undefined (line 2)"


def test_sglang_says_why_the_first_try_failed_too():
    error = failure(ALTERNATE, Chat([USER, USER], [{"function": {"name": "f"}}]), "sglang")
    assert error.path == ("messages", 1)
