"""Kinds that the published cases do not show, each with a similar case that is of another kind; and the list is
closed."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from minicache.prompts.html import PAGE
from minicache.prompts.kinds import LAYERS, WORDS, Kind, Layer
from minicache.prompts.rules.table import RULES
from tests.prompts.cases import SYS, call, result, say, then, tool
from tests.prompts.diffs import diff_of, logged, means, verdicts
from tests.prompts.templates import TEMPLATES

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "diff.md"
RIDDLES = re.compile(r"\b(behind|beside|anew|so many|somebody|nobody|whoever|told|all that|what it|another one)\b")
REST = ("hello", "bye")


def kinds(a, b, template="chatml", **more):
    return [(cause.layer, cause.kind) for cause in diff_of(a, b, means(template), **more).causes]


def heads(old: str, new: str):
    """Two requests whose system prompts differ in one line; the second has one turn more."""
    return say(f"{old}\n{SYS}", "hi"), say(f"{new}\n{SYS}", "hi", *REST)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("Request id 97bd6f0c12ab.", "Request id 24c2d9ee01f4.", Kind.nonce),
        ("id 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed", "id 7c9e6679-7425-40de-944b-e07fc1f90ae7", Kind.nonce),
        ("session aB3xK9qQ7w", "session zT8mN2pL4r", Kind.nonce),
        ("Today is Mon, 1 March 2026.", "Today is Mon, 2 March 2026.", Kind.clock),
        ("It is March 1, 2026 at 10:04 PM", "It is March 1, 2026 at 10:05 PM", Kind.clock),
        ("time=1772359207", "time=1772359252", Kind.clock),
        ("time=1772359207123", "time=1772359252456", Kind.clock),
        ("You have 950 tokens left.", "You have 870 tokens left.", Kind.counter),
        ("Progress: 12%", "Progress: 57%", Kind.counter),
        ("- [ ] read\n- [ ] write", "- [x] read\n- [ ] write", Kind.counter),
        ("[x] read", "[x] read\n[ ] write", Kind.counter),
        ("commit 97bd6f0c", "commit 24c2d9ee", Kind.prompt_edit),  # a changed revision is not a random id
        ("minicache v2.1.7", "minicache v2.1.8", Kind.counter),  # a version is not a date
        ("Speak like a pirate.", "Speak like a lawyer.", Kind.prompt_edit),
        (f"key {'9f' * 100}", f"key {'4e' * 100}", Kind.nonce),
        (f"key 9{'f' * 600}", f"key 4{'f' * 600}", Kind.prompt_edit),  # too long to be an id
        ("faced with doubt", "added with doubt", Kind.prompt_edit),  # words of the letters a to f
    ],
)
def test_words_of_the_system_prompt(old, new, kind):
    assert kinds(*heads(old, new)) == [(Layer.payload, kind)]


def test_an_epoch_far_from_the_log_s_own_time_is_no_clock():
    a, b = heads("order 1772359207", "order 1772359252")
    near, far = datetime(2026, 3, 1, 10, 0, 7), datetime(2031, 3, 1, 10, 0, 7)
    assert [c.kind for c in diff_of(logged(a, near), logged(b, near), means()).causes] == [Kind.clock]
    assert [c.kind for c in diff_of(logged(a, far), logged(b, far), means()).causes] == [Kind.nonce]


def test_a_question_more_in_a_list_is_no_hoist_and_a_reminder_is():
    tasks = f"{SYS}\n[ ] read"
    assert kinds(say(tasks, "hi"), say(f"{tasks}\n[ ] write", "hi", *REST)) == [(Layer.payload, Kind.counter)]
    assert kinds(say(SYS, "hi"), say(f"{SYS}\n\nBe brief now.", "hi", *REST)) == [(Layer.payload, Kind.hoist)]


def test_retrieval_is_between_its_own_tags_and_in_the_head():
    between = "<ctx>a</ctx>\nSpeak like a {}.\n<ctx>b</ctx>"
    assert kinds(*heads(between.format("pirate"), between.format("lawyer"))) == [(Layer.payload, Kind.prompt_edit)]
    old, new = "<ctx>Cats purr.</ctx> so?", "<ctx>Dogs bark.</ctx> so?"
    assert kinds(say(SYS, old), say(SYS, new, *REST)) == [(Layer.payload, Kind.retrieval_in_prefix)]
    late = [say(SYS, "one", "1", text, "2", "three") for text in (old, new)]
    assert kinds(late[0], then(late[1], *REST)) == [(Layer.payload, Kind.branch)]


def test_a_block_that_moved_is_long_and_was_not_there_before():
    reminder = "<reminder>mode is now build</reminder>"
    a = say(SYS, f"plan {reminder} it", "planned", "do it")
    assert kinds(a, say(SYS, "plan  it", "planned", "do it", "done", f"go {reminder}")) == [
        (Layer.payload, Kind.moved_block)
    ]
    both = say(SYS, f"plan {reminder} it", "planned", f"do it {reminder}")
    moved = say(SYS, "plan  it", "planned", f"do it {reminder}", "done", "go")
    assert kinds(both, moved) == [(Layer.payload, Kind.branch)]
    assert kinds(say(SYS, "plan it now"), say(SYS, "plan now", "planned", "do it too")) == [
        (Layer.payload, Kind.branch)
    ]


def test_one_edited_turn_among_equal_ones_is_no_window():
    a, b = (say(SYS, first, "ok", "go", "ok", "go") for first in ("one", "go"))
    assert kinds(a, then(b, "ok", "end")) == [(Layer.payload, Kind.branch)]


def test_an_object_that_the_template_writes_as_json_is_encoded_once():
    a = say(SYS, "w", call("weather", {"city": "Oslo"}), result("12C"))
    b = say(SYS, "w", call("weather", '{"city":"Oslo"}'), result("12C"))
    assert kinds(a, then(b, "cold", "ok"), "chatml-tools") == [(Layer.payload, Kind.reserialised)]


def test_a_template_that_hoists():
    first = (
        "{% for m in messages if m.role == 'system' %}{{ m.content + '\\n' }}{% endfor %}"
        "{% for m in messages if m.role != 'system' %}{{ '<' + m.role + '>' + m.content + '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
    )
    late = {"role": "system", "content": "Nine minutes left."}
    a = say(SYS, "hi")
    b = {"messages": [*say(SYS, "hi", "hello")["messages"], late, *say(None, "bye")["messages"]]}
    assert kinds(a, b, first) == [(Layer.template, Kind.hoist)]
    assert kinds(a, b) == []  # a template that leaves it in its place loses nothing


def test_template_arguments():
    body = say(SYS, "hi")
    think = {**then(body, *REST), "chat_template_kwargs": {"style": "loud", "unused": 2}}
    calm = {**body, "chat_template_kwargs": {"style": "calm", "unused": 1}}
    template = "{{ 'Be ' + style + '.\\n' }}" + TEMPLATES["chatml"]
    assert verdicts(diff_of(calm, think, means(template)))[0][:3] == (
        Layer.template_kwargs, Kind.template_arguments, "chat_template_kwargs.style",
    )  # fmt: skip
    effort = "{{ 'Effort: ' + reasoning_effort + '\\n' }}" + TEMPLATES["chatml"]
    low, high = {**body, "reasoning_effort": "low"}, {**then(body, *REST), "reasoning_effort": "high"}
    assert verdicts(diff_of(low, high, means(effort)))[0][:3] == (
        Layer.template_kwargs, Kind.template_arguments, "reasoning_effort",
    )  # fmt: skip


def test_a_list_that_is_a_set_and_one_that_is_not():
    def with_parameters(**more):
        return [tool("f", {"type": "object", "properties": {"q": {"enum": ["a", "b"]}}, "required": ["q", "r"]} | more)]

    a = say(SYS, "hi", tools=with_parameters())
    b = say(SYS, "hi", *REST, tools=with_parameters(required=["r", "q"]))
    assert verdicts(diff_of(a, b, means("chatml-tools")))[0][1:4] == (
        Kind.set_order, "tools[0].function.parameters.required", 0,
    )  # fmt: skip
    c = say(SYS, "hi", *REST, tools=with_parameters(properties={"q": {"enum": ["b", "a"]}}))
    assert set(kinds(a, c, "chatml-tools")) == {(Layer.payload, Kind.prompt_edit)}


def test_tools_in_another_order_and_one_of_them_edited_are_two_causes():
    old = [tool("alpha"), tool("mu"), tool("zeta")]
    edited = tool("zeta")
    edited["function"]["description"] = "from 2026-03-01 10:00:07 on"
    changed = tool("zeta")
    changed["function"]["description"] = "from 2026-03-01 10:00:52 on"
    a = say(SYS, "hi", tools=[*old[:2], edited])
    b = say(SYS, "hi", *REST, tools=[old[1], old[0], changed])
    assert verdicts(diff_of(a, b, means("chatml-tools")))[0][1] is Kind.tool_order
    assert verdicts(diff_of(a, b, means("chatml-tools")))[1][1:4] == (Kind.clock, "tools[2].function.description", 22)


PARTS = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for p in m.content %}{{ p.text SEPARATOR }}{% endfor %}{% endif %}{{ '|' }}{% endfor %}"
)


def parts(text):
    return {"role": "user", "content": [{"type": "text", "text": piece} for piece in text.split("~")]}


def test_parts_that_render_alike_and_parts_that_do_not():
    a, b = say(SYS, "hi there"), say(SYS, parts("hi ~there"), *REST)
    assert verdicts(diff_of(a, b, means(PARTS.replace("SEPARATOR", "")))) == (
        (Layer.none, Kind.parts, "messages[1].content", 0, 0, 0),
    )
    assert kinds(a, b, PARTS.replace("SEPARATOR", "+ '\\n'")) == [(Layer.payload, Kind.parts)]


def test_null_and_empty():
    silent = {**call("ls", "{}"), "content": None}
    a, b = say(SYS, "hi", call("ls", "{}"), result("a.py")), say(SYS, "hi", silent, result("a.py"))
    assert verdicts(diff_of(a, b, means("chatml-tools")))[0][:3] == (Layer.none, Kind.null, "messages[2].content")
    shows_null = TEMPLATES["chatml-tools"].replace("(m.content or '')", "(m.content | default('None'))")
    assert kinds(a, b, shows_null) == [(Layer.payload, Kind.null)]


def test_ids_and_marks_that_a_template_prints():
    prints_ids = TEMPLATES["chatml-tools"].replace("""'<tool_call>{"name""", """c.id + '<tool_call>{"name""")
    one, other = (say(SYS, "hi", call("ls", "{}", id), result("a.py")) for id in ("call_1f", "call_2e"))
    assert kinds(one, other, prints_ids) == [(Layer.payload, Kind.ids)]
    prints_marks = (
        "{% for m in messages %}{{ m.content }}{% if m.cache_control %}{{ '[mark]' }}{% endif %}{{ '|' }}{% endfor %}"
    )
    marked = {"role": "user", "content": "hi", "cache_control": {"type": "ephemeral"}}
    assert kinds(say(SYS, marked), say(SYS, "hi", *REST), prints_marks) == [(Layer.payload, Kind.cache_control)]


