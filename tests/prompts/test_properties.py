"""Laws of the verdict over random conversations: the changed field is the cause, and no other."""

import copy
import unicodedata

from hypothesis import assume, given
from hypothesis import strategies as st

from minicache.prompts.examine import examine
from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.prompt import Means, Prompt, Source
from minicache.prompts.reuse import Cached, by_formula, common_prefix
from minicache.prompts.values import value_at
from tests.prompts.cases import say, tool
from tests.prompts.diffs import diff_of, logged, means
from tests.prompts.templates import TEMPLATES
from tests.prompts.toys import ComposedBytes, ToyPairs

WORDS = st.sampled_from(
    [
        "the",
        "a",
        "cache",
        "block",
        "prefix",
        "token",
        "prompt",
        "reads",
        "writes",
        "finds",
        "loses",
        "keeps",
        "warm",
        "cold",
        "long",
        "short",
        "<b>",
        "{x}",
        "é",
        "界",
        "\n",
    ]
)
TEXT = st.lists(WORDS, min_size=3, max_size=20).map(" ".join)


@st.composite
def conversations(draw, min_turns=1, max_turns=7):
    """A system prompt and an odd number of turns, so that the last is the user's. A number makes each turn unique."""
    turns = draw(st.integers(min_turns // 2, max_turns // 2)) * 2 + 1
    return say(draw(TEXT), *(f"turn {number}: {draw(TEXT)}" for number in range(turns)))


APPENDED = st.tuples(TEXT, TEXT).map(lambda pair: [f"answer: {pair[0]}", f"question: {pair[1]}"])
CHATML = means()


def with_turns(body, turns):
    more = say(None, {"role": "assistant", "content": turns[0]}, *turns[1:])["messages"]
    return {**body, "messages": [*body["messages"], *more]}


@st.composite
def injected(draw, conversation):
    """A copy with one changed character in one message, and its place."""
    body = copy.deepcopy(conversation)
    index = draw(st.integers(0, len(body["messages"]) - 1))
    text = body["messages"][index]["content"]
    offset = draw(st.integers(0, len(text) - 1))
    letter = draw(st.sampled_from([letter for letter in "QZ#" if letter != text[offset]]))
    body["messages"][index]["content"] = text[:offset] + letter + text[offset + 1 :]
    return body, ("messages", index, "content"), offset


@given(st.data(), conversations(), st.sampled_from(sorted(TEMPLATES)))
def test_origins_that_an_edit_leaves_alone_are_those_of_a_new_rendering(data, conversation, template):
    """Origins carried over an edit equal those of a new rendering, also if a template writes a text twice, trimmed or
    as JSON."""
    using = means(template)
    body, path, _ = data.draw(injected(conversation))
    source, edited = (Source(logged(each).body.payload) for each in (conversation, body))
    text = data.draw(st.sampled_from([value_at(edited.payload, path), " ", "", "other\ntext "]))
    before = Prompt(source, using)
    _ = before.rendered
    after = before.edited(source.with_value(path, text))
    assert list(after.rendered.runs) == list(using.rendered(after.source).runs)
    assert after.rendered.text == after.text


@given(st.data(), conversations(), APPENDED)
def test_a_change_anywhere_is_blamed_at_its_path_and_offset(data, conversation, turns):
    changed, path, offset = data.draw(injected(conversation))
    diff = diff_of(conversation, with_turns(changed, turns), CHATML)
    assert [(c.layer, c.path, c.offset) for c in diff.causes] == [(Layer.payload, path, offset)]
    assert diff.lost
    # After the repair B extends all of A except A's generation prompt.
    assert diff.ideal.lcp == diff.cached_tokens_of_a


@given(conversations(), APPENDED, st.sampled_from(["chatml", "think-strip", "trim", "tools-last-user", "date"]))
def test_an_append_never_blames_a_field(conversation, turns, template):
    appended = with_turns(conversation, turns)
    diff = diff_of(conversation, appended, means(template))
    assert all(cause.layer is not Layer.payload for cause in diff.causes)
    if template == "chatml":
        assert diff.causes == ()
        assert not diff.lost


@given(conversations(), TEXT)
def test_an_answer_that_comes_back_as_it_was_is_reused(conversation, answer):
    appended = with_turns(conversation, [answer, "and then?"])
    diff = diff_of(conversation, appended, CHATML, f"{answer}<|im_end|>")
    assert diff.causes == ()
    assert diff.reuse.lcp == diff.cached_tokens_of_a


NAMES = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "delta", "kappa", "mu", "zeta"]), min_size=2, max_size=6, unique=True
)


