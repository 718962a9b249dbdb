"""What a person types for a fork: it is read as it is meant, what is wrong is said in a sentence, and what is different
has one name everywhere."""

import pytest

from minicache.core.errors import MinicacheError
from minicache.sim.errors import BadChange
from minicache.sim.fork import SetPolicy
from minicache.sim.library import scenario_names
from minicache.sim.policy import settings_of
from minicache.sim.prompt import Text
from minicache.sim.recorded import write_recorded
from minicache.sim.redact import redacted
from minicache.sim.scenario_file import read_scenario
from minicache.sim.timeline import Timeline
from minicache_tui.asks import ASKS, forked, offers, policy_hint, policy_suggestion, read_policy
from minicache_tui.changes import between, injected, injection_defaults, outcome
from minicache_tui.comparison import Comparison
from minicache_tui.player import Player
from minicache_tui.sources import open_log, open_run
from tests.thinned import thinned

EDIT = ASKS[1]
TITLES = {ask.title: ask for ask in ASKS}
POOLS = ("Another number of blocks", "Fewer blocks", "Another block size")


def player_of(*ids: str) -> Player:
    requests = "".join(
        f'[[request]]\nid = "{id}"\nprompt = [{{ text = "a prompt: {id}" }}]\nmax_tokens = 2\n' for id in ids
    )
    toml = f'title = "t"\nstory = "s"\n[cache]\nblock_size = 4\nnum_blocks = 40\n{requests}'
    return Player(Timeline.record(read_scenario(toml, "test", "test.toml", {})))


@pytest.mark.parametrize("ids", [("r1", "r2"), ("chat:7:a", "chat"), ("chat", "chat:7"), ("a:", "a"), (":", "b")])
def test_what_the_dialog_shows_at_first_is_read_as_it_was_written(ids) -> None:
    player = player_of(*ids)
    line = EDIT.suggest(player.timeline, -1)
    assert line is not None
    branch = forked(player, EDIT, line)
    assert [str(event) for event in branch.timeline.events] == [str(event) for event in player.timeline.events]


@pytest.mark.parametrize("id", ["chat:7:a", "chat"])
def test_the_longest_id_that_is_there_is_meant(id) -> None:
    branch = forked(player_of("chat", "chat:7:a"), EDIT, f" {id}: other: words")
    (_, change), *_ = branch.timeline.changes
    assert change.request == id
    assert change.prompt == (Text("other: words"),)