def test_a_field_that_no_prompt_shows():
    a, b = say(SYS, {"role": "user", "content": "hi", "name": "Ann"}), say(SYS, "hi", *REST)
    assert verdicts(diff_of(a, b, means())) == ((Layer.none, Kind.not_rendered, "messages[1].name", 0, 0, 0),)


def test_the_same_request_twice():
    body = say(SYS, "hi", *REST)
    diff = diff_of(body, dict(body), means())
    assert verdicts(diff) == ((Layer.none, Kind.identical, None, None, 0, 0),)
    assert (diff.diverge_token, diff.reuse.radix_tokens) == (None, diff.b_tokens - 1)


def test_another_question_is_no_loss_and_an_edited_one_is():
    a, b = say(SYS, "Where is my parcel?"), say(SYS, "Do you have the blue tent?")
    assert kinds(a, b) == [(Layer.none, Kind.new_content)]
    diff = diff_of(a, b, means())
    assert (diff.lost, diff.causes[0].gain_tokens, diff.ideal) == (False, 0, diff.reuse)
    edited = say(SYS, "Where is my parcel now?")
    assert kinds(a, edited) == [(Layer.payload, Kind.branch)]
    long = say(SYS, "one", "1", "two", "2", "three")
    assert kinds(long, say(SYS, "Where is my parcel?")) == [(Layer.none, Kind.new_content)]  # the user began again


