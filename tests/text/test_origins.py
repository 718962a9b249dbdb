"""Origins: the text stays the same, and each character of a field has this very character or `Unknown` as origin."""

from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from minicache.text.chat import Chat
from minicache.text.errors import BadMessage, TemplateFailed
from minicache.text.origin import Clock, Field, Key, Literal, Rendered, Unknown, Value, shift
from minicache.text.renderer import Renderer, RendererName
from minicache.text.template import ChatTemplate
from tests.text.chat_templates import TEMPLATES
from tests.text.conversations import OBJECT, TEXT, TOOLS, marked, messages
from tests.text.random_templates import RANDOM_TEMPLATES

SPECIAL = {"eos_token": "<|im_end|>", "bos_token": "<|im_start|>"}
PARTS = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), min_size=1, max_size=3)


def rendered(source: str, chat: Chat, name: RendererName = RendererName.transformers) -> Rendered | None:
    """The prompt with origins, if its text equals the one without; `None` if the template fails in both ways."""
    renderer = Renderer(ChatTemplate(source, special_tokens=SPECIAL), name)
    try:
        plain = renderer.render(chat)
    except (TemplateFailed, BadMessage):
        with pytest.raises((TemplateFailed, BadMessage)):
            renderer.render_with_origins(chat)
        return None
    with_origins = renderer.render_with_origins(chat)
    assert with_origins.text == plain
    assert type(with_origins.text) is str
    return with_origins


def check_runs(prompt: Rendered) -> None:
    """The runs cover the text, and no two neighbours could be one run."""
    assert [run.start for run in prompt.runs] == [0, *(run.end for run in prompt.runs)][:-1]
    assert [run.end for run in prompt.runs][-1:] == [len(prompt.text)] * bool(prompt.text)
    assert all(run.start < run.end for run in prompt.runs)
    for before, after in pairwise(prompt.runs):
        following = shift(before.origin, before.end - before.start)
        assert following != after.origin or (isinstance(after.origin, (Field, Key)) and following == before.origin)


def check_marks(prompt: Rendered, places: dict) -> int:
    """Each mark in the prompt has its own origin, an unknown one, or the `Value` of a container around it."""
    found = 0
    for index, character in enumerate(prompt.text):
        if character in places:
            path, offset = places[character]
            origin = prompt.origin_at(index)
            found += isinstance(origin, (Field, Key))
            if isinstance(origin, Value):
                assert origin.path == path[: len(origin.path)]
            elif not isinstance(origin, Unknown):
                assert origin == type(origin)(path, offset)
    return found


CONVERSATIONS = st.tuples(messages(content=TEXT, arguments=OBJECT), TOOLS)


