"""A request's tokens depend on its logits, seed and position: on nothing else."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minicache.core.errors import InvalidArgument
from minicache.engine.sampler import Draw, SamplingParams, draw_token, sample, uniform

seeds = st.integers(-(2**70), 2**70)


def logits_of(rows: int) -> torch.Tensor:
    return torch.randn(rows, 30, generator=torch.Generator().manual_seed(rows))


def test_temperature_zero_takes_the_likeliest() -> None:
    logits = logits_of(5)
    assert sample(logits, [Draw(SamplingParams(seed=i), i) for i in range(5)]) == logits.argmax(-1).tolist()


@given(seeds, st.integers(0, 9999), st.floats(0.1, 3), st.integers(0, 7), st.randoms(use_true_random=False))
def test_a_draw_does_not_depend_on_the_batch(seed: int, position: int, temperature: float, row: int, random) -> None:
    logits = logits_of(8)
    mine = Draw(SamplingParams(temperature=temperature, seed=seed), position)
    others = [Draw(SamplingParams(temperature=random.choice([0, 1]), seed=random.randrange(9)), 3) for _ in range(8)]
    others[row] = mine
    assert sample(logits, others)[row] == sample(logits[row : row + 1], [mine])[0]


def test_seed_and_position_both_matter() -> None:
    def tokens(seed: int) -> list[int]:
        params = SamplingParams(temperature=1.0, seed=seed)
        return [sample(logits_of(1), [Draw(params, position)])[0] for position in range(50)]

    assert tokens(1) == tokens(1)
    assert tokens(1) != tokens(2)
    assert len(set(tokens(1))) > 5


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_come_as_often_as_softmax_says(temperature: float) -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0])
    expected = torch.softmax(logits / temperature, -1)
    number = 4000
    drawn = torch.bincount(
        torch.tensor([draw_token(logits, temperature, uniform(7, position)) for position in range(number)]), minlength=4
    )
    for count, probability in zip(drawn.tolist(), expected.tolist(), strict=True):
        assert abs(count - number * probability) < 4 * math.sqrt(number * probability * (1 - probability))


@given(seeds, st.integers(0, 2**40))
def test_uniform_numbers_are_in_range(seed: int, position: int) -> None:
    assert 0 <= uniform(seed, position) < 1


def test_the_ends_of_the_distribution() -> None:
    """A token of probability 0 is never drawn, and the largest u still gives a token."""
    logits = torch.tensor([-math.inf, 0.0, -math.inf, 0.0, -math.inf])
    assert draw_token(logits, 1.0, 0.0) == 1
    assert draw_token(logits, 1.0, math.nextafter(1, 0)) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_tokens": 0}, "max_tokens must be at least 1, not 0"),
        ({"max_tokens": -3}, "max_tokens must be at least 1, not -3"),
        ({"max_tokens": 2.5}, "max_tokens must be an integer"),
        ({"temperature": -0.1}, "temperature must be 0 or more, not -0.1"),
        ({"temperature": math.nan}, "temperature must be 0 or more, not nan"),
        ({"temperature": math.inf}, "temperature must be 0 or more, not inf"),
        ({"temperature": "hot"}, "temperature must be a number, not 'hot'"),
        ({"seed": 1.5}, "seed must be an integer or None"),
        ({"stop_tokens": "</s>"}, "stop_tokens must be a list of token ids"),
        ({"stop_tokens": 5}, "stop_tokens must be a list of token ids"),
        ({"stop_tokens": [-1]}, "each of stop_tokens must be at least 0"),
    ],
)
def test_bad_settings_are_named(settings: dict, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        SamplingParams(**settings)
