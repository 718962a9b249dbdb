"""A request's tokens depend on its logits, seed and position: on nothing else; and the filters are what they say."""

import math
import sys
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minicache.engine.sampler import Draw, at_quantile, filtered, penalised, sample, token_logprobs, uniform
from minicache.engine.sampling_params import SamplingParams

seeds = st.integers(-(2**63), 2**64 - 1)
TRIALS = 2000


def logits_of(rows: int) -> torch.Tensor:
    return torch.randn(rows, 30, generator=torch.Generator().manual_seed(rows))


# The draw


def test_temperature_zero_takes_the_likeliest() -> None:
    logits = logits_of(5)
    filters = SamplingParams(seed=1, top_k=1, top_p=0.1, min_p=0.9)
    assert sample(logits, [Draw(filters, i) for i in range(5)]) == logits.argmax(-1).tolist()


asked = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 3.0]),
    top_k=st.sampled_from([0, 5]),
    top_p=st.sampled_from([1.0, 0.7]),
    min_p=st.sampled_from([0.0, 0.1]),
    repetition_penalty=st.sampled_from([1.0, 1.5]),
    seed=seeds,
)


@given(st.lists(asked, min_size=8, max_size=8), st.integers(0, 7), st.lists(st.integers(0, 29), max_size=4))
def test_a_draw_does_not_depend_on_the_batch(params: list[SamplingParams], row: int, tokens: list[int]) -> None:
    logits = logits_of(8)
    draws = [Draw(each, position, tokens, set(tokens[:1])) for position, each in enumerate(params)]
    before = logits.clone()
    assert sample(logits, draws)[row] == sample(logits[row : row + 1], [draws[row]])[0]
    assert torch.equal(logits, before)


def test_seed_and_position_both_matter() -> None:
    def tokens(seed: int) -> list[int]:
        params = SamplingParams(temperature=1.0, seed=seed)
        return [sample(logits_of(1), [Draw(params, position)])[0] for position in range(50)]

    assert tokens(1) == tokens(1)
    assert tokens(1) != tokens(2)
    assert len(set(tokens(1))) > 5


@given(seeds, st.integers(0, 2**40))
def test_uniform_numbers_are_in_range(seed: int, position: int) -> None:
    assert 0 <= uniform(seed, position) < 1


def test_the_ends_of_the_distribution() -> None:
    """A token of probability 0 is never drawn, and the largest u still gives a token."""
    weights = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0])
    assert at_quantile(weights, 0.0) == 1
    assert at_quantile(weights, math.nextafter(1, 0)) == 3


# The filters, against lists


