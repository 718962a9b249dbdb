"""The published cases of lost prefixes: rendered to lengths counted by hand, with the origin of every character."""

import json
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from minicache.text.chat import Chat
from minicache.text.origin import Clock, Field, Unknown
from minicache.text.renderer import Renderer
from minicache.text.template import ChatTemplate
from tests.text.conversations import at, marked
from tests.text.test_origins import check_marks

FILE = Path(__file__).parents[2].parent / "shared" / "cases" / "pairs.json"
CASES = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {"templates": {}, "pairs": {}}
pytestmark = pytest.mark.skipif(not CASES["pairs"], reason="../shared/cases/pairs.json is not there")


def renderer_and_chats(name: str) -> tuple[Renderer, list[Chat]]:
    case = CASES["pairs"][name]
    chats = [
        Chat(
            request["messages"],
            request.get("tools"),
            template_kwargs=request.get("chat_template_kwargs", {}),
            time=datetime.fromisoformat(request["now"]) if "now" in request else None,
        )
        for request in case["requests"]
    ]
    return Renderer(ChatTemplate(CASES["templates"][case["template"]])), chats


@pytest.mark.parametrize("name", CASES["pairs"])
def test_lengths(name):
    renderer, chats = renderer_and_chats(name)
    lengths = [len(renderer.render(chat).encode()) for chat in chats]
    computed = CASES["pairs"][name]["computed"] or []
    assert lengths[1:][: len(computed)] == [figures["len_b"] for figures in computed]
    assert lengths[: len(computed)] == [figures["len_a_prompt"] for figures in computed]
    assert computed or name == "C30"


@pytest.mark.parametrize("name", CASES["pairs"])
def test_every_character_is_traced(name):
    renderer, chats = renderer_and_chats(name)
    for chat in chats:
        prompt = renderer.render_with_origins(chat)
        assert prompt.text == renderer.render(chat)
        request = {"messages": chat.messages, "tools": chat.tools}
        for run in prompt.runs:
            text = prompt.text[run.start : run.end]
            assert not isinstance(run.origin, Unknown)
            if isinstance(run.origin, Field):
                field = at(request, run.origin.path)
                escaped = json.dumps(field, ensure_ascii=False)
                assert field.startswith(text, run.origin.offset) or text in escaped
        request, places = marked(request)
        chat = replace(chat, **request)
        assert check_marks(renderer.render_with_origins(chat), places)


def test_a_clock_differs_where_the_template_asks_for_the_time():
    renderer, chats = renderer_and_chats("C12")
    prompts = [renderer.render_with_origins(chat) for chat in chats]
    for a, b in pairwise(prompts):
        diverge = next(index for index, (x, y) in enumerate(zip(a.text, b.text, strict=False)) if x != y)
        assert diverge == 70
        assert a.origin_at(diverge) == b.origin_at(diverge) == Clock(1)
