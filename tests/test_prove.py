"""`make prove` finds broken laws, and its files are enough to repeat each case."""

import argparse
import json

import pytest

from minicache.core import RadixCache
from tests import prove
from tests.core.mutants import hashed_by
from tests.core.world import random_history
from tests.properties import workloads
from tests.properties.cases import AnswersCase, Broken, CoreCase, answers, case_from_json, core, eventful_case
from tests.prove import Law, duration, report


def law_of(kind):
    return Law(f"answers, {kind}", answers(kind), eventful_case(kind))


def look(law, seconds=600, shrink=0.3):
    """Until the law is broken; a law that holds is looked at for `seconds`."""
    prove.prove([law], seconds, seed=1, shrink=shrink)
    return law


def test_a_wrong_hash_is_shown_at_the_first_token_that_comes_out_otherwise(monkeypatch, tmp_path, capsys):
    # Every block counts as equal to one that differs in its first token alone: nothing is corrupt but the answers.
    monkeypatch.setitem(workloads.CACHES, "hash", hashed_by(lambda parent, tokens, keys: (parent, tokens[1:], keys)))
    law = look(law_of("hash"))
    assert report([law], tmp_path) == 1
    [path] = tmp_path.iterdir()
    assert path.name == "answers-hash-1.json"
    assert str(path) in capsys.readouterr().out
    written = json.loads(path.read_text())
    assert {"law", "settings", "requests", "troubles", "first_difference"} == written.keys()
    difference = written["first_difference"]
    assert difference["event"]["type"] == "TokensSampled"
    assert difference["event"]["request"] == difference["request"]
    assert difference["what"].startswith(f"{difference['request']}, position {difference['position']}: token ")
    assert difference["with_cache"]["logits"] != difference["without_cache"]["logits"]
    assert any("BlocksAdopted" in line for line in difference["request_before"])  # where the wrong KV came from

    assert prove.replay(path) == 1
    assert difference["what"] in capsys.readouterr().out
    monkeypatch.undo()
    assert prove.replay(path) == 0
    assert "holds for this case now" in capsys.readouterr().out


@pytest.mark.nightly
def test_a_failure_is_made_small(monkeypatch):
    """Also one that the first case shows, which is large and not random."""
    monkeypatch.setitem(workloads.CACHES, "hash", hashed_by(lambda parent, tokens, keys: (parent, tokens[:-1], keys)))
    with pytest.raises(Broken):
        eventful_case("hash").hold()
    case, _ = look(law_of("hash"), shrink=20).broken
    assert len(case.prompts) < len(eventful_case("hash").prompts)
    assert prove.size(case) < prove.size(eventful_case("hash")) / 2


@pytest.mark.parametrize("make", [lambda: law_of("radix"), lambda: Law("core", core("serving", "radix"))])
def test_a_table_that_is_not_rewritten_is_shown_at_the_last_event_before(make, monkeypatch, tmp_path):
    def frees_and_forgets(self, request, inserted, start):
        if start < inserted.num_shared:
            self.pool.free(request.block_table[start : inserted.num_shared])

    monkeypatch.setattr(RadixCache, "_rewrite", frees_and_forgets)
    law = look(make())
    assert report([law], tmp_path) == 1
    difference = json.loads(next(tmp_path.iterdir()).read_text())["first_difference"]
    assert difference["what"].startswith("broke off: ")
    assert difference["event"]["seq"] == len(difference["before"]) or len(difference["before"]) == 20


def test_what_holds_is_counted(tmp_path, capsys):
    law = look(law_of("hash"), seconds=1)
    assert law.broken is None
    assert law.examples > 0
    assert report([law], tmp_path) == 0
    out = capsys.readouterr().out
    assert f"in all: {law.examples} examples, {law.seen['hits']} hits, " in out
    assert not list(tmp_path.iterdir())


def test_that_nothing_happened_is_no_proof(tmp_path, capsys):
    assert report([Law("answers, hash", answers("hash"))], tmp_path) == 1
    assert "no hits, evictions, preemptions, shared blocks" in capsys.readouterr().out


@pytest.mark.parametrize("case", [eventful_case("radix"), CoreCase(random_history("serving", "hash", 1))])
def test_a_case_read_back_is_the_same(case):
    assert case_from_json(json.loads(json.dumps(case.to_json()))) == case
    assert isinstance(case, AnswersCase | CoreCase)


def test_a_failure_that_is_written_twice_keeps_both(tmp_path):
    broken = Broken({"what": "something"})
    paths = [prove.write(tmp_path / "new", "answers, hash", eventful_case("hash"), broken) for _ in range(2)]
    assert [path.name for path in paths] == ["answers-hash-1.json", "answers-hash-2.json"]


def test_durations():
    assert [duration(text) for text in ("90s", "10m", "1h")] == [90, 600, 3600]
    for text in ("10", "0m", "m", "1.5h", "10 m"):
        with pytest.raises(argparse.ArgumentTypeError, match="90s, 10m or 1h"):
            duration(text)


@pytest.mark.parametrize("content", ["", "{}", '{"operations": 3}', "[]"])
def test_another_file_is_refused_in_a_sentence(content, tmp_path, capsys):
    path = tmp_path / "other.json"
    path.write_text(content)
    assert prove.replay(path) == 2
    assert f"{path} is not a file that `make prove` wrote" in capsys.readouterr().err