@pytest.mark.parametrize("renderer", RendererName)
@pytest.mark.parametrize("name", TEMPLATES)
@given(conversation=CONVERSATIONS)
@settings(max_examples=settings.default.max_examples // 2)
def test_templates_of_every_habit(name, renderer, conversation):
    request, places = marked({"messages": conversation[0], "tools": conversation[1]})
    chat = Chat(request["messages"], request["tools"], time=datetime(2026, 3, 1))
    prompt = rendered(TEMPLATES[name], chat, renderer)
    if prompt is not None:
        check_runs(prompt)
        check_marks(prompt, places)
        assert not any(isinstance(run.origin, Unknown) for run in prompt.runs)


KEPT = [
    *(
        "{{ c | upper }}",
        "{{ c | lower }}",
        "{{ c | title }}",
        "{{ c | capitalize }}",
        "{{ c | trim }}",
        "{{ c | string }}",
    ),
    *("{{ c | list | join }}", "{{ [c, c] | join }}", "{{ messages | join('', attribute='content') }}", "{{ c * 2 }}"),
    *("{{ c | first ~ c | last }}", "{{ c | replace('a', 'x') }}", "{{ c | default('x') }}", "{{ c | reverse }}"),
    *(
        "{{ [c] | map('upper') | list | last }}",
        "{{ c | tojson }}",
        "{{ {c: c} | items | first | join }}",
        "{{ c[1:] }}",
    ),
    *("{{ c.upper().strip().split() | join(' ') }}", "{{ ', '.join([c, c]) }}", "{{ c.partition(' ') | join }}"),
    *("{% for x in c %}{{ x }}{% endfor %}", "{% filter upper %}{{ c }}{% endfilter %}", "{{ '%s!' | format(c) }}"),
    *("{% set x %}{{ c }}!{% endset %}{{ x }}", "{% macro f(x) %}{{ x }}{% endmacro %}{{ f(c) }}{{ f(x=c) }}"),
    *("{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}{{ c }}{% endcall %}", "{{ '{}'.format(c) }}"),
    *("{% set n = namespace(x='') %}{% set n.x = n.x + c %}{{ n.x }}", "{{ c ~ '!' ~ c }}", "{{ 'x' + c + 'y' }}"),
    *("{% for x in [c] recursive %}{{ x }}{% endfor %}", "{{ c if c else 'x' }}", "{{ (c or 'x') | trim }}"),
    *("{{ '{a}'.format_map({'a': c}) }}", "{{ c.replace('a', '').removeprefix('x') }}", "{{ c.splitlines()[0] }}"),
]


@pytest.mark.parametrize("form", KEPT)
def test_what_templates_do_with_texts_keeps_every_origin(form):
    request, places = marked({"messages": [{"role": "user", "content": "say aa ab\nhi"}]})
    prompt = rendered("{% set c = messages[0].content %}" + form, Chat(**request))
    assert not any(isinstance(run.origin, Unknown) for run in prompt.runs)
    assert check_marks(prompt, places) == sum(character in places for character in prompt.text) > 0


@given(source=RANDOM_TEMPLATES, conversation=CONVERSATIONS, thinking=st.booleans())
@settings(max_examples=4 * settings.default.max_examples)
def test_random_templates(source, conversation, thinking):
    request, places = marked({"messages": conversation[0], "tools": conversation[1]})
    kwargs = {"enable_thinking": thinking}
    prompt = rendered(source, Chat(**request, template_kwargs=kwargs, time=datetime(2026, 3, 1)))
    event("fails" if prompt is None else "renders")
    if prompt is not None:
        check_runs(prompt)
        event(f"traced: {bool(check_marks(prompt, places))}")


def pieces(source: str, chat: Chat) -> list[tuple[str, object]]:
    prompt = rendered(source, chat)
    assert prompt is not None
    return [(prompt.text[run.start : run.end], run.origin) for run in prompt.runs]


CHAT = Chat(
    [{"role": "user", "content": " Hi\nyou ", "count": 12, "on": True, "parts": ["a", "b"]}],
    [{"name": "f", "size": 2.5}],
    template_kwargs={"style": "dry", "deep": False},
    time=datetime(2026, 3, 1, 9, 5),
)
HI = ("messages", 0, "content")
ORIGINS = {
    "a\nb{# note #}\n{{ 'c' }}": [("a\n", Literal(1)), ("b", Literal(2)), ("c", Literal(3))],
    "{% set now = strftime_now('%H:%M') %}\nAt {{ now }}": [("At ", Literal(2)), ("09:05", Clock(1))],
    "{{ messages[0].content | trim }}": [("Hi\nyou", Field(HI, 1))],
    "{{ messages[0].content.split('\n')[1] }}": [("you ", Field(HI, 4))],
    "{{ messages[0].content | indent(2) }}": [(" Hi\n", Field(HI, 0)), ("  ", Unknown(1)), ("you ", Field(HI, 4))],
    "{{ messages[0].content[:0:-1] | upper }}": [(c, Field(HI, 7 - i)) for i, c in enumerate(" UOY\nIH")],
    "{{ messages[0].count }}{{ messages[0].on }}": [
        ("12", Value(("messages", 0, "count"))),
        ("True", Value(("messages", 0, "on"))),
    ],
    "{{ messages[0].count + 1 }}": [("13", Unknown(1))],
    "\n{{ messages[0].content | wordwrap(3) }}": [("\n", Literal(1)), (" Hi\nyou", Unknown(2))],
    "{{ messages[0].parts }}": [("['a', 'b']", Value(("messages", 0, "parts")))],
    "{{ messages[0].parts | join('+') }}": [
        ("a", Field(("messages", 0, "parts", 0), 0)),
        ("+", Literal(1)),
        ("b", Field(("messages", 0, "parts", 1), 0)),
    ],
    "{% for key in tools[0] %}{{ key }}{% endfor %}": [
        ("name", Key(("tools", 0, "name"), 0)),
        ("size", Key(("tools", 0, "size"), 0)),
    ],
    "{{ tools[0].size | tojson }}{{ deep | tojson }}": [
        ("2.5", Value(("tools", 0, "size"))),
        ("false", Value(("template_kwargs", "deep"))),
    ],
    "{{ style }}\n{{ bos_token }}": [
        ("dry", Field(("template_kwargs", "style"), 0)),
        ("\n", Literal(1)),
        ("<|im_start|>", Literal(2)),
    ],
    "{% macro m(x) %}<{{ x }}>{% endmacro %}\n{{ m('a') ~ m(style) }}": [
        ("<", Literal(1)),
        ("a", Literal(2)),
        ("><", Literal(1)),
        ("dry", Field(("template_kwargs", "style"), 0)),
        (">", Literal(1)),
    ],
    "{{ '%s=%d' % (style, messages[0].count) }}": [
        ("dry", Field(("template_kwargs", "style"), 0)),
        ("=", Literal(1)),
        ("12", Value(("messages", 0, "count"))),
    ],
    "{{ 'x{}{{}}{a:>4}'.format(1, a=style) }}": [
        ("x", Literal(1)),
        ("1", Unknown(1)),
        ("{}", Literal(1)),
        (" ", Unknown(1)),
        ("dry", Field(("template_kwargs", "style"), 0)),
    ],
    "{{ '{:{}}!'.format(style, 4) }}": [("dry !", Unknown(1))],
    "{{ '' }}{{ nothing }}": [],
}


@pytest.mark.parametrize("source", ORIGINS)
def test_where_it_comes_from(source):
    assert pieces(source, CHAT) == ORIGINS[source]


def test_reasoning_keeps_the_name_that_the_client_used():
    chat = Chat([{"role": "assistant", "content": "", "reasoning": "why"}])
    path = ("messages", 0, "reasoning")
    source = "{{ messages[0].reasoning_content }}{{ messages[0].thinking }}"
    assert pieces(source, chat) == [("why", Field(path, 0)), ("why", Field(path, 0))]


@given(text=TEXT, start=st.integers(-2, 30), end=st.integers(-2, 30))
def test_a_slice_of_the_map(text, start, end):
    prompt = rendered("{{ messages[0].role ~ messages[0].content }}!", Chat([{"role": "user", "content": text}]))
    runs = prompt.slice(start, end)
    wanted = range(max(start, 0), min(end, len(prompt.text)))
    origins = [shift(run.origin, index - run.start) for run in runs for index in range(run.start, run.end)]
    assert origins == [prompt.origin_at(index) for index in wanted]
    assert prompt.runs[-1] == list(prompt.runs)[-1] == prompt.runs[len(prompt.runs) - 1 :][0]
    for outside in (-1, len(prompt.text)):
        with pytest.raises(IndexError):
            prompt.origin_at(outside)
