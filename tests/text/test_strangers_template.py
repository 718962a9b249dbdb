"""A stranger's template: it ends in time and within its size, and whatever goes wrong is one sentence; a template that
stays within its budget renders as in Jinja's own sandbox."""

import json
import time
import tracemalloc
from contextlib import nullcontext, suppress

import pytest
from jinja2 import UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from minicache.common.json_reader import DEEPEST
from minicache.core.errors import MinicacheError
from minicache.text import budget
from minicache.text.bounded import BoundedEnvironment, render
from minicache.text.budget import PER_SECOND, Budget
from minicache.text.chat import Chat
from minicache.text.content_format import sglang_wants_parts, vllm_wants_parts
from minicache.text.environment import ChatEnvironment
from minicache.text.errors import BadMessage, TemplateFailed, TemplateTooCostly
from minicache.text.renderer import Renderer, RendererName
from minicache.text.template import LONGEST_SOURCE, ChatTemplate
from minicache.text.tokenizer import HubTokenizer
from tests.text.tiny_hub import write_hub_folder

CHAT = Chat([{"role": "user", "content": "hi"}])
SECONDS = 0.25
RENDERINGS = ("render", "render_with_origins")

TOO_LONG = {
    "loops with nothing in them": "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "a loop that leaves everything out": "{% for a in range(99999) %}{% for b in range(99999) if no %}{% endfor %}"
    "{% endfor %}",
    "a macro that calls itself twice": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
    "{{ f(60) }}",
    "a recursive loop": "{% for a in [1, 2] recursive %}{% if loop.depth < 60 %}{{ loop([1, 2]) }}{% endif %}"
    "{% endfor %}",
    "calls in loops": "{% set c = cycler(1) %}{% for i in range(99999) %}{% for j in range(99999) %}{{ c.next() }}"
    "{% endfor %}{% endfor %}",
    "a search in a long text, often": "{% set x = 'a' * 2**22 %}{% for i in range(99999) %}{{ 'b' in x }}{% endfor %}",
    "two lists, compared often": "{% set x = [0] * 2**16 %}{% set y = [0] * 2**16 %}"
    "{% for i in range(99999) %}{{ x == y }}{% endfor %}",
    "a test in a filter": "{{ range(99999) | map('string') | select('in', 'b' * 2**19) | list }}",
}

