"""The cold-warm experiment on the small model: what is reused, equal answers, speeds that are what they say."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from minicache.bench import cold_warm
from minicache.bench.cold_warm import COLD, NO_CACHE, WARM, ColdWarm, SpeedRow, sentence
from minicache.bench.measure import Answer
from minicache.cli import main as cli
from minicache.core.errors import InvalidArgument
from tests.bench.models import write_hub_model

torch = pytest.importorskip("torch", reason="the engine needs torch: pip install 'minicache-llm[engine]'")
SHORT = ColdWarm("tiny", system_tokens=400, rounds=2, max_tokens=4)


@pytest.fixture(scope="module")
def plan():
    return SHORT.plan


@pytest.fixture(scope="module")
def result():
    return SHORT.run()


def test_the_prompts_share_the_system_prompt_and_nothing_else(plan):
    assert plan.system_tokens == 400
    assert len({prompt[:400] for prompt in plan.prompts}) == 1
    assert len({prompt[400:] for prompt in plan.prompts}) == 4


def test_it_is_as_long_as_the_context_allows():
    settings = ColdWarm("tiny")
    plan = settings.plan
    longest = max(map(len, plan.prompts)) + settings.max_tokens
    assert longest == plan.context == 4096


def test_it_is_8500_tokens_where_they_fit(tmp_path):
    plan = ColdWarm(write_hub_model(tmp_path, max_position_embeddings=16384)).plan
    assert plan.system_tokens == 8500


def test_a_length_that_does_not_fit():
    with pytest.raises(InvalidArgument, match=r"system_tokens 4,096: .* fit into the context of 4,096 of tiny"):
        ColdWarm("tiny", system_tokens=4096).header()


@pytest.mark.parametrize("wanted", [None, 300])
def test_a_context_without_room(wanted, tmp_path):
    with pytest.raises(InvalidArgument, match="has no room for a system prompt"):
        ColdWarm(write_hub_model(tmp_path, max_position_embeddings=40), system_tokens=wanted).header()


def test_what_is_reused(result):
    hash_chain, radix = result.runs
    assert hash_chain.row(COLD).cached_tokens == [0, 0]
    assert radix.row(COLD).cached_tokens == [0, 0]
    for arm in result.runs:
        assert all(400 <= count < 425 for count in arm.row(WARM).cached_tokens)  # and the template's words after it
    assert result.control.row(NO_CACHE).cached_tokens == [0] * 4


def test_the_answers_are_equal(result):
    assert result.holds
    assert all(len(answer.token_ids) == 4 for arm in result.runs for row in arm.rows for answer in row.answers)


def test_speeds():
    row = SpeedRow("warm", 1000)
    for ttft, decode in ((500.0, 20.0), (250.0, 30.0), (1000.0, 10.0)):
        row.add(1000, Answer((1, 2), "", 900, ttft, decode))
    assert (row.prefill_rate, row.prompt_rate, row.decode_rate) == (200.0, 2000.0, 20.0)


def test_the_object_has_the_keys_that_scripts_read(result):
    value = json.loads(json.dumps(result.to_json()))
    assert list(value) == [
        "experiment", "model", "dtype", "device", "threads", "system_tokens", "context", "runs", "outputs_identical",
    ]  # fmt: skip
    assert [run["cache"] for run in value["runs"]] == ["hash", "radix", "none"]
    row = value["runs"][0]["rows"][1]
    assert row["form"] == "warm"
    speeds = {"prefill_tokens_per_s", "prompt_tokens_per_s", "decode_tokens_per_s"}
    assert speeds | {"prompt_tokens", "cached_tokens", "ttft_ms"} <= set(row)
    assert all(row[speed] > 0 for speed in speeds)


def report(result, settings):
    file = io.StringIO()
    console = Console(file=file, width=100)
    console.print(settings.header())
    result.table(console)
    return " ".join(file.getvalue().split())


def test_the_report(result):
    text = report(result, SHORT)
    assert "a system prompt of 400 tokens" in text
    assert "the full length" not in text, "it was asked for"
    whole = report(result, ColdWarm("tiny"))
    assert "8,500 tokens are the full length; the context of tiny is 4,096 tokens" in whole
    assert "outputs identical: yes" in text
    warm = result.runs[0].row(WARM)
    words = f"Warm, {warm.median_cached_tokens:,} of {warm.prompt_tokens:,} tokens are reused"
    assert sentence(result.runs[0], result.control).startswith(words)
    assert [panel.labels for panel in result.chart().panels] == [[COLD, WARM, NO_CACHE]] * 3


def test_a_difference_is_found_named_and_fails(monkeypatch, capsys):
    honest = cold_warm.ask

    def lie(engine, prompt, max_tokens):
        answer = honest(engine, prompt, max_tokens)
        return replace(answer, token_ids=(7,)) if answer.cached_tokens else answer

    monkeypatch.setattr(cold_warm, "ask", lie)
    wrong = replace(SHORT, caches=("hash",), rounds=1).run()
    assert wrong.differences[0].startswith("hash cache, warm, round 1: [7] with the cache, [")
    monkeypatch.setattr(ColdWarm, "run", lambda *_: wrong)
    with pytest.raises(SystemExit) as exit:
        cli.main(["experiment", "cold-warm", "--model", "tiny", "--system-tokens", "400"])
    assert exit.value.code == 1
    assert "outputs identical: no" in capsys.readouterr().out
