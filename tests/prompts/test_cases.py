"""Every published case: its figures and its causes."""

import json
from pathlib import Path

import pytest

from minicache.prompts.kinds import Layer
from minicache.prompts.reuse import Cached, by_formula
from minicache.text.renderer import Chat
from tests.prompts.cases import CASES, SYS, Case, say, tool
from tests.prompts.diffs import examined, means, verdicts

PUBLISHED = Path(__file__).parents[3] / "shared" / "cases" / "pairs.json"
BLOCK = 16


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_figures(case: Case):
    diff = examined(case).diff
    assert (diff.a_tokens, diff.cached_tokens_of_a, diff.b_tokens) == case.lengths
    assert diff.reuse.lcp == case.lcp
    assert diff.diverge_token == (None if case.extends else case.lcp)
    usable = min(case.lcp, case.lengths[2] - 1)
    assert (diff.reuse.radix_tokens, diff.reuse.vllm_tokens) == (usable, usable - usable % BLOCK)
    assert diff.total_blocks == case.lengths[1] // BLOCK


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_verdict(case: Case):
    diff = examined(case).diff
    assert verdicts(diff) == case.causes
    assert diff.lost == any(layer is not Layer.none for layer, *_ in case.causes)
    if diff.lost:  # after the last repair B reuses as much as it can
        assert diff.ideal.radix_tokens == diff.reuse.radix_tokens + sum(cause.gain_tokens for cause in diff.causes)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_formula_is_what_the_caches_find(case: Case):
    pair = examined(case)
    tokens = pair.earlier.tokens, pair.later.tokens
    found = Cached(tokens[0], BLOCK).reuse(tokens[1])
    assert found == by_formula(found.lcp, len(tokens[1]), BLOCK)


def test_the_first_texts_are_shown():
    by_name = {case.name: examined(case).diff.causes for case in CASES}
    assert [(c.a_text, c.b_text) for c in by_name["C01c"]] == [("97b", "24c"), ("[ ]", "[x]")]
    assert by_name["C01c"][0].more == (("97bd6", "24c2d"),)
    # The whole time, although only its seconds differ.
    assert (by_name["C03"][0].a_text, by_name["C03"][0].b_text) == ("2026-03-01 10:00:07", "2026-03-01 10:00:52")
    assert by_name["C08"][0].a_text == "<think>\n\n</think>\n\n"
    assert [pair[0][:17] for pair in by_name["C09"][0].more] == ["<think>\nTwo files", "<think>\nEnough.\n<"]
    assert (by_name["C12"][0].a_text, by_name["C12"][0].b_text) == ("01 Mar 2026", "02 Mar 2026")
    assert by_name["C13"][0].a_text.startswith('[TOOLS][{"type"')
    assert by_name["C13"][0].a_text.endswith("[/TOOLS]\n")
    assert by_name["C06"][0].detail == "B sends A's tools in the order [0, 2, 1]"
    assert by_name["C14"][0].detail == "B has it in messages[5]"
    assert by_name["C09"][0].detail.endswith("of the template: A has the model's reasoning here, and B does not")
    assert by_name["C13"][0].detail.endswith("of the template: A has the tools here, and B does not")
    assert by_name["C17"][0].detail == "shifted by 2 messages, 3 kept"
    assert by_name["C26"][0].detail == "1 line added, 0 removed"


def test_context_is_text_around_the_first_difference():
    diff = examined(next(case for case in CASES if case.name == "C01c")).diff
    assert diff.context == ("tem\nclient-tag: v=2.1.7.", "97b; tag=97bd6;\nYo", "24c; tag=24c2d;\nYo")


def test_rendering_a_template_twice_at_now_would_be_a_false_all_clear():
    case = next(case for case in CASES if case.name == "C12")
    unknown = Case(**{**vars(case), "times": None})
    diff = examined(unknown).diff
    assert not diff.lost
    assert "a change of date cannot show" in " ".join(diff.notes)


def test_tools_are_written_as_transformers_writes_them():
    """Case C30: plain Jinja would write `\\u003e` and sort the keys."""
    described = tool("cmp")
    described["function"]["description"] = "is x > 10 & y < 5 — ok?"
    text = means("chatml-tools").renderer.render(Chat(say(SYS, "hi")["messages"], [described]))  # type: ignore[union-attr]
    assert '"description": "is x > 10 & y < 5 — ok?", "parameters": {"type": "object", "properties"' in text


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="../shared/cases/pairs.json is not there")
def test_every_published_pair_is_here_and_is_the_same():
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    ours = {case.name: case for case in CASES}
    for name, pair in published["pairs"].items():
        for number, computed in enumerate(pair["computed"] or ()):
            case = ours[name if f"{name}.0" not in ours else f"{name}.{number}"]
            for body, theirs in zip((case.a, case.b), pair["requests"][number:], strict=False):
                assert {k: v for k, v in theirs.items() if k not in ("generated", "now")} == body
            assert case.generated == pair["requests"][number].get("generated", "")
            assert case.lengths == (computed["len_a_prompt"], computed["cached_len"], computed["len_b"])
            assert (case.lcp, case.extends) == (computed["lcp"], computed["diverge_index"] is None)
            diff = examined(case).diff
            assert list(diff.context) == computed["context"]
            assert diff.reuse.radix_tokens == computed["radix_cached"]
            assert diff.reuse.vllm_tokens == computed["vllm_cached"]
            text = means(published["templates"][pair["template"]]).text(examined(case).earlier.source)
            assert text == examined(case).earlier.prompt.text
