"""The timestamp experiment: exact blocks with any tokenizer, hit rates within their bounds, a report that says so."""

import io
import json
from collections import Counter
from dataclasses import replace

import pytest
from rich.console import Console

from minicache.bench import timestamp
from minicache.bench.measure import Chat
from minicache.bench.timestamp import (
    ANSWER,
    AT_END,
    AT_TOP,
    FORMS,
    IN_TURN,
    STATED,
    Prompts,
    Timestamp,
    dependence,
    sentence,
)  # fmt: skip
from minicache.bench.timestamp_stream import Stream, arrivals, clock
from minicache.cli import main as cli
from minicache.core.errors import InvalidArgument, RequestTooLong
from tests.bench.models import write_hub_model

torch = pytest.importorskip("torch", reason="the engine needs torch: pip install 'minicache-llm[engine]'")
SHORT = Timestamp("tiny", timed_requests=1, max_tokens=1, variations=({"same_second": 0.3}, {"turn_tokens": 960}))


@pytest.fixture(scope="module", params=["tiny", "hub"])
def prompts(request, tmp_path_factory):
    return Prompts(Chat("tiny" if request.param == "tiny" else write_hub_model(tmp_path_factory.mktemp("hub"))))


@pytest.fixture(scope="module")
def result():
    return SHORT.run()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_exactly_2400_tokens_at_every_second(prompts, form):
    for second in (0, 1, 38, 7 * 49):
        system = prompts.system(form, clock(second))
        assert prompts.chat.system_length(system) == 2400
        assert (clock(second) in system) == (form != IN_TURN)
        whole, text = prompts.single(form, second, "Hello"), prompts.chat.tokenizer.decode
        assert text(whole[:2400]).endswith(system)  # the end of the system content is the end of a token


@pytest.mark.parametrize("cache", ["hash", "radix"])
@pytest.mark.parametrize(("form", "blocks"), [(AT_TOP, 0), (AT_END, 149), (IN_TURN, 150)])
def test_reusable_blocks_are_exact_with_either_cache_and_any_tokenizer(prompts, cache, form, blocks):
    assert timestamp.reusable_blocks(prompts, form, cache) == blocks


@pytest.mark.parametrize("cache", ["hash", "radix"])
def test_the_rate_falls_as_the_report_says(prompts, cache):
    rendered = {form: timestamp.render(prompts, form, STATED) for form in FORMS}
    rates = timestamp.stream_rates(cache, STATED, rendered, prompts.answer).hit_rates
    assert 0.85 <= rates[IN_TURN] <= 0.92
    assert 0.85 <= rates[AT_END] <= 0.92
    assert 0.02 <= rates[AT_TOP] <= 0.05


def test_the_rate_is_what_a_person_counts(prompts):
    """Three requests, two of them within one second: the second of those finds the system prompt and no more."""
    stream = Stream(requests=3, same_second=0.34, later_turns=0.0)
    rendered = {AT_TOP: timestamp.render(prompts, AT_TOP, stream)}
    rates = timestamp.stream_rates("hash", stream, rendered, prompts.answer).hit_rates
    one, other = next((a, b) for a in rendered[AT_TOP] for b in rendered[AT_TOP] if a is not b and a[:2400] == b[:2400])
    shared = next(index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    assert rates[AT_TOP] == pytest.approx(shared // 16 * 16 / sum(map(len, rendered[AT_TOP])))


def test_a_later_turn_rereads_its_own_turns(prompts):
    stream = Stream(requests=2, same_second=0.0, later_turns=0.5)
    first, second = timestamp.render(prompts, AT_TOP, stream)
    assert second[: len(first)] == first
    rates = timestamp.stream_rates("radix", stream, {AT_TOP: [first, second]}, prompts.answer).hit_rates
    reread = len(first) + len(prompts.answer) - 1  # the last token of an answer has no KV
    assert rates[AT_TOP] == pytest.approx(reread / (len(first) + len(second)))


def test_the_stated_stream():
    found = arrivals(STATED)
    assert len(found) == 50
    seconds, conversations = (Counter(getattr(a, field) for a in found) for field in ("second", "conversation"))
    assert sorted(seconds.values())[-2:] == [1, 2]
    assert sorted(conversations.values())[-2:] == [1, 2]
    assert found == arrivals(Stream())
    assert found != arrivals(replace(STATED, seed=1))
    assert [a.second for a in found] == sorted(a.second for a in found)


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_has_what_it_states(seed):
    stream = Stream(40, same_second=0.25, later_turns=0.25, seed=seed)
    found = arrivals(stream)
    begun = {a.conversation for a in found}
    assert (len(found), len(begun)) == (40, 30)
    assert len({a.second for a in found}) == 30
    seen = set()
    for arrival in found:
        assert arrival.conversation in seen or arrival.conversation == len(seen)
        seen.add(arrival.conversation)


def test_clock():
    assert [clock(s) for s in (0, 1, 38, 3600)] == ["14:03:22", "14:03:23", "14:04:00", "15:03:22"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"requests": 0}, "requests"),
        ({"turn_tokens": 0}, "turn_tokens"),
        ({"same_second": 1.5}, "same_second must be between 0 and 1"),
        ({"same_second": 0.5, "later_turns": 0.5}, "leave no request that begins"),
    ],
)
def test_a_stream_that_cannot_be(settings, words):
    with pytest.raises(InvalidArgument, match=words):
        Stream(**settings)


