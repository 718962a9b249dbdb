"""`minicache sim`: its output and its errors."""

import json
import re

import pytest

from minicache.cli import main as cli
from minicache.core.event_log import from_json
from minicache.sim.fork import SetBlockSize, SetNumBlocks
from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.phrases import GLOSSARY
from minicache.sim.recorded import write_recorded
from minicache.sim.timeline import Timeline


def call(*args):
    with pytest.raises(SystemExit) as exit:
        cli.main(["sim", *args])
    return exit.value.code


def test_list_names_every_scenario(capsys):
    assert call("list") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in scenario_names())
    assert call("list", "--json") == 0
    assert {item["name"] for item in json.loads(capsys.readouterr().out)} == set(scenario_names())


def test_json_is_one_object(capsys):
    assert call("run", "tail-first", "--json") == 0
    run = json.loads(capsys.readouterr().out)
    assert {"scenario", "events", "requests", "summary"} <= set(run)
    assert run["scenario"] == "tail-first"
    assert run["requests"][2] | {"id": "a-again", "tokens": 9, "cached_tokens": 8, "end": "whole"} == run["requests"][2]
    assert run["summary"]["events"] == len(run["events"]) == len([from_json(event) for event in run["events"]])
    assert all(rate["definition"] for rate in run["summary"]["hit_rates"])


