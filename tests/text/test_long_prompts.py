"""The origins of a long prompt take little memory, and time proportional to its length."""

import time
import tracemalloc

import pytest

from minicache.text.byte_tokenizer import ByteTokenizer, PlainByteTokenizer
from minicache.text.chat import Chat
from minicache.text.renderer import Renderer
from minicache.text.template import CHATML, ChatTemplate
from tests.text.chat_templates import TEMPLATES

WORDS = "The quick brown fox jumps over the lazy dog, twice.\n"


def agent(characters: int) -> Chat:
    """A coding agent's session of about `characters` characters: tools, calls, long and short texts."""
    parameter = {"type": "string", "description": "Where to look for it, relative to the folder of the project."}
    parameters = {"type": "object", "properties": {"path": parameter, "query": parameter}, "required": ["path"]}
    tools = [
        {"type": "function", "function": {"name": f"tool_{i}", "description": WORDS * 4, "parameters": parameters}}
        for i in range(20)
    ]
    messages = [{"role": "system", "content": WORDS * 40}]
    for turn in range(characters // 3000):
        call = {"function": {"name": "tool_1", "arguments": {"path": f"src/{turn}.py", "query": 'def "main"\n'}}}
        messages += [
            {"role": "user", "content": WORDS * 4},
            {"role": "assistant", "content": WORDS, "tool_calls": [call]},
            {"role": "tool", "content": WORDS * 50},
        ]
    return Chat(messages, tools)


def documents(characters: int) -> Chat:
    return Chat([{"role": "user", "content": WORDS * (characters // len(WORDS))}])


def tools_only(characters: int) -> Chat:
    return Chat([{"role": "user", "content": "hi"}], list(agent(0).tools) * (characters // 11000))


PROMPTS = {
    "an agent's session": (agent, "tools"),
    "one document": (documents, "chatml"),
    "tools": (tools_only, "tools"),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_map_takes_less_than_twenty_times_the_text(name):
    make, template = PROMPTS[name]
    renderer, chat = Renderer(ChatTemplate(TEMPLATES[template])), make(300_000)
    renderer.render_with_origins(make(3000))  # what is made once for a template does not count
    size = len(renderer.render(chat))
    assert size > 250_000
    tracemalloc.start()
    prompt = renderer.render_with_origins(chat)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(prompt.text) == size
    assert kept < 20 * size
    assert peak < 20 * size


def test_spans_take_less_than_twenty_times_the_text():
    text = WORDS * 4000
    for tokenizer in (PlainByteTokenizer(), ByteTokenizer()):
        tracemalloc.start()
        tokenizer.encode_with_offsets(text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20 * 2 * len(text)  # the ids are as large as the spans


def seconds(work) -> float:
    """The least of a few runs, which depends least on other work on the machine."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("name", ["an agent's session", "tools"])  # the other is over before it can be measured
def test_the_time_grows_with_the_text(name):
    make, template = PROMPTS[name]
    renderer = Renderer(ChatTemplate(TEMPLATES[template]))
    short, long = make(50_000), make(400_000)
    ratio = seconds(lambda: renderer.render_with_origins(long)) / seconds(lambda: renderer.render_with_origins(short))
    assert ratio < 8 * 4  # a map in quadratic time would take 64 times as long


def test_lines_of_a_long_text_that_was_changed_are_found_in_linear_time():
    source = "{% for line in m[0].content.replace('o', '0').split('\\n') %}{{ line }}{% endfor %}".replace(
        "m[", "messages["
    )
    renderer = Renderer(ChatTemplate(source))
    short, long = documents(20_000), documents(160_000)
    ratio = seconds(lambda: renderer.render_with_origins(long)) / seconds(lambda: renderer.render_with_origins(short))
    assert ratio < 8 * 4


def test_a_prompt_without_origins_costs_no_map():
    renderer = Renderer(ChatTemplate(CHATML))
    renderer.render(documents(1000))
    assert "_origin_template" not in renderer.template.__dict__