def test_another_conversation_is_no_loss_and_a_question_put_anew_is():
    long = say(SYS, "one", "1", "two", "2", "three")
    assert kinds(long, say(SYS, "Where is my parcel?", "Which?", "The blue one.")) == [(Layer.none, Kind.new_content)]
    assert kinds(long, say(SYS, "Where is it?", "1", "two", "2", "three", "3", "four")) == [
        (Layer.payload, Kind.branch)
    ]


def test_a_repair_that_the_template_refuses_is_none():
    a = say(None, "hello there", "hi, how can I help?")
    b = say(None, "Write a title for:\nUSER: hello there\nBOT: hi, how can I help?")
    refuses = "{% if messages | length > 2 %}{{ raise_exception('too long') }}{% endif %}" + TEMPLATES["chatml"]
    assert kinds(a, b) == [(Layer.payload, Kind.side_request)]
    assert Kind.side_request not in [kind for _, kind in kinds(a, b, refuses)]


def test_a_cause_before_another_question_is_still_found():
    a, b = say(f"id 97bd6f0c\n{SYS}", "Where is my parcel?"), say(f"id 24c2d9ee\n{SYS}", "Do you have the blue tent?")
    diff = diff_of(a, b, means())
    assert [cause.kind for cause in diff.causes] == [Kind.nonce, Kind.new_content]
    assert diff.lost
    assert diff.causes[0].gain_tokens == len("97bd6f0c\n" + SYS + "<|im_end|>\n<|im_start|>user\n")


