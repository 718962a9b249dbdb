"""The experiment on the small model: exact counts, equal answers, and a report and object that say so."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from minicache.bench import three_forms
from minicache.bench.measure import Answer
from minicache.bench.three_forms import FORMS, ID_AT_END, ID_AT_START, STABLE, ThreeForms
from minicache.cli import main as cli
from minicache.common.packages import package_missing
from minicache.core.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="the engine needs torch: pip install 'minicache-llm[engine]'")
QUICK = ThreeForms(model="tiny", prompt_tokens=299, rounds=3, max_tokens=4)


@pytest.fixture(scope="module")
def result():
    return QUICK.run()


def test_prompts_are_as_described():
    rounds = ThreeForms("tiny").prompts
    assert {len(prompts[STABLE]) for prompts in rounds} == {2999}
    assert len({prompts[STABLE] for prompts in rounds}) == 1
    assert len({prompts[form] for prompts in rounds for form in FORMS}) == 1 + 2 * 5
    first = bytes(token for token in rounds[0][ID_AT_START] if token < 256).decode()
    assert first.startswith("system\nRequest id ")


def test_the_seed_makes_the_prompts():
    again, other = replace(QUICK), replace(QUICK, seed=1)
    assert QUICK.prompts == again.prompts != other.prompts


def test_each_cache_reuses_what_it_can(result):
    hash_chain, radix = result.runs
    assert set(radix.row(STABLE).cached_tokens) == {298}  # all but the last token
    assert set(hash_chain.row(STABLE).cached_tokens) == {298 // 16 * 16}
    header, shared = 1 + len("system\n"), 1 + len("system\nRequest id ")  # <|im_start|> is one token
    first, *others = radix.row(ID_AT_START).cached_tokens
    assert first == header  # only the stable form was there
    assert all(shared <= count < shared + 4 for count in others)  # two ids can begin with the same digits
    assert set(hash_chain.row(ID_AT_START).cached_tokens) == {0, shared // 16 * 16}
    for arm, least in ((radix, 0), (hash_chain, 16)):
        end = arm.row(ID_AT_END)
        assert all(299 - 60 - least < count < 299 for count in end.cached_tokens)


def test_the_control_reuses_nothing_and_answers_the_same(result):
    assert [len(row.answers) for row in result.control.rows] == [1, 3, 3]
    assert all(set(row.cached_tokens) == {0} for row in result.control.rows)
    assert result.holds


def test_the_object_has_the_keys_that_scripts_read(result):
    value = json.loads(json.dumps(result.to_json()))
    assert list(value) == ["experiment", "model", "dtype", "device", "threads", "runs", "outputs_identical"]
    assert [run["cache"] for run in value["runs"]] == ["hash", "radix"]
    row = value["runs"][0]["rows"][0]
    assert list(row) == ["form", "prompt_tokens", "cached_tokens", "median_cached_tokens", "ttft_ms"]
    assert list(row["ttft_ms"]) == ["median", "min", "max", "samples"]
    assert len(row["cached_tokens"]) == len(row["ttft_ms"]["samples"]) == 3


def report(result, width=100):
    text = io.StringIO()
    result.table(Console(file=text, width=width))
    return text.getvalue()


def test_the_report(result):
    text = report(result)
    assert "#new-token: 1, #cached-token: 298" in text
    assert "outputs identical: yes" in text
    assert "With an id in the first line" in text


def test_a_difference_is_found_and_named(result, monkeypatch):
    honest = three_forms.ask
    monkeypatch.setattr(three_forms, "ask", lambda engine, prompt, max_tokens: lie(honest(engine, prompt, max_tokens)))

    def lie(answer):
        return Answer((7,), "", answer.cached_tokens, answer.ttft_ms) if answer.cached_tokens > 200 else answer

    wrong = replace(QUICK, caches=("radix",), rounds=1).run()
    assert not wrong.holds
    assert wrong.differences[0].startswith("radix cache, stable, round 1: [7] with the cache, [")
    assert "outputs identical: no" in report(wrong)


def call(*args):
    with pytest.raises(SystemExit) as exit:
        cli.main(args)
    return exit.value.code


def test_the_command_prints_exactly_one_object(capsys):
    assert call("experiment", "three-forms", "--model", "tiny", "--quick", "--cache", "radix", "--json") == 0
    assert json.loads(capsys.readouterr().out)["outputs_identical"] is True


def test_the_command_fails_on_a_difference(monkeypatch, capsys):
    monkeypatch.setattr(three_forms, "difference", lambda *_: ["radix cache, stable, round 1: …"])
    assert call("demo", "--model", "tiny", "--quick", "--cache", "radix") == 1
    assert "outputs identical: no" in capsys.readouterr().out


def test_without_the_real_model_it_says_how_to_get_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MINICACHE_HOME", str(tmp_path))
    assert call("demo", "--quick", "--cache", "radix") == 0
    captured = capsys.readouterr()
    assert "by tiny" in captured.out
    assert "minicache model pull smollm2" in captured.err


@pytest.mark.parametrize("arguments", [["--cache", "lru"], ["--model", "gpt-17"], ["--seed", "x"]])
def test_wrong_input_exits_with_2_and_prints_no_result(arguments, capsys):
    assert call("demo", *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err


def test_without_torch_nothing_is_printed_but_the_remedy(monkeypatch, capsys):
    monkeypatch.setattr("minicache.cli.console.find_spec", lambda name: None)
    assert call("demo", "--model", "tiny") == 2
    assert capsys.readouterr() == ("", f"minicache: {package_missing('torch')}\n")


def test_an_unknown_cache():
    with pytest.raises(InvalidArgument, match="caches must be one of hash, radix, not 'lru'"):
        ThreeForms("tiny", caches=("lru",))


@pytest.mark.model
@pytest.mark.nightly
def test_the_counts_with_the_real_model():
    real = ThreeForms("smollm2", prompt_tokens=299, rounds=2, max_tokens=4).run()
    assert real.holds
    assert {tuple(arm.row(STABLE).cached_tokens) for arm in real.runs} == {(288, 288), (298, 298)}
