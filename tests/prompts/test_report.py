"""The report as text, JSON and page, also with every text hidden."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from minicache.prompts.examine import examine
from minicache.prompts.html import page
from minicache.prompts.report import Costs, State, character, drawn, lines, num_blocks, state, to_json
from minicache.prompts.shown import Shown
from tests.prompts.cases import CASES, SYS, say, tool
from tests.prompts.diffs import examined, logged, means

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PLAIN, FREE = Shown(), Costs()
HOSTILE = "<script>document.title='owned'</script><b onmouseover=alert(1)>&amp; \"quoted\" </pre></style>"


def case(name):
    return examined(next(case for case in CASES if case.name == name))


def hostile_pair():
    a = say(f"{HOSTILE} id 97bd6f0c\n{SYS}", HOSTILE)
    b = say(f"{HOSTILE} id 24c2d9ee\n{SYS}", HOSTILE, "hello", "bye")
    return examine(logged(a), logged(b), means())


def test_the_report_in_full():
    report = "\n".join(lines(case("C01c"), Costs(speed=1000, price=3.0, cached_price=0.3), PLAIN))
    assert report.startswith(
        "First differing token: 39, counted from 0 (character 39 of both texts)\n"
        "  A, the earlier request, left 304 tokens in the cache; B's prompt has 373\n"
        "  each byte counts as one token; use --tokenizer to count with your model's tokenizer\n"
        "Reusable blocks: 2 of 19 whole blocks (block size 16)\n"
        "  32 tokens with vLLM, 39 with SGLang (page 1)\n\n"
        "  before  tem\\nclient-tag: v=2.1.7.\n  A       97b; tag=97bd6;\\nYo\n  B       24c; tag=24c2d;\\nYo\n"
    )
    assert (
        "  A  ■■╳▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒\n     19 blocks\n"
        "  B  ■■╳▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒░░░░░\n     24 blocks, the last with 5 of 16 tokens\n"
    ) in report
    assert "Cause 1 of 2: nonce" in report
    assert (
        "  where   messages[0].content, character 20\n  A       97b\n  B       24c\n  also    97bd6  →  24c2d\n"
        in report
    )
    assert "loss    98 tokens, 6 blocks; 0.098 s of prefill, 0.000265 in money, each time" in report
    assert "fixed   reuse 137 → 304 tokens, 8 → 19 blocks (simulated)" in report
    assert report.endswith("The first of 2 causes is nonce (layer payload) at messages[0].content, character 20.")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("C24", "No loss: B extends A."),
        ("C16suf", "No loss: B continues where A's conversation ends."),
        (
            "C23",
            "No loss: the requests differ in cache_control (messages[3].cache_control), which is not part of the "
            "prompt.",
        ),
        (
            "C09",
            "B reuses 166 of 576 cached tokens (10 of 36 blocks). The cause is template_asymmetry (layer template), ",
        ),
        ("C12", "The cause is template_clock (layer template), line 1 of the template."),
    ],
)
def test_verdicts_in_a_sentence(name, sentence):
    assert sentence in list(lines(case(name), FREE, PLAIN))[-1]


@pytest.mark.parametrize(("name", "words"), [("C07", "entry 1"), ("C27", "entry 0"), ("C06", "character 0")])
def test_an_offset_says_what_it_counts(name, words):
    report = "\n".join(lines(case(name), FREE, PLAIN))
    assert re.search(rf"  where   tools\S*, {words}\n", report)


def test_a_text_that_a_normaliser_hides_has_two_places():
    diff = replace(case("C01c").diff, characters=(41, 40))
    assert character(diff) == "character 41 of A's text and 40 of B's"


def test_the_requests_of_a_template_cause_are_said_to_be_a_mere_append():
    assert "B's JSON only appends to A's" in "\n".join(lines(case("C09"), FREE, PLAIN))
    assert "B's JSON only appends to A's" not in "\n".join(lines(case("C01c"), FREE, PLAIN))
    asks = [say(SYS, "hi", chat_template_kwargs={"style": style}) for style in ("calm", "loud")]
    argument = examine(*map(logged, asks), means("{{ style }}|{{ messages[0].content }}"))
    assert "B's JSON only appends to A's" not in "\n".join(lines(argument, FREE, PLAIN))


def test_json_has_its_shape():
    found = json.loads(json.dumps(to_json(case("C01c"), FREE, PLAIN)))
    assert list(found) == [
        "a", "b", "generated_tokens", "cached_tokens_of_a", "diverge_token", "reusable", "context", "causes", "verdict",
    ]  # fmt: skip
    assert found["reusable"] == {
        "block_size": 16, "blocks": 2, "total_blocks": 19, "vllm_tokens": 32, "radix_tokens": 39,
    }  # fmt: skip
    assert found["causes"][0] == {
        "layer": "payload", "kind": "nonce", "path": "messages[0].content", "offset": 20,
        "a_text": "97b", "b_text": "24c", "gain_tokens": 98, "gain_blocks": 6, "fix": found["causes"][0]["fix"],
    }  # fmt: skip
    assert to_json(case("C01c"), Costs(speed=1000), PLAIN)["causes"][0]["gain_seconds"] == 0.098
    assert to_json(case("C24"), FREE, PLAIN)["diverge_token"] is None


SECRET = "quokka"  # in every text below, and in no text of minicache


def secret_pairs():
    """Pairs for every family of causes; each of their texts contains the secret."""
    system, ask = f"{SECRET} id 97bd6f0c", f"ask {SECRET}"
    names = [f"{SECRET}_a", f"{SECRET}_b"]
    yield say(system, ask), say(system.replace("97bd6f0c", "24c2d9ee"), ask, f"ok {SECRET}", ask)
    yield say(system, ask, tools=list(map(tool, names))), say(system, ask, "x", ask, tools=list(map(tool, names[::-1])))
    yield say(system, ask, tools=[tool(names[0])]), say(system, ask, "x", ask, tools=[])
    yield (
        say(system, f"{ask}\n<{SECRET}>some {SECRET} text</{SECRET}>"),
        say(system, ask, "x", f"{ask}\n<{SECRET}>some {SECRET} text</{SECRET}>"),
    )
    yield say(system, *(f"{n} {ask}" for n in range(5))), say(system, *(f"{n} {ask}" for n in range(2, 7)))
    yield say(system, ask), say(system, f"{SECRET} now?", "x", ask)
    yield say(system, ask, cache_salt=SECRET), say(system, ask, cache_salt="other")
    yield say(system, ask), say(system, {"role": "user", "content": ask, SECRET: SECRET}, "x", ask)


@pytest.mark.parametrize("pair", list(secret_pairs()))
def test_redacted_output_has_no_text_of_a_request(pair):
    found, shown = examine(*map(logged, pair), means("chatml-tools")), Shown(redact=True)
    assert found.diff.causes
    shows = [json.dumps(to_json(found, FREE, each)) + page(found, FREE, each) for each in (PLAIN, shown)]
    assert SECRET in shows[0]
    assert SECRET not in shows[1] + "\n".join(lines(found, FREE, shown))


def test_a_key_of_a_tool_that_an_api_has_not_named_is_hidden_in_paths():
    one, other = ({"type": "object", "properties": {"salary_of_ann": {"type": t}}} for t in ("string", "number"))
    a, b = say(SYS, "hi", tools=[tool("f", one)]), say(SYS, "hi", "x", "y", tools=[tool("f", other)])
    pair = examine(logged(a), logged(b), means("chatml-tools"))
    assert (
        to_json(pair, FREE, PLAIN)["causes"][0]["path"] == "tools[0].function.parameters.properties.salary_of_ann.type"
    )
    assert "salary" not in json.dumps(to_json(pair, FREE, Shown(redact=True)))


def test_equal_texts_have_equal_hashes_in_one_report_and_others_in_the_next():
    one, other = Shown(redact=True), Shown(redact=True)
    assert one.text("secret") == one.text("secret") != one.text("secreT")
    assert one.text("secret") != other.text("secret")
    assert one.text("") == ""


def test_no_control_character_reaches_a_terminal():
    a, b = say("\x1b[31mred\x07 id 97bd6f0c", "hi"), say("\x1b[31mred\x07 id 24c2d9ee", "hi", "x", "y")
    report = "\n".join(lines(examine(logged(a), logged(b), means()), FREE, PLAIN))
    assert "\\x1b[31mred\\x07" in report
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", report)


def test_no_character_of_the_page_turns_the_writing_or_acts_on_a_terminal():
    nasty = "\x1b[31m\x07\x9b5m\u202e\u2066\u200f\u2028\x85\ud800"
    a, b = (say(f"two\nlines {nasty} id {id}", nasty, model="m") for id in ("97bd6f0c", "24c2d9ee"))
    shows = page(examine(logged(a), logged(b), means()), FREE, PLAIN)
    assert not re.search("[^\n -~]", "".join(char for char in shows if not char.isprintable()))
    assert "two\nlines \\x1b[31m\\x07\\x9b5m\\u202e" in re.sub("<[^>]*>", "", shows)


def test_a_long_text_is_cut_on_one_line():
    assert PLAIN.line("x" * 5000, 400) == "x" * 200 + " […] " + "x" * 200


def test_every_block_has_a_state():
    diff = case("C01c").diff
    assert [state(diff, block) for block in range(num_blocks(diff, diff.b_tokens))] == [
        *[State.reused] * 2, State.parted, *[State.lost] * 16, *[State.computed] * 5,
    ]  # fmt: skip
    assert drawn(diff, diff.b_tokens, 24) == "■■╳" + "▒" * 16 + "░" * 5
    assert drawn(diff, diff.b_tokens, 6) == "╳▒▒▒▒░"  # the first of four, or the difference
    assert drawn(diff, 16 * 2, 6) == "■■"  # the first difference is after its end
    assert drawn(diff, 0, 10) == ""
    assert "╳" not in drawn(case("C24").diff, 166)


class Texts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def test_markup_in_a_prompt_is_text_on_the_page():
    parser = Texts()
    parser.feed(page(hostile_pair(), FREE, PLAIN))
    tags = [tag for tag, _ in parser.tags]
    assert "script" not in tags
    assert "b" not in tags
    assert not any(name.startswith("on") for _, attributes in parser.tags for name in attributes)
    assert HOSTILE[:40] in "".join(parser.text)
    assert not any(tag in ("link", "img", "iframe") or "src" in attributes for tag, attributes in parser.tags)


def test_of_a_long_prompt_the_page_shows_what_is_around_the_first_difference():
    texts = ["x " * 8000 + f"id {id} " + "y " * 8000 for id in ("97bd6f0c", "24c2d9ee")]
    long = examine(*(logged(say(text, "hi")) for text in texts), means())
    shows = page(long, FREE, PLAIN)
    assert shows.count('class="block') < 500 < long.diff.total_blocks
    assert "24c2d9ee" in shows
    assert "around the first difference" in shows


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_page_in_a_browser(tmp_path):
    file = tmp_path / "page.html"
    file.write_text(page(hostile_pair(), FREE, PLAIN), encoding="utf-8")
    dom = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", "--dump-dom",
         file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    assert "<title>minicache diff</title>" in dom  # no script in the prompt has run
    parser = Texts()
    parser.feed(dom)
    assert "script" not in [tag for tag, _ in parser.tags]
    blocks = [attributes["class"] for tag, attributes in parser.tags if attributes.get("class", "").startswith("block")]
    assert {"block reused", "block parted", "block lost", "block computed"} <= set(blocks)
    assert HOSTILE[:40] in "".join(parser.text)