TOO_LARGE = {
    "a power": "{{ 9**(9**9) }}",
    "a power of a variable": "{% set x = 9 %}{{ x ** (x ** x) }}",
    "squares": "{% set n = namespace(x=3) %}{% for i in range(100) %}{% set n.x = n.x * n.x %}{% endfor %}",
    "a text times a number": "{{ 'a' * 10**10 }}",
    "a number times a text": "{{ 10**10 * 'a' }}",
    "a text of the request, many times": "{{ (messages[0].content * 3 * 10**8) | length }}",
    "a list times a number": "{{ ([1] * 10**9) | length }}",
    "a width": "{{ '%10000000000d' | format(1) }}",
    "a precision": "{{ '%.10000000000f' % 1 }}",
    "a width of a key": "{{ '%(a(b))9999999999d' % {'a(b)': 1} }}",
    "a width of an argument": "{{ '%*d' % (10**10, 1) }}",
    "a width in map": "{{ ['%10000000000d'] | map('format', 1) | list }}",
    "many insertions": "{{ ('%s' * 100000) % (('a' * 100000,) * 100000) }}",
    "str.format": "{{ '{:>10000000000}'.format(1) }}",
    "str.format with a field in a field": "{{ '{:>{}}'.format(1, 10**10) }}",
    "str.format, many fields": "{{ ('{0}' * 100000).format('a' * 10**6) }}",
    "str.format_map": "{{ '{a:>10000000000}'.format_map({'a': 1}) }}",
    "str.format by the filter attr": "{{ ('{:>10000000000}' | attr('format'))(1) }}",
    "a text doubled": "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "a text doubled by ~": "{% set n = namespace(x='ab') %}"
    "{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "a text doubled without a loop": "{% set x = messages[0].content %}" + "{% set x = x + x %}" * 99,
    "a list doubled": "{% set x = [1] %}" + "{% set x = x + x %}" * 99,
    "lists of lists, written": "{% set x = ['ha'] %}" + "{% set x = [x, x, x, x] %}" * 60 + "{{ x }}",
    "tuples of tuples, hashed": "{% set x = ('ha',) %}" + "{% set x = (x, x) %}" * 99 + "{% set d = {x: 1} %}",
    "objects of objects, as JSON": "{% set x = {} %}" + "{% set x = {'a': x, 'b': x} %}" * 99 + "{{ x | tojson }}",
    "objects by dict()": "{% set x = {} %}" + "{% set x = dict(a=x, b=x) %}" * 99 + "{{ x | tojson }}",
    "lists of lists, compared": "{% set x = [] %}{% set y = [] %}"
    + "{% set x = [x, x] %}{% set y = [y, y] %}" * 99
    + "{{ x == y }}",
    "arguments of arguments": "{% set n = namespace(v=[1]) %}{% macro f() %}{% set n.v = varargs %}{% endmacro %}"
    "{% for i in range(99) %}{{ f(n.v, n.v) }}{% endfor %}{{ n.v }}",
    "batches of batches": "{% set n = namespace(v=[1]) %}{% for i in range(99) %}{% for row in [1] | batch(9, n.v) %}"
    "{% set n.v = row %}{% endfor %}{% endfor %}{{ n.v }}",
    "center": "{{ 'a' | center(10**11) }}",
    "the method center": "{{ 'a'.center(10**11) }}",
    "zfill": "{{ '1'.zfill(10**11) }}",
    "expandtabs": "{{ ('\\t' * 10**5).expandtabs(10**6) }}",
    "translate": "{{ ('a' * 10**5).translate({97: 'b' * 10**5}) }}",
    "to_bytes": "{{ (1).to_bytes(10**11, 'big') }}",
    "indent": "{{ ('\\n' * 10000) | indent(10**7) }}",
    "indent by a text": "{{ ('a\\n' * 10000) | indent('x' * 10**5) }}",
    "replace": "{{ ('a' * 10**5) | replace('a', 'b' * 10**5) }}",
    "replace nothing": "{{ ('a' * 10**5).replace('', 'b' * 10**5) }}",
    "join": "{{ range(10000) | join('x' * 10**5) }}",
    "the method join": "{{ ('x' * 10**5).join(['a'] * 10000) }}",
    "the indent of JSON": "{{ [[1]] | tojson(indent=10**10) }}",
    "separators of JSON": "{{ ([1] * 10000) | tojson(separators=('x' * 10**5, ':')) }}",
    "batch": "{{ [1] | batch(10**11, 2) | list }}",
    "slice": "{{ [1] | slice(10**11) | list }}",
    "sums of lists": "{{ ([[1] * 100] * 1000) | sum(start=[]) }}",
    "words of a long text": "{{ ('a ' * 2**21).split() }}",
    "letters of a long text": "{{ ('é' * 2**21) | list }}",
    "letters as arguments": "{{ dict(*('é' * 2**21)) }}",
    "strip, each letter with each other one": "{{ ('a' * 10**6).strip('b' * 10**6 + 'a') }}",
    "trim, each letter with each other one": "{{ ('a' * 10**6) | trim('b' * 10**6 + 'a') }}",
    "a search from the end": "{{ ('a' * 10**6).rfind('b' + 'a' * 5 * 10**5) }}",
    "striptags": "{{ ('<!---->' * 10**5) | striptags }}",
    "urlize": "{{ ('(' * 10**5 ~ ')' * 10**5) | urlize }}",
    "wordwrap": "{{ ('a ' * 10**5) | wordwrap(1) }}",
    "pprint": "{{ ([[1, 2]] * 10**5) | pprint }}",
    "parts of a long text, kept": "{% set x = 'a' * 2**20 %}" + "".join(f"{{% set v{i} = x[1:] %}}" for i in range(99)),
    "what is written": "{% set x = 'a' * 2**20 %}{% for i in range(99) %}{{ x }}{% endfor %}",
    "what a macro writes": "{% set x = 'a' * 2**20 %}{% macro f() %}{% for i in range(99) %}{{ x + x }}{% endfor %}"
    "{% endmacro %}{{ f() }}",
    "what a block writes": "{% block b %}{% for i in range(99) %}{{ 'a' * 2**20 }}{% endfor %}{% endblock %}",
    "a list of times": "{{ strftime_now('%A' * 10**6) }}",
}