@pytest.mark.parametrize(
    "name", thinned(scenario_names(), "timestamp-top", "thrashing", "sglang-article", "multi-turn")
)
def test_what_is_offered_can_be_done_as_it_is_suggested(name) -> None:
    player = open_run(name)
    for place in (-1, len(player.timeline) // 2, len(player.timeline) - 1):
        player.seek(place)
        for ask, words in offers(player):
            assert words
            line = ask.suggest(player.timeline, player.place)
            branch = forked(player, ask, line or "")
            assert branch.parent is player, ask.title


def test_what_cannot_be_done_is_not_offered_and_what_is_names_its_parts() -> None:
    def titles(player: Player) -> list[str]:
        return [ask.title for ask, _ in offers(player)]

    player = open_run("timestamp-top")
    (_, words), *_ = offers(player)
    assert (
        words == "In the whole run, of every request: “It is 14:03:21. You are…” comes after “[rules and tools 582]”."
    )
    assert "Another prompt for a request" in titles(player)
    player.end()
    assert titles(player)[0].startswith("Move the first part"), "it begins at the beginning, from everywhere"
    assert "Another prompt for a request" not in titles(player)
    for name in ("tail-first", "thrashing"):
        player = open_run(name)
        parts = [spec.prompt for spec in player.timeline.scenario.requests]
        assert titles(player)[0].startswith("Move") == any(len(prompt) > 1 for prompt in parts)


def test_a_request_that_is_not_there_is_named() -> None:
    with pytest.raises(MinicacheError, match="no request 'r3'"):
        forked(player_of("r1"), EDIT, "r3: words")
    with pytest.raises(MinicacheError, match="a colon"):
        forked(player_of("r1"), EDIT, "r1 words")


def test_where_a_fork_begins_and_what_comes_of_a_request_are_said() -> None:
    player = player_of("r1", "r2")
    assert between(player) == "before step 1"
    player.seek_step(2)
    assert between(player) == "between step 1 and step 2"
    player.end()
    assert between(player) == f"after step {player.num_steps}"
    words = outcome(injected(player, "mine:1 (3): a prompt: r1 and more"))
    assert words == "mine:1 comes in after step 2, is admitted in step 3 and hits 12 of its 21 tokens."
    player.seek(-1)
    assert outcome(injected(player, "first (1): a")).startswith("first comes in before step 1, is admitted in step 1 ")


@pytest.mark.parametrize("name", ["two-equal-prompts", "thrashing"])
def test_a_prompt_alone_can_be_sent_again_and_again(name) -> None:
    """Into a fork of a fork too, wherever it is made, and beside ids that somebody chose."""
    player = open_run(name)
    for place, line in ((-1, "a"), (10**6, "b"), (-1, "mine4 (2): c"), (5, "d"), (10**6, "e"), (20, "f")):
        player.seek(place)
        id, prompt, max_tokens = injection_defaults(player.timeline, player.place)
        assert id not in player.index.requests
        assert injected(player, f"{id} ({max_tokens}): {prompt}").index.requests.keys() >= {id}, "as it is suggested"
        player = injected(player, line)
        sent = player.timeline.changes[-1][1].spec.id
        assert sent in player.index.requests
        assert sent not in player.parent.index.requests


def test_what_a_fork_sent_or_edited_is_there_to_be_edited_and_stays_in_a_fork_from_the_beginning() -> None:
    player = open_run("timestamp-top")
    player.seek_step(3)
    branch = forked(injected(player, "mine1 (2): [one 20] | [two 20]"), EDIT, "user4: other words")
    branch.start()
    with pytest.raises(MinicacheError, match="no request 'mine1'"):
        forked(branch, EDIT, "mine1: words")
    branch.end()
    move = ASKS[0]
    moved = forked(branch, move, "")
    assert [change for _, change in moved.timeline.changes[1:]] == [change for _, change in branch.timeline.changes]
    assert {"mine1", "user4"} <= moved.index.requests.keys()
    assert moved.ribbon("user4").blocks[0].text.startswith("other words")
    assert moved.difference == forked(player, move, "").difference
    player.seek_step(6)
    again = forked(player, EDIT, "user5: other words")
    again.go_to_request("user4")
    again.next_step()
    assert EDIT.suggest(again.timeline, again.place).startswith("user5: other words")


@pytest.mark.parametrize("name", ["timestamp-top", "sglang-article", "thrashing"])
def test_what_is_different_has_one_name_in_the_title_the_menu_and_the_comparison(name) -> None:
    player = open_run(name)
    player.seek_step(2)
    for ask, _ in offers(player):
        branch = forked(player, ask, ask.suggest(player.timeline, player.place) or "")
        words = branch.difference
        assert branch.title == f"A fork: {words}"
        comparison = Comparison.of_fork(branch)
        assert comparison.labels == ("the original", f"the fork: {words}")
        assert words[-1] != ".", "it is no sentence, but a part of some"
        if branch.timeline.changes:
            assert branch.timeline.changes[-1][1].describe() == words
        again = branch.fork(None)
        assert again.difference == "nothing is different"
        twice = forked(branch, TITLES["Fewer blocks"], "1")
        assert forked(twice, TITLES["Fewer blocks"], "1").difference == "1 block is taken away"
        if twice.timeline.changes[0][0]:
            twice.start()
            assert twice.fork(None).difference == f"without this: {twice.timeline.changes[0][1].describe()}"
    title = "Move the first part of each prompt after the second"
    assert TITLES[title].from_start
    assert title in [ask.title for ask in ASKS]


@pytest.mark.parametrize("title", POOLS)
@pytest.mark.parametrize("name", ["timestamp-top", "radix-split-and-prune", "preempt-and-resume"])
def test_a_number_that_cannot_be_is_refused_in_a_sentence(title, name) -> None:
    player = open_run(name)
    player.seek_step(2)
    lines = ["", " ", "many", "-5", "0", "-0", "1.5", "1e3", "9" * 30, "9" * 6000, "-" + "9" * 6000, "1_0", "0x10"]
    for line in (*lines, "999999999999", "3000000"):
        with pytest.raises(MinicacheError) as caught:
            forked(player, TITLES[title], line)
        words = str(caught.value)
        assert words
        assert "\n" not in words
        assert len(words) < 200, line
        assert "Exceeds" not in words


@pytest.mark.parametrize("name", scenario_names())
def test_another_number_of_blocks_is_what_it_says_from_there_on(name) -> None:
    player = open_run(name)
    ask = TITLES["Another number of blocks"]
    for place in (-1, len(player.timeline) // 2):
        player.seek(place)
        now = player.view.num_blocks - 1
        line = ask.suggest(player.timeline, player.place)
        branch = forked(player, ask, f" {int(line):,} ")
        assert now < int(line)
        assert branch.difference == f"{line} blocks, and an empty cache".replace(line, f"{int(line):,}")
        assert branch.place == (branch.timeline.forked_at or 0) - 1
        begins = branch.timeline.next(-1, "PoolReplaced")
        assert (begins is None) == (branch.timeline.forked_at == 0), "a run that begins with a pool does not replace it"
        branch.seek(-1 if begins is None else begins)
        assert branch.view.num_blocks - 1 == int(line)
        assert f"{int(line):,} blocks of {player.view.block_size}" in branch.facts()
        counts = branch.cells.counts()
        assert (counts.used, counts.cached) == (0, 0), "it is empty"
        assert branch.view.step == player.timeline.completed_steps(place)
        branch.end()
        assert not branch.view.requests, "the preempted requests start again, and all come to an end"
        hint = ask.hint(player.timeline, player.place)
        least = int(hint.partition(" from ")[2].partition(",")[0].replace(",", ""))
        if place < 0:
            assert forked(player, ask, str(least)).view.num_blocks == least + 1
            with pytest.raises(BadChange, match=f"needs {least:,} block"):
                forked(player, ask, str(least - 1)) if least > 1 else pytest.skip("one block is enough")


def test_more_room_ends_the_thrashing() -> None:
    player = open_run("thrashing")
    ask = TITLES["Another number of blocks"]
    branch = forked(player, ask, ask.suggest(player.timeline, -1))
    assert branch.index.totals["evicted_blocks"] < player.index.totals["evicted_blocks"]
    assert branch.timeline.hit_rate(len(branch.timeline) - 1) > player.timeline.hit_rate(len(player.timeline) - 1)


@pytest.mark.parametrize("kind", ["hash", "radix"])
@pytest.mark.parametrize("recorded", [False, True], ids=["scenario", "log"])
def test_the_settings_that_are_listed_are_those_that_can_be_typed_with_all_their_values(
    kind, recorded, tmp_path
) -> None:
    player = open_run("in-batch-order", kind)
    if recorded:
        write_recorded(player.timeline, tmp_path / "run.jsonl")
        player = open_log(tmp_path / "run.jsonl")
    ask, hint = TITLES["Another policy"], policy_hint(player.timeline, -1)
    values = player.timeline.policy_at(-1)
    assert ("strategy" in values) == (kind == "radix")
    assert ("publish_at" in values) == (kind == "hash")
    for name, value in values.items():
        assert f"{name}={value}" in hint
        for other in settings_of(kind)[name] or (value,):
            assert other is value or str(other) in hint
            branch = forked(player, ask, f"{name}={other}")
            assert branch.timeline.policy_at(branch.place) == values | {name: other}
            assert f"{name}={other}" in policy_hint(branch.timeline, branch.place)
    suggested = policy_suggestion(player.timeline, -1)
    assert read_policy(suggested).items() - values.items(), "something else than it is"


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_a_wrong_setting_or_value_names_the_right_ones(kind) -> None:
    player = open_run("in-batch-order", kind)
    known = settings_of(kind)
    names = ["strategy", "publish_at"]
    lines = [f"{name}=banana" for name in (*known, *names)] + [f"{name}=[1]" for name in known]
    lines += [f"{name}={{a=1}}" for name in known] + [
        "num_blocks=97",
        "block_size=4",
        "max_num_seq=2",
        "x=1",
        "x",
        "=",
        "",
    ]
    lines += ["max_num_seqs=0", "max_num_seqs=-1", "max_num_seqs=true", "watermark=2", "watermark=nan", "watermark=inf"]
    lines += [
        "max_num_seqs=" + "9" * 6000,
        "max_num_seqs=1 max_num_seqs=2",
        "max_num_seqs=1979-05-27",
        "queue_policy=5",
    ]
    for line in lines:
        for make in (
            lambda line: forked(player, TITLES["Another policy"], line),
            lambda line: Comparison.of_policies(player, read_policy(line)),
        ):
            with pytest.raises(MinicacheError) as caught:
                make(line)
            words = str(caught.value)
            name = line.partition("=")[0]
            assert len(words) < 400
            if known.get(name):
                assert all(value in words for value in known[name]), words
            elif name in known:
                assert name in words
    for name, others in (("strategy", "hash chain"), ("publish_at", "compute")):
        if name not in known:
            with pytest.raises(BadChange, match=f"^{name}: .*{others}"):
                player.fork(SetPolicy({name: "banana"}))
    with pytest.raises(BadChange, match="another number of blocks"):
        player.fork(SetPolicy({"num_blocks": 97}))
    with pytest.raises(BadChange, match=f"it has {', '.join(known)}"):
        player.fork(SetPolicy({"colour": 97}))


def test_of_a_run_that_cannot_be_run_again_nothing_is_offered_and_it_is_said_why() -> None:
    player = Player(redacted(open_run("thrashing").timeline))
    with pytest.raises(BadChange, match="this run is redacted"):
        offers(player)