def test_a_context_that_is_too_short(tmp_path):
    settings = Timestamp(write_hub_model(tmp_path, max_position_embeddings=2400))
    with pytest.raises(RequestTooLong, match=r"needs a context of 2,4.. tokens, and .* has 2,400"):
        settings.header()


def test_the_run(result):
    assert result.holds
    assert [(run.cache, run.reusable) for run in result.runs] == [
        (cache, {AT_TOP: 0, AT_END: 149, IN_TURN: 150}) for cache in ("hash", "radix")
    ]
    hash_chain, radix = (run.timed for run in result.runs)
    assert [row.cached_tokens for row in hash_chain.rows] == [[0], [2384], [2400]]
    assert [row.cached_tokens for row in radix.rows] == [[15], [2399], [2415]]  # to the last digit of the seconds


def test_what_the_rates_depend_on(result):
    for run in result.runs:
        same_second, long_turns = run.variations
        assert same_second.hit_rates[AT_TOP] > 5 * run.stated.hit_rates[AT_TOP]
        assert long_turns.hit_rates[IN_TURN] < run.stated.hit_rates[IN_TURN] - 0.1


def test_the_object_has_the_keys_that_scripts_read(result):
    value = json.loads(json.dumps(result.to_json()))
    assert list(value) == [
        "experiment", "model", "dtype", "device", "threads", "system_tokens", "runs", "as_expected",
    ]  # fmt: skip
    run = value["runs"][0]
    assert {"cache", "block_size", "reusable_blocks", "expected_blocks", "stream", "variations", "rows"} <= set(run)
    assert set(run["stream"]["hit_rates"]) == set(FORMS)
    assert run["stream"]["requests"] == 50
    assert "last 1,000 requests" in run["hit_rate_definition"]


def test_the_report(result):
    file = io.StringIO()
    console = Console(file=file, width=100)
    console.print(SHORT.header())
    result.table(console)
    text = " ".join(file.getvalue().split())
    assert "149 of 150" in text
    assert "The stated stream (seed 0): 50 requests. 48 begin a conversation" in text
    assert f"an answer is '{ANSWER}'" in text
    assert "reusable blocks as expected (0 at the top, 149 at the end, 150 in the user turn): yes" in text
    for run in result.runs:
        assert "makes the hit rate fall from 8" in sentence(run)
        assert "it costs 1 block of 16 tokens; in the user's turn, none." in sentence(run)
        assert "depends on how long the turns are" in dependence(run)


@pytest.mark.parametrize("kept", [[], [0], [1], [0, 1]])
def test_what_it_depends_on_is_said_of_what_was_varied(result, kept):
    run = replace(result.runs[0], variations=[result.runs[0].variations[index] for index in kept])
    said = dependence(run)
    assert ("share a second or reread" in said) == (0 in kept)
    assert ("how long the turns are" in said) == (1 in kept)


def test_another_number_of_blocks_fails(result, monkeypatch, capsys):
    wrong = replace(result, runs=[replace(result.runs[0], reusable={AT_TOP: 3, AT_END: 149, IN_TURN: 150})])
    monkeypatch.setattr(Timestamp, "run", lambda *_: wrong)
    with pytest.raises(SystemExit) as exit:
        cli.main(["experiment", "timestamp", "--model", "tiny"])
    assert exit.value.code == 1
    assert "in the user turn): no" in " ".join(capsys.readouterr().out.split())


@pytest.mark.model
def test_the_blocks_and_rates_with_the_real_model():
    prompts = Prompts(Chat("smollm2"))
    assert [timestamp.reusable_blocks(prompts, form, "hash") for form in FORMS] == [0, 149, 150]
    rendered = {form: timestamp.render(prompts, form, STATED) for form in FORMS}
    rates = timestamp.stream_rates("hash", STATED, rendered, prompts.answer).hit_rates
    assert 0.85 <= rates[IN_TURN] <= 0.92
    assert 0.02 <= rates[AT_TOP] <= 0.05