BROKEN = {
    "ifs": "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "loops": "{% for a in [1] %}" * 30 + "{% endfor %}" * 30,
    "parentheses": "{{ " + "(" * 9000 + "1" + ")" * 9000 + " }}",
    "lists": "{{ " + "[" * 5000 + "]" * 5000 + " }}",
    "negations": "{{ " + "not " * 9000 + "1 }}",
    "sums": "{{ " + "x + " * 5000 + "1 }}",
    "attributes": "{{ x" + ".a" * 5000 + " }}",
    "filters": "{{ x" + " | e" * 5000 + " }}",
    "a long number": "{{ " + "9" * 100000 + " }}",
    "one argument twice": "{% macro f(a, a) %}{% endmacro %}",
    "one keyword twice": "{{ f(a=1, a=2) }}",
    "a break outside a loop": "{% break %}",
    "a block twice": "{% block b %}{% endblock %}{% block b %}{% endblock %}",
    "a constant as a name": "{% set None = 1 %}",
    "a size": "x" * (LONGEST_SOURCE + 1),
}


@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize("name", TOO_LONG)
def test_a_template_ends_in_time(name, rendering, monkeypatch):
    monkeypatch.setattr(budget, "PER_SECOND", 2**60)  # only the clock can end it
    renderer, start = Renderer(ChatTemplate(TOO_LONG[name], seconds=0.01)), time.monotonic()
    with pytest.raises(TemplateTooCostly, match=r"stopped.*: it ran for more than 0\.01 seconds: if it must, raise"):
        getattr(renderer, rendering)(CHAT)
    assert time.monotonic() - start < 60


# `Traced` does these in its own way; `make nightly` tries all others with origins too.
IN_RUNS = (
    "a text times a number",
    "a text of the request, many times",
    "a text doubled without a loop",
    "join",
    "replace",
)
CASES = [(name, "render") for name in TOO_LARGE] + [
    pytest.param(name, "render_with_origins", marks=() if name in IN_RUNS else pytest.mark.nightly)
    for name in TOO_LARGE
]


@pytest.mark.parametrize(("name", "rendering"), CASES)
def test_a_template_fills_no_more_memory_than_its_budget(name, rendering):
    renderer = Renderer(ChatTemplate(TOO_LARGE[name], seconds=SECONDS))
    with pytest.raises(TemplateTooCostly, match=r"the chat template was stopped.*: it (made|ran)"):
        getattr(renderer, rendering)(CHAT)


@pytest.mark.nightly
@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize("name", TOO_LARGE)
def test_memory_is_a_small_multiple_of_the_budget(name, rendering):
    """Each character that a budget allows takes a few bytes at most."""
    renderer = Renderer(ChatTemplate(TOO_LARGE[name], seconds=SECONDS))
    tracemalloc.start()
    try:
        with pytest.raises(TemplateTooCostly):
            getattr(renderer, rendering)(CHAT)
        assert tracemalloc.get_traced_memory()[1] < 8 * SECONDS * PER_SECOND
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_compiler_raises_is_one_sentence(name):
    with pytest.raises(TemplateFailed, match=r"the chat template (does not parse: .|has )") as caught:
        ChatTemplate(BROKEN[name])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1200


def test_the_line_of_what_does_not_parse():
    with pytest.raises(TemplateFailed, match=r"does not parse: .* \(line 3\)$"):
        ChatTemplate("a\nb\n{{ x. }}")


@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize(
    "source",
    [
        "{% macro f() %}{{ f() }}{% endmacro %}\n{{ f() }}",
        "{% set n = namespace(a=[]) %}{% for i in range(2000) %}{% set n.a = [n.a] %}{% endfor %}\n{{ n.a }}",
        "{% set n = namespace(a=[]) %}{% for i in range(2000) %}{% set n.a = [n.a] %}{% endfor %}\n{{ n.a | tojson }}",
    ],
)
def test_what_is_nested_too_deeply(rendering, source):
    with pytest.raises(TemplateFailed, match=r"nested too deeply \(line [12]\)"):
        getattr(Renderer(ChatTemplate(source)), rendering)(CHAT)