def test_both_say_where_they_part(capsys):
    assert call("run", "two-equal-prompts", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert [run["cache"] for run in result["runs"]] == ["hash", "radix"]
    assert result["partings"][0]["request"] == "user2"
    assert call("run", "two-equal-prompts", "--plain") == 0
    out = capsys.readouterr().out
    assert "differ first in step 1: the hash chain finds 32 tokens of user2, the radix tree finds 0" in out
    assert "Both caches run in lock-step" in out


def test_a_run_in_short_names_its_definitions(capsys):
    assert call("run", "chain-flip", "--plain") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Hit rate, full blocks: 20.0%. Hit blocks divided by all full blocks" in out
    assert "Times are modelled, not measured" in out
    assert "(modelled)" in out


@pytest.mark.parametrize("name", scenario_names())
def test_a_run_in_short_fits_a_screen_and_has_no_word_of_the_code(name, capsys):
    for kind in find_scenario(name).kinds:
        assert call("run", name, "--cache", kind) == 0
        out = capsys.readouterr().out
        lines = out.splitlines()
        requests = len(find_scenario(name).requests)
        assert len(lines) <= 32 + requests
        assert all(len(line) <= 80 for line in lines)
        assert not re.search(r"no_entry|last_token|too_short|\bNone\b", out)
        assert re.search(r"hit\s+rate,\s+tokens\s+of\s+all:\s+\d", out)
        assert "Times are modelled, not measured" in out
        assert lines[-2] == f"Watch:  minicache tui {name}"
        why = next(line for line in lines if line.startswith("Why:"))
        assert call(*why.split()[3:]) == 0
        capsys.readouterr()


def test_a_run_in_short_tells_of_two_caches_where_they_first_part(capsys):
    assert call("run", "timestamp-top", "--cache", "both") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Hash chain, 512 blocks of 16." in out
    assert "Radix tree, lru, 8192 blocks of 1." in out
    assert "52 of 3,360 prompt tokens were found in the cache (hit rate, tokens of all: 1.5%)" in out
    assert "The two caches differ first in step 5" in out
    assert "They also treat 3 more requests differently." in out
    assert call("run", "preempt-and-resume", "--cache", "hash") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "At most 8 of 8 blocks in use, 7 evicted. 1 preemption." in out
    assert " steps (the last token of each answer is not computed). " in out


def test_a_long_table_says_how_many_requests_it_leaves_out(tmp_path, capsys):
    path = tmp_path / "many.toml"
    requests = "".join(
        f'[[request]]\nid = "r{i}"\nprompt = [{{ text = "hello" }}]\nmax_tokens = 1\n' for i in range(43)
    )
    path.write_text(f'title = "t"\nstory = "s"\n[cache]\nblock_size = 4\nnum_blocks = 400\n{requests}')
    assert call("run", str(path)) == 0
    out = capsys.readouterr().out
    assert "… and 3 more requests." in out
    assert f"Watch:  minicache tui {path}" in out
    assert "r39" in out
    assert "r40 " not in out


def test_logs_are_written_and_read_again(tmp_path, capsys):
    assert call("run", "tail-first", "--plain", "--events", str(tmp_path / "run.jsonl")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert call("run", str(tmp_path / "run.jsonl"), "--plain") == 0
    again = capsys.readouterr().out.splitlines()
    told = [line for line in lines if line[:4].strip().isdigit()]
    assert told == [line for line in again if line[:4].strip().isdigit()]
    assert call("explain", str(tmp_path / "run.jsonl"), "--block", "3") == 0
    assert call("run", "two-equal-prompts", "--events", str(tmp_path / "both.jsonl")) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"run.jsonl", "both.hash.jsonl", "both.radix.jsonl"}


def test_the_scenario_or_log_that_was_read_is_not_overwritten(tmp_path, capsys):
    log, file = tmp_path / "run.jsonl", tmp_path / "mine.toml"
    file.write_text('title="t"\nstory="s"\n[[request]]\nid="a"\nprompt=[{text="hello"}]\n')
    assert call("run", str(file), "--events", str(log)) == 0
    for source in (log, file):
        before = source.read_bytes()
        assert call("run", str(source), "--redact", "--events", str(source)) == 2
        assert "reads this file" in capsys.readouterr().err
        assert source.read_bytes() == before


@pytest.mark.parametrize("name", scenario_names())
def test_a_transcript_says_at_its_head_what_a_token_kv_and_the_cache_are(name, capsys):
    assert call("run", name, "--plain") == 0
    out = capsys.readouterr().out
    head = out.partition("   0  ")[0]
    assert "A token is" in head
    assert "KV is" in head
    for kind in find_scenario(name).kinds:
        assert GLOSSARY[{"hash": "hash chain", "radix": "radix tree"}[kind]] in out


def test_redacted_output_has_no_prompt(tmp_path, capsys):
    log = tmp_path / "run.jsonl"
    assert call("run", "tail-first", "--plain", "--redact", "--events", str(log)) == 0
    assert "aaaa" not in capsys.readouterr().out
    assert "[97,97" not in log.read_text()


def test_redacted_output_has_no_key_of_a_header_that_is_not_ours(tmp_path, capsys):
    log, copy = tmp_path / "run.jsonl", tmp_path / "copy.jsonl"
    assert call("run", "tail-first", "--events", str(log)) == 0
    header, events = log.read_text().split("\n", 1)
    log.write_text(json.dumps(json.loads(header) | {"prompts": ["quokka"], "note": "quokka"}) + "\n" + events)
    for options in ([], ["--plain"], ["--json"]):
        capsys.readouterr()
        assert call("run", str(log), "--redact", "--events", str(copy), *options) == 0
        assert "quokka" not in capsys.readouterr().out + copy.read_text()


@pytest.mark.parametrize(
    "wrong",
    [
        'prompt = [{ text = ["VALUE"] }]',
        "prompt = [{ text = { VALUE = 1 } }]",
        'max_tokens = "VALUE"',
        'extra = ["VALUE", 3]',
    ],
)
def test_redaction_hides_the_wrong_value_of_an_error(wrong, tmp_path, capsys):
    path, prompt = tmp_path / "mine.toml", "" if "prompt" in wrong else 'prompt = [{ text = "hello" }]'
    path.write_text(f'title="t"\nstory="s"\n[[request]]\nid="a"\n{wrong.replace("VALUE", "quokka")}\n{prompt}')
    assert call("run", str(path)) == 2
    assert "quokka" in capsys.readouterr().err
    assert call("run", str(path), "--redact") == 2
    words = capsys.readouterr().err
    assert "mine.toml, line 5: request[0]." in words
    assert "quokka" not in words


def test_explain(capsys):
    assert call("explain", "timestamp-top", "--cache", "hash", "--request", "user2") == 0
    assert "The rule: nothing after a difference." in capsys.readouterr().out
    assert call("explain", "timestamp-top", "--event", "5", "--json") == 0
    assert set(json.loads(capsys.readouterr().out)) == {"hash", "radix"}


def test_a_scenario_that_does_not_come_out_is_status_1(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text('title="t"\nstory="s"\n[[request]]\nid="a"\nprompt=[{text="hello"}]\n[expect]\nsteps=3\n')
    assert call("run", str(file)) == 1
    assert "hash: expect.steps is 3, and the run has 16" in capsys.readouterr().err
    assert call("run", str(file), "--set", "cache.num_blocks=9") == 0, "with other settings nothing is expected"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "timestamp-tip"], "there is no scenario 'timestamp-tip': did you mean 'timestamp-top'?"),
        (["run", "none.toml"], "there is no file none.toml"),
        (["run", "none.jsonl"], "there is no file none.jsonl"),
        (["run", "tail-first", "--set", "cache.blocks=3"], "there is no key 'cache.blocks'"),
        (
            ["run", "tail-first", "--set", "cache.num_blocks=2"],
            "the hash cache has 1 (num_blocks = 2 counts the null block",
        ),
        (["run", "tail-first", "--set", "publish_at=never"], "publish_at: must be one of"),
        (["run", "tail-first", "--plain", "--json"], "give one of them"),
        (["run", "tail-first", "--events", "none/x.jsonl"], "there is no folder"),
        (["run", "two-equal-prompts", "--events", ""], "it is a folder"),
        (["run", "two-equal-prompts", "--events", "/"], "--events /: cannot be written: it is a folder"),
        (["run", "two-equal-prompts", "--events", ".."], "--events ..: cannot be written: it is a folder"),
        (["explain", "tail-first"], "say what to explain"),
        (["explain", "tail-first", "--request", "c"], "this run has no request 'c'"),
        (["explain", "tail-first", "--event", "1000"], "there is no event 1000"),
        (["explain", "tail-first", "--block", "99"], "there is no block b99"),
        (["explain", "tail-first", "--request", "a", "--at", "999"], "there is no event 999"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(args, message, capsys):
    assert call(*args) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_the_report_of_a_log_names_every_pool_and_the_fullest(tmp_path, capsys):
    timeline = Timeline.record(find_scenario("thrashing"), "hash")
    ends = timeline.index.of_kind("StepFinished")
    fork = timeline.fork(ends[-3], SetBlockSize(4))
    write_recorded(fork.fork(fork.index.of_kind("StepFinished")[-1], SetNumBlocks(3000)), tmp_path / "run.jsonl")
    for options in ([], ["--plain"]):
        assert call("run", str(tmp_path / "run.jsonl"), *options) == 0
        words = " ".join(capsys.readouterr().out.split())
        assert "The cache: hash, 76 blocks of 16." in words
        assert "The pool was replaced by one of 304 blocks of 4, then 3,000 blocks of 4." in words
        assert "t most 76 of 76" in words


def test_a_log_of_another_version_is_refused(tmp_path, capsys):
    log = tmp_path / "old.jsonl"
    log.write_text('{"minicache_events": 0, "num_blocks": 9, "block_size": 4}\n')
    assert call("run", str(log)) == 2
    assert "old.jsonl, line 1: this log has schema 0" in capsys.readouterr().err
    log.write_text("not json\n")
    assert call("run", str(log)) == 2
    assert "old.jsonl, line 1: not JSON" in capsys.readouterr().err
    assert call("run", str(log), "--cache", "radix") == 2
    assert "is a recorded run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "kind", "request_id", "why"),
    [
        ("timestamp-top", "radix", "user2", "differs at token 13"),
        ("timestamp-top", "hash", "user1", "no earlier request had it"),
        ("multi-turn", "hash", "turn2", "the other request ends there"),
        ("multi-turn", "radix", "turn2", "the next has no KV"),
        ("tail-first", "hash", "b-later", "the next was evicted"),
        ("adapters-and-salts", "hash", "legal-1", "in another namespace"),
        ("in-batch-order", "radix", "summary", "no request computed it before"),
    ],
)
def test_the_table_says_why_no_more_was_found(name, kind, request_id, why, capsys):
    assert call("run", name, "--cache", kind) == 0
    [row] = [line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == [request_id]]
    assert row.rstrip().endswith(why)