def test_a_part_of_the_conversation_again_is_no_loss():
    long = say(SYS, "one", "1", "two", "2", "three")
    short = {"messages": long["messages"][:2]}
    diff = diff_of(long, short, means())
    assert not diff.lost
    thinking = {**short, "chat_template_kwargs": {"enable_thinking": False}}
    assert diff_of({**long, **thinking, "messages": long["messages"]}, thinking, means("think-strip")).causes == ()


def test_messages_taken_out_of_the_middle_and_put_in():
    texts = ["one", "1", "two", "2", "three", "3", "four"]
    a = say(SYS, *texts)
    out = {"messages": [m for i, m in enumerate(a["messages"]) if i not in (3, 4)]}
    found = diff_of(a, then(out, "5", "six"), means()).causes
    assert [(c.kind, c.path, c.detail) for c in found] == [
        (Kind.history_rewrite, ("messages", 3, "content"), "2 messages removed")
    ]
    again = diff_of(out, then(a, "5", "six"), means()).causes
    assert [(c.kind, c.path, c.detail) for c in again] == [
        (Kind.history_rewrite, ("messages", 3, "content"), "2 messages inserted")
    ]


def test_the_sliding_window_is_not_mistaken_for_an_edit_of_every_turn():
    texts = [f"{number}: {'word ' * number}" for number in range(9)]
    (cause,) = diff_of(say(SYS, *texts[:5]), say(SYS, *texts[4:9]), means()).causes
    assert (cause.kind, cause.detail) == (Kind.window_shift, "shifted by 4 messages, 1 kept")
    (cause,) = diff_of(say(SYS, *texts[:7]), say(SYS, *texts[2:9]), means()).causes
    assert (cause.kind, cause.detail) == (Kind.window_shift, "shifted by 2 messages, 5 kept")


def test_reasoning_that_the_client_dropped_and_the_template_would_write():
    keeps = TEMPLATES["think-strip"].replace("loop.index0 > ns.q and ", "")
    thought = "<think>\nEnough.\n</think>\n\nIt prints 1.<|im_end|>"
    a, b = say(SYS, "Sum"), say(SYS, "Sum", "It prints 1.", "Hi")
    assert verdicts(diff_of(a, b, means(keeps), thought))[0][:3] == (
        Layer.payload, Kind.history_rewrite, "messages[2].reasoning_content",
    )  # fmt: skip
    assert kinds(a, b, "think-strip", generated=thought) == [(Layer.template, Kind.template_asymmetry)]
    kept = {
        **b,
        "messages": [*b["messages"][:2], {**b["messages"][2], "reasoning_content": "Enough."}, b["messages"][3]],
    }
    assert kinds(a, kept, keeps, generated=thought) == []


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ('{"city": "Oslo", "n": 1}', '{"city":"Oslo","n":1}', Kind.reserialised),
        ('{"city": "\\u00d8", "n": 1}', '{"city": "Ø", "n": 1.0}', Kind.reserialised),
        ('{"city": "Oslo", "n": 1}', '{"n": 1, "city": "Oslo"}', Kind.reserialised),
        ('{"city": "Oslo", "n": 1}', '{"city": "Oslo", "n": 2}', Kind.counter),
        ("12", "12.0", Kind.counter),  # text that only looks like JSON
    ],
)
def test_arguments_that_a_client_wrote_anew(old, new, kind):
    a, b = (say(SYS, "w", call("weather", text), result("12C")) for text in (old, new))
    assert kinds(a, then(b, "cold", "ok"), "chatml-tools") == [(Layer.payload, kind)]