@given(st.data(), conversations(), APPENDED, NAMES)
def test_a_permutation_of_tools_is_their_order(data, conversation, turns, names):
    order = data.draw(st.permutations(names))
    assume(order != names)
    a = {**conversation, "tools": [tool(name) for name in names]}
    b = {**with_turns(conversation, turns), "tools": [tool(name) for name in order]}
    diff = diff_of(a, b, means("chatml-tools"))
    first = common_prefix(names, order)
    assert [(c.layer, c.kind, c.path) for c in diff.causes] == [
        (Layer.payload, Kind.tool_order, ("tools", first, "function", "name"))
    ]
    assert diff.ideal.lcp == diff.cached_tokens_of_a


@given(st.data(), conversations(), APPENDED, NAMES)
def test_a_tool_more_or_less_is_not_an_order(data, conversation, turns, names):
    more = list(names)
    more.insert(data.draw(st.integers(0, len(names))), "omega")
    lists = [[tool(name) for name in each] for each in (names, more)]
    if data.draw(st.booleans()):
        lists.reverse()
    diff = diff_of(
        {**conversation, "tools": lists[0]},
        {**with_turns(conversation, turns), "tools": lists[1]},
        means("chatml-tools"),
    )
    assert {(c.layer, c.kind) for c in diff.causes} == {(Layer.payload, Kind.tool_set_changed)}


@given(st.data(), conversations(min_turns=3), APPENDED)
def test_two_causes_are_both_found_with_their_own_gains(data, conversation, turns):
    """The gain of each cause is the distance from its place to the next one, computed here from the texts."""
    size = len(conversation["messages"])
    first = data.draw(st.integers(0, size - 2))
    second = data.draw(st.integers(first + 1, size - 1))
    a, b = copy.deepcopy(conversation), copy.deepcopy(conversation)
    for index in (first, second):
        a["messages"][index]["content"] += " [id 7f3a9c21] end"
        b["messages"][index]["content"] += " [id 7f3a0d55] end"
    b = with_turns(b, turns)
    pair = examine(logged(a), logged(b), CHATML)
    places = [pair.earlier.text.find("9c21", 0), pair.earlier.text.rfind("9c21")]
    tokens = [len(pair.earlier.text[:place].encode()) for place in places]
    causes = pair.diff.causes
    assert [c.path for c in causes] == [("messages", first, "content"), ("messages", second, "content")]
    assert {c.kind for c in causes} == {Kind.nonce}
    assert pair.diff.reuse.lcp == tokens[0]
    assert [c.gain_tokens for c in causes] == [tokens[1] - tokens[0], pair.diff.cached_tokens_of_a - tokens[1]]


@given(st.data(), conversations(), APPENDED)
def test_every_offset_is_that_of_the_field_itself(data, conversation, turns):
    changed, path, _ = data.draw(injected(conversation))
    b = with_turns(changed, turns)
    (cause,) = diff_of(conversation, b, CHATML).causes
    a_text, b_text = value_at(conversation, path), value_at(b, path)
    assert a_text[: cause.offset] == b_text[: cause.offset]
    assert a_text[cause.offset] != b_text[cause.offset]


@st.composite
def bodies(draw):
    """Any request: a conversation cut, shuffled or rewritten, with tools and arguments or without."""
    body = draw(conversations())
    messages = list(body["messages"])
    if draw(st.booleans()):
        messages = messages[draw(st.integers(0, len(messages) - 1)) :]
    for _ in range(draw(st.integers(0, 2))):
        index = draw(st.integers(0, len(messages) - 1))
        changed = draw(
            st.one_of(TEXT, st.sampled_from(["", " x ", "caf\u00e9", "cafe\u0301", "id 97bd6f0c", "10:00:07"]))
        )
        messages[index] = {**messages[index], "content": changed, **draw(st.sampled_from(EXTRAS))}
    more = {"tools": [tool(name) for name in draw(NAMES)]} if draw(st.booleans()) else {}
    arguments = {"chat_template_kwargs": {"enable_thinking": False}} if draw(st.booleans()) else {}
    return {"messages": messages, **more, **arguments}


