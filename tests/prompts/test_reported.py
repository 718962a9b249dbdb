"""Causes that no text shows: keys that separate caches, requests that do not read, and the tokens an engine reports."""

import pytest

from minicache.core.hit_rate import Lookup, mean_of_ratios, tokens_of_all
from minicache.prompts.errors import CannotCompare
from minicache.prompts.kinds import Kind, Layer
from tests.prompts.cases import SYS, say, then
from tests.prompts.diffs import diff_of, logged, means

A = say(SYS, "hi")
B = then(A, "hello", "bye")
SHARED = 19 + 72 + 11 + 17 + 2 + 11 + 22  # system, user, generation prompt of A: all of it, in bytes
BLOCKS = SHARED // 16 * 16


def reported(cached, body=B, **more):
    return logged(body, response={"usage": {"prompt_tokens_details": {"cached_tokens": cached}}}, **more)


def causes(a, b):
    diff = diff_of(a, b, means())
    return diff, [(c.layer, c.kind, c.gain_tokens, c.gain_blocks) for c in diff.causes]


@pytest.mark.parametrize("cached", [None, BLOCKS, SHARED])
def test_what_is_to_be_expected_is_no_cause(cached):
    diff, found = causes(A, reported(cached))
    assert (diff.reuse.radix_tokens, diff.reuse.vllm_tokens) == (SHARED, BLOCKS)
    assert found == []


def test_nothing_reported_of_an_identical_render_blames_placement_and_no_field():
    diff, found = causes(A, reported(0))
    assert found == [(Layer.placement, Kind.placement, SHARED, BLOCKS // 16)]
    assert diff.causes[0].path is None
    assert diff.lost
    assert diff.reuse.radix_tokens == SHARED  # the figures are those of the prompts


@pytest.mark.parametrize(
    ("seconds", "kind"), [(0, Kind.lifetime), (1, Kind.lifetime), (60, Kind.placement), (301, Kind.lifetime)]
)
def test_the_gap_tells_lifetime_from_placement(seconds, kind):
    a = {"body": A, "time": 1772359207}
    b = {"body": B, "time": 1772359207 + seconds, "response": {"usage": {"cache_read_input_tokens": 0}}}
    from minicache.prompts.request_log import to_request

    _, found = causes(to_request(a, "a"), to_request(b, "b"))
    assert [cause[1] for cause in found] == [kind]


def test_whole_units():
    _, found = causes(A, reported(128))
    assert found == [(Layer.engine, Kind.engine_unit, SHARED - 128, (BLOCKS - 128) // 16)]
    _, found = causes(A, reported(112))  # 7 of 9 blocks of 16: the others were evicted
    assert [cause[1] for cause in found] == [Kind.lifetime]


@pytest.mark.parametrize("key", ["cache_salt", "lora_path", "extra_key"])
def test_keys_that_separate(key):
    diff, found = causes({**A, key: "one"}, {**B, key: "two"})
    assert found == [(Layer.payload, Kind.namespace, SHARED, BLOCKS // 16)]
    assert (diff.reuse.radix_tokens, diff.reuse.vllm_tokens, diff.causes[0].path) == (0, 0, (key,))
    assert causes({**A, key: "one"}, {**B, key: "one"})[1] == []


def test_reuse_across_keys_is_correctness_and_comes_first():
    _, found = causes({**A, "cache_salt": "one"}, reported(48, {**B, "cache_salt": "two"}))
    assert [cause[:2] for cause in found] == [(Layer.engine, Kind.wrong_reuse)]
    changed = say(f"id 97bd6f0c {SYS}", "hi"), say(f"id 24c2d9ee {SYS}", "hi", "hello", "bye")
    _, found = causes({**changed[0], "cache_salt": "one"}, reported(48, {**changed[1], "cache_salt": "two"}))
    assert [cause[1] for cause in found] == [Kind.wrong_reuse, Kind.nonce]


def test_prompt_logprobs_read_nothing_and_zero_is_not_off():
    """The rule of the caches: the hash chain reads nothing, the radix cache reads up to the position."""
    for position in (0, 40):
        diff, found = causes(A, {**B, "prompt_logprobs": position})
        assert found == [(Layer.engine, Kind.skips_reading, SHARED - position, BLOCKS // 16)]
        assert (diff.reuse.vllm_tokens, diff.reuse.radix_tokens) == (0, position)
    assert causes(A, {**B, "prompt_logprobs": None})[1] == []


def test_different_models_are_not_compared():
    with pytest.raises(CannotCompare, match="log is for the model 'small' and log for 'large'"):
        causes({**A, "model": "small"}, {**B, "model": "large"})
    assert causes({**A, "model": "small"}, B)[1] == []


def test_a_template_that_fails_names_the_field_and_nothing_is_compared():
    """Case 55: arguments as text, where the template needs an object."""
    template = (
        "{% for m in messages %}{% for c in m.tool_calls or [] %}{% for k, v in c.function.arguments | items %}"
        "{{ k }}{% endfor %}{% endfor %}{{ m.content }}{% endfor %}"
    )
    function = {"name": "ls", "arguments": '{"d": "."}'}
    calls = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    with pytest.raises(CannotCompare, match=r"log: message 2: tool_calls\[0\].function.arguments is text") as error:
        diff_of(A, say(SYS, "hi", calls), means(template))
    assert "parse the text" in str(error.value)
    with pytest.raises(CannotCompare, match="message 2: content is null, and this template needs text"):
        diff_of(A, say(SYS, "hi", {"role": "assistant", "content": None}), means())


def test_figures_that_mislead():
    """Case 53: four requests, three of them of two tokens."""
    lookups = [Lookup(2, 0), Lookup(2, 0), Lookup(2, 0), Lookup(10_000, 9_900)]
    assert f"{mean_of_ratios(lookups):.2%}" == "24.75%"
    assert f"{tokens_of_all(lookups):.2%}" == "98.94%"


def test_a_time_with_a_zone_and_one_without_have_no_gap():
    from minicache.prompts.request_log import to_request

    a = {"body": A, "time": "2026-03-01T10:00:07Z"}
    b = {"body": B, "time": "2026-03-01T10:00:08", "response": {"usage": {"cache_read_input_tokens": 0}}}
    _, found = causes(to_request(a, "a"), to_request(b, "b"))
    assert [cause[1] for cause in found] == [Kind.placement]
