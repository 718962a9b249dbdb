"""Bodies of any shape cost `diff` a time that is about linear in their size, or are refused in a sentence."""

import pytest

from minicache.prompts import bodies, diff, site
from minicache.prompts.earlier import Earlier, starts_of_ids
from minicache.prompts.errors import BadLog
from minicache.prompts.prompt import Means, Prompt, Source
from minicache.prompts.reuse import common_prefix
from minicache.prompts.rules import history
from minicache.prompts.rules.table import FIELDS
from minicache.prompts.site import Later
from minicache.prompts.spans import common_with_start
from minicache.text.byte_tokenizer import PlainByteTokenizer
from tests.growth import require_linear
from tests.prompts.cases import SYS, say
from tests.prompts.diffs import diff_of, logged, means

NAMES_OF_TOOLS = (
    "{% for t in tools or [] %}{{ t.name }} {% endfor %}{% for m in messages %}{{ m.content }}|{% endfor %}"
)


def tools(n):
    return [{"name": f"t{i}"} for i in range(n)]


LISTS = {
    "tools in another order": lambda n: (say(SYS, "u", tools=tools(n)), say(SYS, "u", tools=tools(n)[::-1])),
    "other tools": lambda n: (say(SYS, "u", tools=tools(n)), say(SYS, "u", tools=[{"name": "new"}, *tools(n)])),
    "equal messages": lambda n: (say(SYS, *["m"] * n, "end"), say(SYS, *["m"] * (n - 1), "x", *["m"] * n)),
    "equal messages, moved": lambda n: (say(SYS, "a", *["m"] * n, "z"), say(SYS, *["m"] * n, "y", "y")),
}  # fmt: skip
TEXTS = {
    "lines between tags": lambda n: [
        "<r>" + "\n".join(f"{i} {'a' if i % 4 else end}" for i in range(n)) + "</r>" for end in "ab"
    ],
    "marks on one letter": lambda n: ("x" + "\u0301\u0316" * n, "x" + "\u0316\u0301" * n),
    "words of a cut": lambda n: ("y" * 5 * n, "[" + "cut " * n),
    "open brackets": lambda n: ("y" * 5 * n, "[" * n),
}


def site_of(a, b, template="chatml"):
    prompts = [Prompt(Source(logged(body).body.payload), means(template)) for body in (a, b)]
    found = Later(Earlier(prompts[0]), prompts[1]).site
    assert found is not None
    return found


@pytest.mark.parametrize("shape", LISTS)
def test_lists_are_compared_in_linear_time(shape):
    def work(n):
        found = site_of(*LISTS[shape](n), NAMES_OF_TOOLS)
        detect = lambda: [list(rule.detect(found)) for rule in history.RULES]  # noqa: E731
        detect()  # this computes, untimed, what the site keeps
        return detect

    require_linear(work, 1500)


@pytest.mark.parametrize("shape", TEXTS)
def test_texts_are_compared_in_linear_time(shape):
    def work(n):
        found = site_of(*(say(None, text, "u") for text in TEXTS[shape](n)))
        (change,) = found.changes()
        return lambda: [list(rule.detect(found, change)) for rule in FIELDS]

    require_linear(work, 1500)


def test_tokens_that_are_no_text_are_placed_in_linear_time():
    require_linear(lambda n: lambda: starts_of_ids(PlainByteTokenizer(), [0x80] * n, n), 2000)


def test_a_long_prompt_is_rendered_a_bounded_number_of_times(monkeypatch):
    """Each value that differs is a cause that is tried; all of them have to be, in a short prompt."""
    rendered = []
    text = Means.text
    monkeypatch.setattr(Means, "text", lambda self, source: rendered.append(1) or text(self, source))
    monkeypatch.setattr(site, "TRIED", 0)
    a, b = ({f"{name}{i}": i for i in range(1000)} for name in "kj")
    for pair in (
        [say(SYS, "u", tools=[{"parameters": keys}]) for keys in (a, b)],
        [say(SYS, "u", chat_template_kwargs=keys) for keys in (a, b)],
    ):
        rendered.clear()
        diff_of(*pair, means("{{ tools | tojson }}{% if j1 is defined %}{{ [j1, j2] }}{% endif %}"))
        assert 0 < len(rendered) < 4 * site.LEAST_TRIED


def test_a_comparison_that_looks_at_too_many_characters_says_so(monkeypatch):
    a, b = (
        say("\n".join(f"- [{box}] {i}" for i in range(9)) + " end", *[f"{box}{i}" for i in range(9)]) for box in " x"
    )
    assert not diff_of(a, b, means()).notes
    monkeypatch.setattr(diff, "MAX_CHARACTERS", 0)
    found = diff_of(a, b, means())
    assert len(found.causes) == 1
    assert diff.PARTLY in found.notes[0]


def test_a_body_with_too_many_values_is_refused(monkeypatch):
    monkeypatch.setattr(bodies, "MOST_VALUES", 20)
    logged(say(SYS, "u"))
    with pytest.raises(BadLog, match="more than 20 values"):
        logged(say(SYS, "u", tools=[{}] * 20))


def test_pieces_that_equal_the_beginning():
    assert common_with_start("aabaab.aab") == [10, 1, 0, 3, 1, 0, 0, 3, 1, 0]
    for items in ("", "a", "aaaa", "abcabcabd"):
        assert common_with_start(items) == [common_prefix(items, items, 0, place) for place in range(len(items))]