def test_space_that_a_client_took_from_an_old_message():
    a, b = say(SYS, "hi ", "hello \n", "bye"), say(SYS, "hi ", "hello", "bye", "x", "y")
    assert verdicts(diff_of(a, b, means()))[0][:4] == (Layer.payload, Kind.trim, "messages[2].content", 5)


def test_arguments_that_came_back_as_an_object():
    compact = '<tool_call>{"name": "weather", "arguments": {"city":"Oslo"}}</tool_call><|im_end|>'
    b = say(SYS, "w", call("weather", {"city": "Oslo"}), result("12C"))
    assert verdicts(diff_of(say(SYS, "w"), b, means("chatml-tools"), compact))[0][:4] == (
        Layer.renderer, Kind.reserialised, "messages[2].tool_calls[0].function.arguments", 8,
    )  # fmt: skip


def test_an_answer_that_was_edited():
    b = say(SYS, "w", "It rains.", "thanks")
    assert verdicts(diff_of(say(SYS, "w"), b, means(), "It snows.<|im_end|>"))[0][:4] == (
        Layer.payload, Kind.branch, "messages[2].content", 3,
    )  # fmt: skip


def test_the_end_of_a_prompt_is_never_called_wrong():
    """A ends with its generation prompt: B may continue in any way."""
    thinks = TEMPLATES["chatml"].replace("assistant\\n' }}{% endif", "assistant\\n<think>\\n' }}{% endif")
    for turns in (
        ("hello", "bye"),
        ({"role": "user", "content": "and?"},),
        ({"role": "system", "content": "Note."}, "hi"),
    ):
        assert kinds(say(SYS, "hi"), say(SYS, "hi", *turns), thinks) == []


def test_a_template_that_trims_all_but_the_last_message():
    trims = "{% for m in messages %}{{ m.content if loop.last else m.content | trim }}{{ '<end>' }}{% endfor %}"
    assert kinds(say(SYS, "hi \n"), say(SYS, "hi \n", *REST), trims) == [(Layer.template, Kind.trim)]
    # White space that the template itself writes is not trimmed text.
    spaces = "{% for m in messages %}{{ m.content }}{% if loop.last %}{{ '  ' }}{% endif %}{{ '<end>' }}{% endfor %}"
    assert kinds(say(SYS, "hi"), say(SYS, "hi", *REST), spaces) == [(Layer.template, Kind.template_asymmetry)]


def test_a_template_cause_and_a_payload_cause_stack():
    template = TEMPLATES["tools-last-user"]
    a = say(f"{SYS}", "one [id 97bd6f0c]", tools=[tool("alpha")])
    b = say(f"{SYS}", "one [id 24c2d9ee]", "1", "two", tools=[tool("alpha")])
    assert kinds(a, b, template) == [(Layer.template, Kind.template_asymmetry), (Layer.payload, Kind.nonce)]


def test_every_kind_has_words_and_stands_in_the_reference():
    assert set(WORDS) == set(Kind)
    text = REFERENCE.read_text(encoding="utf-8")
    head, table = text.split("## Kinds")
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == [str(kind) for kind in Kind]
    assert re.findall(r"^\| `([\w-]+)` \|", head.split("## Layers")[1], re.M) == [str(layer) for layer in Layer]
    for kind, layers in re.findall(r"^\| `(\w+)` \| ([\w ,-]+) \|", table, re.M):
        written = {Layer(name) for name in layers.split(", ")}
        assert {rule.layer for rule in RULES if rule.kind == kind} <= written
    assert all(rule.detect.__doc__ for rule in RULES)


def test_the_report_speaks_plain_english():
    """Words, layers, advice and the page say what is meant: after instead of behind, a noun instead of all that."""
    texts = [*WORDS.values(), *LAYERS.values(), *(rule.fix for rule in RULES), PAGE.read_text(encoding="utf-8")]
    texts.append(REFERENCE.read_text(encoding="utf-8"))
    assert [match[0] for match in map(RIDDLES.search, texts) if match] == []
    assert set(LAYERS) == set(Layer)
    rows = re.findall(r"^\| `([\w-]+)` \| (.+) \|$", REFERENCE.read_text(encoding="utf-8").split("## Layers")[1], re.M)
    assert dict(rows[: len(Layer)]) == {str(layer): words for layer, words in LAYERS.items()}