def probabilities(weights: Sequence[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


def passes(weights: Sequence[float], top_k: int, top_p: float, min_p: float) -> set[int]:
    """The tokens that may be drawn: the definition, one filter after the other, over plain lists."""
    ranked = sorted(range(len(weights)), key=lambda token: (-weights[token], token))
    ranked = [token for token in ranked if weights[token] >= min_p * max(weights)]
    if top_k:
        ranked = ranked[:top_k]
    passed, mass = set(), 0.0
    total = sum(weights[token] for token in ranked)
    for token in ranked:
        passed.add(token)
        mass += weights[token] / total
        if mass >= top_p:
            break
    return passed


# Sums of powers of two are exact, so that no boundary depends on how a sum is rounded; equal weights are frequent.
powers = st.integers(-8, 0).map(lambda exponent: 2.0**exponent)


@given(
    st.lists(powers, min_size=1, max_size=12),
    st.integers(0, 13),
    st.sampled_from([1.0, 0.5, 0.3, 0.75, 0.9, 0.01]),
    st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]),
)
def test_filters_keep_what_the_definition_keeps(weights: list[float], top_k: int, top_p: float, min_p: float) -> None:
    params = SamplingParams(temperature=1.0, top_k=top_k, top_p=top_p, min_p=min_p)
    kept = filtered(torch.tensor(weights, dtype=torch.float64), params).tolist()
    passed = passes(weights, top_k, top_p, min_p)
    assert kept == [weight if token in passed else 0 for token, weight in enumerate(weights)]


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=8), st.data(), st.floats(0.1, 3))
def test_the_penalty_is_ctrls(scores: list[float], data: st.DataObject, penalty: float) -> None:
    seen = data.draw(st.lists(st.integers(0, len(scores) - 1), max_size=9))
    expected = [
        score if token not in seen else score / penalty if score > 0 else score * penalty
        for token, score in enumerate(scores)
    ]
    found = penalised(torch.tensor(scores, dtype=torch.float64), seen, penalty)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0.5},
        {"temperature": 1.0},
        {"temperature": 2.0},
        {"temperature": 1.0, "top_k": 3},
        {"temperature": 1.0, "top_p": 0.7},
        {"temperature": 2.0, "min_p": 0.3},
        {"temperature": 0.8, "top_k": 4, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.4},
    ],
    ids=str,
)
def test_tokens_come_as_often_as_they_should(settings: dict[str, float]) -> None:
    """Pearson's chi-square over 2,000 fixed seeds: below its 99.9 % quantile, and nothing that is filtered out."""
    params = SamplingParams(**settings)
    logits, seen = [0.0, 1.0, 2.0, -1.0, 1.5, -3.0], [2, 5]
    scores = [
        score / params.repetition_penalty if token in seen and score > 0 else
        score * params.repetition_penalty if token in seen else score
        for token, score in enumerate(logits)
    ]  # fmt: skip
    weights = [math.exp(score / params.temperature) for score in scores]
    passed = passes(weights, params.top_k, params.top_p, params.min_p)
    expected = probabilities([weight if token in passed else 0.0 for token, weight in enumerate(weights)])
    row = torch.tensor([logits])
    drawn = Counter(sample(row, [Draw(params.with_seed(seed), 9, seen)])[0] for seed in range(TRIALS))
    assert set(drawn) <= passed
    chi_square = sum((drawn[t] - TRIALS * expected[t]) ** 2 / (TRIALS * expected[t]) for t in passed)
    quantile = [0.0, 10.8, 13.8, 16.3, 18.5, 20.5]  # by degrees of freedom
    assert chi_square < quantile[len(passed) - 1] + 1e-9


def test_what_is_banned_does_not_come() -> None:
    logits = logits_of(1)
    likeliest = int(logits.argmax())
    for params in (SamplingParams(), SamplingParams(temperature=0.2)):
        draws = [Draw(params.with_seed(seed), 0, banned={likeliest}) for seed in range(50)]
        assert likeliest not in sample(logits.expand(50, -1), draws)


TINY, HUGE = 5e-324, sys.float_info.max


@pytest.mark.parametrize("temperature", [0, TINY, 1.0, HUGE, 10**300], ids="{:.0e}".format)
@pytest.mark.parametrize("penalty", [TINY, 1, HUGE, 10**300], ids="{:.0e}".format)
@pytest.mark.parametrize("rest", [{}, {"top_p": TINY}, {"min_p": 1.0}, {"top_k": 10**30}], ids=str)
def test_settings_at_the_ends_of_their_ranges(temperature: float, penalty: float, rest: dict[str, float]) -> None:
    """Whatever is allowed draws a token that may come; what a penalty pushes away comes only if all are."""
    params = SamplingParams(temperature=temperature, repetition_penalty=penalty, seed=1, **rest)
    [row] = logits_of(1)
    for seen, banned in (([0, 3], [5]), (range(30), range(29))):
        scores = penalised(row.double(), list(seen), float(penalty))
        assert scores.isfinite().all()
        token = sample(row[None], [Draw(params, 9, list(seen), banned)])[0]
        assert token in set(range(30)) - set(banned)
        if temperature < 1:
            allowed = [each for each in range(30) if each not in banned]
            assert scores[token] == max(scores[allowed])


# Log-probabilities


def test_logprobs_against_softmax() -> None:
    logits = logits_of(3)
    found = token_logprobs(logits, [4, 5, 6], k=3)
    for row, (token, told) in enumerate(zip([4, 5, 6], found, strict=True)):
        weights = [math.exp(value) for value in logits[row].double().tolist()]
        expected = [math.log(p) for p in probabilities(weights)]
        assert told.chosen.token_id == token
        assert told.chosen.logprob == pytest.approx(expected[token], abs=1e-12)
        best = sorted(range(30), key=lambda t: -expected[t])[:3]
        assert [entry.token_id for entry in told.top] == best
        assert [entry.logprob for entry in told.top] == pytest.approx([expected[t] for t in best], abs=1e-12)
    assert token_logprobs(logits, [4, 5, 6], k=0)[0].top == ()
