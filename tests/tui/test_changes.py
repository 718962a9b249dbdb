"""What a person types for a fork: the request of a prompt, also one whose id has a colon in it."""

import pytest

from minicache.core.errors import MinicacheError
from minicache.sim.library import scenario_names
from minicache.sim.prompt import Text
from minicache.sim.scenario_file import read_scenario
from minicache.sim.timeline import Timeline
from minicache_tui.changes import ASKS, between, forked, injected, offers, outcome
from minicache_tui.player import Player
from minicache_tui.sources import open_run

EDIT = ASKS[1]


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


@pytest.mark.parametrize("name", scenario_names())
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
    assert words == "In the whole run, of every request: “It is 14:03:21. You are…” behind “[rules and tools 582]”."
    assert "Another prompt for a request" in titles(player)
    player.end()
    assert titles(player)[0].startswith("Move what comes first"), "it begins at the beginning, from everywhere"
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