@pytest.mark.parametrize("name", RendererName)
def test_explaining_an_error_takes_no_longer_than_the_template_may(name):
    """A template that fails late is run again to find the message that makes it fail: all in the time of one run."""
    chat = Chat([{"role": "user", "content": "hi"}] * 8, [{"type": "function", "function": {"name": "f"}}])
    template, ends = ChatTemplate("{{ messages[0].content + 1 }}"), []
    run = template.run
    template.run = lambda variables, until: (ends.append(until), run(variables, until))[1]
    with pytest.raises(TemplateFailed, match="the chat template failed"):
        Renderer(template, name).render(chat)
    assert len(ends) > 1
    assert len(set(ends)) == 1
    with pytest.raises(TemplateTooCostly, match="ran for more"):
        ChatTemplate("{% for a in range(9999) %}{% endfor %}").run({}, until=0.0)


@pytest.mark.parametrize(
    "entry", [{"name": ["default"], "template": "x"}, {"name": {}, "template": "x"}, {}, [], 3, None]
)
@pytest.mark.parametrize("template", [["x"], {"a": 1}, 3, None])
def test_entries_of_chat_template_that_are_no_texts(tmp_path, entry, template):
    entries = [entry, {"name": "default", "template": template}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": entries}))
    with pytest.raises(TemplateFailed, match="has no chat template"):
        ChatTemplate.from_folder(tmp_path)
    entries[1]["template"] = "{{ messages[0].content }}"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": entries}))
    assert ChatTemplate.from_folder(tmp_path).render([{"role": "user", "content": "hi"}]) == "hi"


EXPRESSIONS = """
text + ' ' + text + '!' | text ~ number ~ none | text * 3 | 3 * text | [1] * 3 | text % () | '%s-%5d' % ('a', 7)
'%(a)s' % {'a': 1} | 2 ** 10 | 2 ** -1 | 7 % 3 | 7 // 2 | -number | text[1:3] | text[::-1] | list[1:] | list[::2]
text.upper() | text.split() | text.split('b') | text.rsplit('b', 1) | text.replace('b', 'cc') | text.strip('a')
text.join(['x', 'y']) | ','.join(list | map('string')) | text.center(9) | text.zfill(9) | 'a\tb'.expandtabs(4)
text.splitlines() | text.partition('b') | text.translate({97: 'x'}) | '{}-{:>5}'.format(1, 2) | '{a}'.format(a=text)
'{a}'.format_map({'a': 3}) | '{0[a]}'.format({'a': 3}) | (5).to_bytes(2, 'big') | text.startswith('a') | text.nothing
text.upper | list | text is in ['ab ba'] | 'a' in text | number == number | text is string | list is sequence
{'a': list}['a'] | {'a': 1}.items() | dict(a=1, b=2) | (1, 2) + (3,) | [list, list] | {'a': 1}.get('b', 4) | range(5)
text | title | wrong.name | wrong() | namespace(a=1).a | text | default('x') | wrong | default('x') | self | loop
"""
FILTERS = """
abs batch(2) batch(2,0) capitalize center(9) count default(1) dictsort e escape filesizeformat first float forceescape
format(1) groupby('a') indent indent('-',true) int items join join(',') last length list lower map('upper') max min
pprint reject select selectattr('a') replace('b','c') reverse round safe slice(2) slice(2,0) sort string striptags sum
title trim trim('a') truncate(3) unique upper urlencode urlize wordcount wordwrap(3) xmlattr tojson tojson(indent=1)
"""
BLOCKS = [
    "{% for x in list %}{{ loop.index }}{{ loop.last }}{{ loop.length }}{{ x }}{% else %}none{% endfor %}",
    "{% for x in list if x > 1 %}{{ loop.index }}{{ loop.length }}{{ loop.previtem }}{% else %}none{% endfor %}",
    "{% for x in [] %}{{ x }}{% else %}none{% endfor %}{% for a, b in {'a': 1}.items() %}{{ a }}{{ b }}{% endfor %}",
    "{% for x in [[1, [2]], 3] recursive %}{% if x is iterable %}<{{ loop(x) }}>{% else %}{{ x }}"
    "{{ loop.depth }}{% endif %}{% endfor %}",
    "{% macro f(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1) }}{{ f(1, 2, 3, c=4) }}"
    "{{ f(*list) }}",
    "{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}{{ text }}{% endcall %}",
    "{% set x %}{{ text }}{% endset %}{{ x }}{% filter upper %}{{ text }}{% endfilter %}"
    "{% set x = text + text %}{{ x }}",
    "{% for i in [1, 2] %}{% block b scoped %}{{ i }}{{ text }}{% endblock %}{% endfor %}{{ self.b() }}",
    "{% set n = namespace(x=1) %}{% for i in list %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}",
]
VALUES = {"text": "ab ba\n", "number": 7, "none": None, "list": [1, 2, 3]}


def sources():
    lines = EXPRESSIONS.strip().replace("\n", " | ").split(" | ")
    yield from (f"{{{{ {line} }}}}" for line in lines)
    for value in ("text", "list", "number", "{'a': 1}", "[{'a': 1}, {'a': 2}]", "wrong", "'%s'", "('a', 'b')"):
        yield from (f"{{{{ {value} | {name} }}}}" for name in FILTERS.split())
    yield from BLOCKS


def outcome(run):
    try:
        return run()
    except UndefinedError as error:
        return str(error)
    except Exception as error:
        return type(error)


def test_within_its_budget_a_template_cannot_notice_it():
    ours, jinja, failed = BoundedEnvironment(), ImmutableSandboxedEnvironment(), 0
    for source in sources():
        expected = outcome(lambda source=source: jinja.from_string(source).render(VALUES))
        found = outcome(lambda source=source: render(ours.from_string(source), VALUES, Budget()))
        if isinstance(expected, str) and " at 0x" in expected:
            assert found.partition(" at 0x")[0] == expected.partition(" at 0x")[0], source
        else:
            assert found == expected, source
        failed += not isinstance(expected, str)
    assert failed > 30  # errors too are the same


DEEP = {"[": "]", '{"a": ': "}"}


@pytest.mark.parametrize("opening", DEEP)
@pytest.mark.parametrize("name", ["tokenizer_config.json", "config.json", "generation_config.json", "tokenizer.json"])
def test_files_of_a_folder_that_are_nested_too_deeply(tmp_path, name, opening):
    write_hub_folder(tmp_path)
    for depth in (300, 990, 30_000):
        (tmp_path / name).write_text('{"a": ' + opening * depth + "1" + DEEP[opening] * depth + "}")
        with pytest.raises(MinicacheError, match=f"{name} is not "):
            HubTokenizer(tmp_path)


@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize("name", RendererName)
def test_chats_that_are_nested_deeply(name, rendering):
    """A body that is read is at most `DEEPEST` levels deep; a caller in Python may pass anything."""
    renderer = Renderer(ChatTemplate("{% for m in messages %}{{ m | tojson(indent=1) }}{% endfor %}{{ tools }}"), name)
    refused = BadMessage, TemplateFailed
    for depth, expected in ((DEEPEST // 2, nullcontext()), (400, suppress(*refused)), (5_000, pytest.raises(refused))):
        parameters, arguments = {}, "[" * depth + "]" * depth
        for _ in range(depth):
            parameters = {"a": [parameters]}
        call = {"function": {"name": "f", "arguments": {"a": parameters}}}
        written = {"function": {"name": "f", "arguments": f'{{"a": {arguments}}}'}}
        for calls in ([call], [written]):
            chat = Chat(
                [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": calls}],
                [{"type": "function", "function": {"name": "f", "parameters": parameters}}],
            )
            with expected:
                getattr(renderer, rendering)(chat)


@pytest.mark.nightly
@pytest.mark.parametrize("wants", [vllm_wants_parts, sglang_wants_parts])
def test_how_a_template_reads_parts_is_found_in_one_pass(wants):
    """Each pass over the names or calls of such a template takes a tenth of a second."""
    names = "".join(f"{{% set a{i} = a{i + 1} %}}" for i in range(2_000)) + "{% set a2000 = messages %}"
    macros = "".join(f"{{% macro m{i}(x) %}}{{% endmacro %}}{{{{ m{i}(1) }}}}" for i in range(2_000))
    start = time.process_time()
    ChatEnvironment().parse(names + macros)
    parsed = time.process_time()
    assert not wants(names + macros)
    assert time.process_time() - parsed < 20 * (parsed - start)
