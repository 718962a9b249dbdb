"""Settings that make no sense are refused in one sentence that names them."""

import math

import pytest

from minicache.core.errors import InvalidArgument
from minicache.engine import SamplingParams

REFUSED = [
    ({"max_tokens": 0}, "max_tokens must be at least 1, not 0"),
    ({"max_tokens": -3}, "max_tokens must be at least 1, not -3"),
    ({"max_tokens": 2.5}, "max_tokens must be an integer"),
    ({"temperature": -0.1}, "temperature must be finite and at least 0, not -0.1"),
    ({"temperature": math.nan}, "temperature must be finite and at least 0, not nan"),
    ({"temperature": math.inf}, "temperature must be finite and at least 0, not inf"),
    ({"temperature": 10**400}, "temperature must be finite and at least 0, not 1000"),
    ({"temperature": "hot"}, "temperature must be a number, not 'hot'"),
    ({"temperature": True}, "temperature must be a number, not True"),
    ({"top_k": -1}, "top_k must be at least 0, not -1"),
    ({"top_k": 0.5}, "top_k must be an integer, not 0.5"),
    ({"top_p": 0}, "top_p must be above 0 and at most 1, not 0"),
    ({"top_p": 1.1}, "top_p must be above 0 and at most 1, not 1.1"),
    ({"top_p": None}, "top_p must be a number, not None"),
    ({"min_p": -0.1}, "min_p must be between 0 and 1, not -0.1"),
    ({"min_p": 2}, "min_p must be between 0 and 1, not 2"),
    ({"repetition_penalty": 0}, "repetition_penalty must be finite and above 0, not 0"),
    ({"repetition_penalty": 10**400}, "repetition_penalty must be finite and above 0, not 1000"),
    ({"repetition_penalty": "high"}, "repetition_penalty must be a number, not 'high'"),
    ({"seed": 1.5}, "seed must be an integer, not 1.5"),
    ({"seed": True}, "seed must be an integer, not True"),
    ({"seed": 2**64}, "seed must fit into 64 bits"),
    ({"seed": -(2**63) - 1}, "seed must fit into 64 bits"),
    ({"n": 0}, "n must be at least 1, not 0"),
    ({"n": 1025, "temperature": 1.0}, "n must be at most 1,024: ask for more in several requests"),
    ({"n": "two"}, "n must be an integer, not 'two'"),
    ({"n": 2}, "n 2 with temperature 0 gives the same answer 2 times"),
    ({"min_tokens": -1}, "min_tokens must be at least 0, not -1"),
    ({"min_tokens": 17}, "min_tokens 17 is more than max_tokens 16"),
    ({"stop": 5}, "stop must be a list of texts, not 5"),
    ({"stop": b"END"}, "stop must be a list of texts, not b'END'"),
    ({"stop": {"END": 1}}, "stop must be a list of texts"),
    ({"stop": [7]}, "each of stop must be text, not 7"),
    ({"stop": ["a", ""]}, "each of stop must have at least one character"),
    ({"stop": ""}, "each of stop must have at least one character"),
    ({"stop_tokens": "</s>"}, "stop_tokens must be a list of token ids"),
    ({"stop_tokens": 5}, "stop_tokens must be a list of token ids"),
    ({"stop_tokens": [-1]}, "each of stop_tokens must be at least 0"),
    ({"stop_tokens": ["</s>"]}, "each of stop_tokens must be an integer"),
    ({"ignore_eos": "no"}, "ignore_eos must be True or False, not 'no'"),
    ({"logprobs": -1}, "logprobs must be at least 0, not -1"),
    ({"logprobs": True}, "logprobs must be an integer, not True"),
    ({"prompt_logprobs": 1.5}, "prompt_logprobs must be an integer, not 1.5"),
    ({"prompt_logprobs": 1, "prompt_logprobs_start": -1}, "prompt_logprobs_start must be at least 0"),
    ({"prompt_logprobs_start": 3}, "prompt_logprobs_start needs prompt_logprobs"),
]


@pytest.mark.parametrize(
    ("settings", "message"), REFUSED, ids=lambda value: str(value) if isinstance(value, dict) else ""
)
def test_bad_settings_are_named(settings: dict, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as caught:
        SamplingParams(**settings)
    assert "\n" not in str(caught.value)


def test_what_has_no_effect_is_no_contradiction() -> None:
    assert not SamplingParams().filters
    assert SamplingParams(temperature=0, top_p=0.5, top_k=3, min_p=0.1, seed=4).filters
    assert SamplingParams(stop="END").stop == ("END",)
    assert SamplingParams(stop=["a", "b"], stop_tokens={3}) == SamplingParams(stop=("a", "b"), stop_tokens=(3,))


def test_the_seeds_of_several_answers() -> None:
    params = SamplingParams(temperature=1.0, seed=5, n=4)
    seeds = [params.of_sample(index).seed for index in range(4)]
    assert seeds[0] == 5
    assert len(set(seeds)) == 4
    assert seeds == [params.of_sample(index).seed for index in range(4)]
