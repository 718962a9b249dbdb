"""The cases with the real template and tokenizer of Qwen3: the figures differ, the verdicts are the same."""

import pytest

from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.prompt import Means
from minicache.text.renderer import Renderer
from minicache.text.sources import open_template, open_tokenizer
from tests.prompts.cases import CASES, say
from tests.prompts.diffs import diff_of, logged


@pytest.fixture(scope="module")
def means(qwen3) -> Means:
    return Means(open_tokenizer(qwen3), Renderer(open_template(qwen3)))


def case(name, means):
    found = next(case for case in CASES if case.name == name)
    return diff_of(found.a, found.b, means, found.generated)


@pytest.mark.parametrize(
    ("name", "lengths", "lcp", "kinds"),
    [
        ("C03", (53, 0, 65), 23, [Kind.clock]),
        ("C08", (33, 3, 46), 29, [Kind.template_asymmetry]),
        ("C09", (125, 12, 118), 31, [Kind.template_asymmetry]),
        ("C09in", (78, 0, 125), 78, []),
        ("C09rec", (118, 0, 132), 118, []),
    ],
)
def test_published_figures(name, lengths, lcp, kinds, means):
    diff = case(name, means)
    assert (diff.a_tokens, diff.generated_tokens, diff.b_tokens) == lengths
    assert diff.reuse.lcp == lcp
    assert [cause.kind for cause in diff.causes] == kinds


PAYLOAD = [case.name for case in CASES if all(layer is Layer.payload for layer, *_ in case.causes) and case.causes]


@pytest.mark.parametrize("name", sorted({*PAYLOAD} - {"C16pre", "C19", "C25"}))
def test_the_client_s_causes_do_not_depend_on_the_template(name, means):
    diff = case(name, means)
    published = next(case for case in CASES if case.name == name)
    assert [(c.layer, c.kind, c.offset) for c in diff.causes] == [
        (layer, kind, offset) for layer, kind, _, offset, _, _ in published.causes
    ]


def test_composed_and_decomposed_are_one_to_this_tokenizer(means):
    diff = case("C25", means)
    assert (diff.lost, diff.reuse.lcp) == (False, 32)
    assert [(c.layer, c.kind) for c in diff.causes] == [(Layer.none, Kind.normaliser)]


def test_seams_and_retokenised_answers(means):
    seam = diff_of({"prompt": "The cat sat on the ma"}, {"prompt": "The cat sat on the mat."}, means)
    assert (seam.a_tokens, seam.reuse.lcp, [c.kind for c in seam.causes]) == (6, 5, [Kind.seam])
    digits = diff_of({"prompt": "I paid 12"}, {"prompt": "I paid 123 kr"}, means)
    assert (digits.a_tokens, digits.reuse.lcp, digits.causes) == (5, 5, ())
    a = logged(say(None, "x"), response={"choices": [{"token_ids": [73125, 8345]}]})
    diff = diff_of(a, say(None, "x", "Hanzi", "y"), means)
    assert [(c.layer, c.kind, c.gain_tokens) for c in diff.causes] == [(Layer.tokenizer, Kind.retokenised, 2)]
