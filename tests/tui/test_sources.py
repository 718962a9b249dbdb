"""What can be opened, and what is said when it cannot be; selections and what is explained of them."""

import pytest

from minicache.core.errors import InvalidArgument, MinicacheError
from minicache.core.event_log import BadLog
from minicache.sim.errors import BadScenario, UnknownScenario, UnknownThing
from minicache.sim.explainer import explain_block, explain_event, explain_request
from minicache.sim.library import find_scenario
from minicache.sim.narrator import Narrator
from minicache.sim.recorded import write_recorded
from minicache_tui import sources
from minicache_tui.player import NOTHING, Player, Selection

from .player_runs import TIMELINES, shown


def test_a_scenario_is_opened_by_name_over_a_cache_and_with_settings():
    player = sources.open_run("timestamp-top")
    assert (player.place, player.timeline.kind) == (-1, "hash")
    assert player.story().startswith("A timestamp at the top of the system prompt\n")
    assert player.sentences() == []
    radix = sources.open_run("timestamp-top", "radix")
    assert radix.timeline.kind == "radix"
    assert "--cache radix" in radix.permalink
    small = sources.open_run("timestamp-top", settings=["cache.num_blocks=100"])
    assert small.view.num_blocks == 100


def test_a_recorded_run_looks_as_the_run_did_but_for_the_names_of_segments(tmp_path):
    path = tmp_path / "run.jsonl"
    timeline = TIMELINES["tail-first, hash"]
    write_recorded(timeline, path)
    player, original = sources.open_run(str(path)), Player(timeline)
    while original.step():
        player.step()
        assert shown(player) == shown(original)


def test_a_scenario_in_a_file_is_opened(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text((sources.find_scenario.__globals__["FOLDER"] / "tail-first.toml").read_text())
    assert sources.open_run(str(path)).timeline.scenario.title == find_scenario("tail-first").title


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("timestamp-topp", {}, UnknownScenario, "timestamp-top"),
        ("nowhere.toml", {}, UnknownScenario, "nowhere.toml"),
        ("nowhere.jsonl", {}, BadLog, "nowhere.jsonl"),
        ("run.jsonl", {"kind": "radix"}, InvalidArgument, "recorded run"),
        ("tail-first", {"settings": ["num_block=3"]}, BadScenario, "num_blocks"),
        ("tail-first", {"settings": ["num_blocks=2"]}, BadScenario, "can never fit"),
    ],
)
def test_what_cannot_be_opened_is_said_in_a_sentence(name, options, error, words):
    with pytest.raises(error, match=words) as caught:
        sources.open_run(name, **options)
    assert isinstance(caught.value, MinicacheError)


def test_a_broken_log_names_its_line(tmp_path):
    path = tmp_path / "run.jsonl"
    write_recorded(TIMELINES["tail-first, hash"], path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:9], "{", *lines[10:]]))
    with pytest.raises(BadLog, match="line 10"):
        sources.open_run(str(path))


def test_both_caches_are_opened_side_by_side():
    comparison = sources.open_both("two-equal-prompts")
    assert (comparison.left.timeline.kind, comparison.right.timeline.kind) == ("hash", "radix")
    with pytest.raises(InvalidArgument, match="nothing to compare"):
        sources.open_both("run.jsonl")


def test_a_permalink_comes_back_to_its_place():
    player = sources.open_run("tail-first", "hash")
    player.seek(33)
    name, place = player.permalink.removeprefix("minicache tui ").split(" --event ")
    other = sources.open_run(name)
    sources.go_to(other, event=int(place))
    assert shown(other) == shown(player)
    sources.go_to(other, step=3)
    assert other.place == 33, "the first lookup of the step, in which it begins at 32"
    quiet = sources.open_run("timestamp-top")
    sources.go_to(quiet, step=2)
    assert quiet.timeline.place_of_step(2) == quiet.place, "where it begins, for it has no lookup"
    sources.go_to(other, request="b-later")
    assert (other.focus_request, other.place) == ("b-later", 54)
    for where in ({"event": 99}, {"step": 99}, {"request": "b-latter"}):
        with pytest.raises(UnknownThing):
            sources.go_to(other, **where)


# The sentences are the simulator's


@pytest.mark.parametrize("name", TIMELINES)
def test_the_sentences_are_those_of_the_transcript(name):
    timeline = TIMELINES[name]
    words = {line.place: (line.words, line.rule) for line in Narrator(timeline).lines()}
    player = Player(timeline)
    while player.step():
        for account in player.sentences():
            assert (account.sentence, account.rule) == words[account.place]
        assert player.sentences()[-1].place == player.place


def test_whatever_is_selected_is_explained_as_it_stands_at_this_place():
    timeline = TIMELINES["preempt-and-resume, hash"]
    player = Player(timeline)
    player.seek(60)
    assert player.explain() == explain_event(timeline, 60)
    for selection, expected in (
        (Selection("event", 17), explain_event(timeline, 17)),
        (Selection("request", "second"), explain_request(timeline, "second", 60)),
        (Selection("block", 3), explain_block(timeline, 3, 60)),
    ):
        version = player.version
        player.select(selection)
        assert player.version > version
        assert player.explain() == expected
    assert player.chosen_blocks() == {3}
    player.select(Selection("token", ("first", 0)))
    assert player.explain().summary == "Token 0 of first, of its prompt, is in block b1 and was computed."
    player.select(Selection("request", "nobody"))
    with pytest.raises(UnknownThing, match="nobody"):
        player.explain()


def test_a_node_is_explained_from_its_birth_to_its_end():
    player = Player(TIMELINES["radix-split-and-prune, radix"])
    player.select(Selection("node", 1))
    with pytest.raises(UnknownThing, match="no node 1"):
        player.explain()
    player.go_to_request("fourth")
    player.select(Selection("node", 1))
    explained = player.explain()
    assert 'holds 12 tokens in 12 blocks, "good morning": no request locks it' in explained.summary
    assert [account.sentence.split()[0] for account in explained.accounts] == ["28", "Node"]
    player.select(Selection("node", 2))
    assert "2 nodes below it must be evicted before it" in player.explain().summary
    player.end()
    assert player.selection == NOTHING, "it is let go where it is not there any more"
    player.select(Selection("node", 2))
    assert player.explain().summary == "Node 2 is not in the tree any more."
    assert "leave the tree" in player.explain().accounts[-1].sentence