EXTRAS = [
    {}, {"role": "system"}, {"role": "tool"}, {"reasoning_content": "Think."}, {"cache_control": {}},
    {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
    {"tool_calls": [{"id": "c2", "type": "function", "function": {"name": "f", "arguments": '{"a":1.0}'}}]},
]  # fmt: skip


@given(bodies(), bodies(), st.sampled_from(sorted(TEMPLATES)), st.one_of(st.just(""), TEXT), st.integers(1, 20))
def test_any_two_requests_can_be_compared(a, b, template, answer, block_size):
    """The gains are never negative and lead from the reuse to the ideal, and a request compared with itself has no
    cause."""
    diff = examine(logged(a), logged(b), means(template), generated=answer, block_size=block_size).diff
    assert all(cause.gain_tokens >= 0 for cause in diff.causes)
    assert diff.reuse.radix_tokens + sum(cause.gain_tokens for cause in diff.causes) == diff.ideal.radix_tokens
    assert (diff.diverge_token is None) == (diff.reuse.lcp in (diff.cached_tokens_of_a, diff.b_tokens))
    assert not diff_of(a, copy.deepcopy(a), means(template)).lost


LETTERS = st.text("abc|", min_size=1, max_size=12)


def segmented(data, toy, text):
    """Any tokens that decode to the text."""
    ids, rest = [], text
    while rest:
        fits = [piece for piece in toy.pieces if rest.startswith(piece)]
        piece = data.draw(st.sampled_from(sorted(fits)))
        ids.append(toy.pieces[piece])
        rest = rest[len(piece) :]
    return ids


@given(LETTERS, LETTERS, st.data())
def test_any_tokens_of_an_answer_can_be_compared(prompt, answer, data):
    """The model may generate its text in any tokens: if B cannot reuse some, the cause is the tokenizer or a seam."""
    toy = ToyPairs()
    ids = segmented(data, toy, answer)
    a = logged({"prompt": prompt}, response={"choices": [{"token_ids": ids}]})
    diff = diff_of(a, {"prompt": prompt + answer + "|c"}, Means(toy))
    assert {cause.layer for cause in diff.causes} <= {Layer.tokenizer}
    canonical = toy.encode(prompt + answer + "|c")
    cached = [*toy.encode(prompt), *ids]
    assert diff.lost == (canonical[: len(cached)] != cached)
    if diff.lost:
        assert diff.ideal.lcp == len(cached)


@given(LETTERS, LETTERS, LETTERS, st.data())
def test_any_two_completions_with_any_tokens_can_be_compared(prompt, answer, other, data):
    toy = ToyPairs()
    logs = [{"choices": [{"token_ids": segmented(data, toy, answer)}]}, {}]
    for log, text in zip(logs, (prompt, other), strict=True):
        if data.draw(st.booleans()):
            log["prompt_token_ids"] = [toy.pieces["<bos>"]] * data.draw(st.integers(0, 1)) + segmented(data, toy, text)
    pair = ({"prompt": text} for text in (prompt, other))
    diff = diff_of(*(logged(body, response=log) for body, log in zip(pair, logs, strict=True)), Means(toy))
    assert all(cause.gain_tokens >= 0 for cause in diff.causes)
    assert diff.reuse.radix_tokens + sum(cause.gain_tokens for cause in diff.causes) == diff.ideal.radix_tokens


CAFES = st.lists(st.sampled_from(["caf\u00e9", "cafe\u0301", "cafe", " ", "e\u0301"]), min_size=1, max_size=6).map(
    "".join
)


@given(CAFES, CAFES)
def test_only_what_a_normaliser_keeps_apart_is_a_loss(a, b):
    using = means(tokenizer=ComposedBytes())
    diff = diff_of(say(a, "hi"), say(b, "hi", "hello", "bye"), using)
    same = unicodedata.normalize("NFC", a) == unicodedata.normalize("NFC", b)
    assert diff.lost != same
    if a != b and same:
        assert [(cause.layer, cause.kind) for cause in diff.causes] == [(Layer.none, Kind.normaliser)]


TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=80)


@given(TOKENS, TOKENS, st.integers(1, 20))
def test_the_formula_is_what_the_caches_find(cached, prompt, block_size):
    found = Cached(cached, block_size).reuse(prompt)
    assert found == by_formula(found.lcp, len(prompt), block_size)


@given(
    st.lists(st.integers(0, 1), max_size=40),
    st.lists(st.integers(0, 1), max_size=40),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_the_common_prefix_is_the_naive_one(a, b, a_start, b_start):
    a_start, b_start = min(a_start, len(a)), min(b_start, len(b))
    pairs = list(zip(a[a_start:], b[b_start:], strict=False))
    naive = next((i for i, (x, y) in enumerate(pairs) if x != y), len(pairs))
    assert common_prefix(a, b, a_start, b_start) == naive
