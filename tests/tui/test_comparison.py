"""Two in lock-step: neither is ever a step ahead, and each frame is reached from both sides."""

from itertools import pairwise

import pytest
from hypothesis import given, settings

from minicache.bench.sim import workload
from minicache.sim.breakpoint import Breakpoint
from minicache.sim.errors import BadChange
from minicache.sim.fork import EditPrompt, SetPolicy
from minicache.sim.library import find_scenario
from minicache.sim.prompt import Segment
from minicache.sim.timeline import Timeline
from minicache_tui.comparison import Comparison
from minicache_tui.player import BEAT_SECONDS, Player

from .player_runs import make, shown, walks


def forked():
    player = Player(Timeline.record(find_scenario("timestamp-top")))
    player.seek(10)
    return player.fork(EditPrompt("user3", (Segment("other things", 64),)))


MADE = {
    "kinds": Comparison.of_kinds(find_scenario("two-equal-prompts")),
    "busy": Comparison.of_kinds(workload(6)),
    "policies": Comparison.of_policies(
        Player(Timeline.record(find_scenario("in-batch-order"), "radix")), {"queue_policy": "fcfs"}
    ),
    "fork": Comparison.of_fork(forked()),
}


def in_step(comparison):
    """Both are in the same scheduler step, unless a run is over before."""
    steps = []
    for player in (comparison.left, comparison.right):
        steps.append(player.timeline.step_of(player.place))
        if player.at_end:
            steps[-1] = max(steps[-1], comparison.step_now)
    return steps[0] == steps[1] == comparison.step_now


@pytest.mark.parametrize("name", MADE)
def test_every_frame_is_in_step_and_every_stop_of_both_is_in_a_frame(name):
    comparison = MADE[name]
    comparison.start()
    seen = [(comparison.left.place, comparison.right.place)]
    while comparison.step():
        assert in_step(comparison)
        before, now = seen[-1], (comparison.left.place, comparison.right.place)
        assert before[0] <= now[0]
        assert before[1] <= now[1]
        assert before != now
        seen.append(now)
    for side, player in enumerate((comparison.left, comparison.right)):
        assert set(player.beats.stops) <= {places[side] for places in seen}
        assert player.at_end
    back = [seen[-1]]
    while comparison.back():
        back.append((comparison.left.place, comparison.right.place))
    assert back == seen[::-1]


@pytest.mark.parametrize("name", MADE)
@settings(max_examples=15)
@given(walk=walks)
def test_no_move_takes_one_side_a_step_ahead(name, walk):
    comparison = MADE[name]
    comparison.start()
    comparison.breakpoints = [Breakpoint(kind="BlocksAdopted")]
    for move in walk:
        before = comparison.frame
        assert make(comparison, move) is not None
        assert in_step(comparison) or comparison.frame == 0
        if move[0] == "step" and comparison.frame == before:
            assert comparison.at_end
    for player in (comparison.left, comparison.right):
        fresh = Player(player.timeline, parent=player)
        fresh.seek(player.place)
        assert shown(player) == shown(fresh)


def test_runs_to_the_first_of_both_sides_and_stops_at_breakpoints_of_either():
    comparison = MADE["kinds"]
    comparison.start()
    comparison.breakpoints = [Breakpoint(kind="BlocksAdopted")]
    assert comparison.continue_()
    places = comparison.left.place, comparison.right.place
    assert type(comparison.left.current).__name__ == "BlocksAdopted"
    comparison.end()
    while comparison.reverse_continue() and comparison.frame:
        last = comparison.left.place, comparison.right.place
    assert last == places


@pytest.mark.parametrize("name", MADE)
def test_next_and_previous_of_a_kind_are_the_nearest_frames_that_come_over_it(name):
    comparison = MADE[name]
    kinds = ("BlocksAdopted", "RequestFinished")
    comparison.start()
    frames = [(comparison.left.place, comparison.right.place)]
    while comparison.step():
        frames.append((comparison.left.place, comparison.right.place))
    right = []
    for number, (before, now) in enumerate(pairwise(frames), 1):
        for side, player in enumerate((comparison.left, comparison.right)):
            passed = player.timeline.events[before[side] + 1 : now[side] + 1]
            if any(type(event).__name__ in kinds for event in passed) and number not in right:
                right.append(number)
    comparison.start()
    found = []
    while comparison.next_of(*kinds):
        found.append(comparison.frame)
    assert found == right
    comparison.end()
    found = []
    while comparison.previous_of(*kinds):
        found.append(comparison.frame)
    assert found == [number for number in reversed(right) if number < len(frames) - 1]


def test_a_fork_with_another_strategy_names_it_from_there_on():
    player = Player(Timeline.record(find_scenario("radix-split-and-prune"), "radix"))
    player.go_to_request("third")
    branch = player.fork(SetPolicy({"strategy": "mru"}))
    assert branch.facts().endswith("mru")
    branch.start()
    assert branch.facts().endswith("lru")


def test_plays_frame_by_frame_and_stops_at_a_breakpoint():
    comparison = MADE["kinds"]
    comparison.start()
    comparison.breakpoints = [Breakpoint(kind="BlocksAdopted")]
    comparison.playing = True
    assert comparison.advance(BEAT_SECONDS)
    assert comparison.frame == 1
    assert comparison.advance(BEAT_SECONDS * 100)
    assert not comparison.playing
    assert type(comparison.left.current).__name__ == "BlocksAdopted"


def test_rates_are_those_up_to_here_and_totals_those_of_the_whole_runs():
    fork = Comparison.of_fork(forked())
    fork.start()
    assert fork.rates == ("–", "–")
    totals = fork.totals
    fork.end()
    assert fork.rates == totals
    assert all(total.endswith(" %") for total in totals)


def test_two_caches_are_compared_from_the_step_on_at_which_one_was():
    scenario = find_scenario("timestamp-top")
    assert Comparison.of_kinds(scenario).place == -1
    for step in (1, 5, 10**6):
        comparison = Comparison.of_kinds(scenario, step)
        assert comparison.step_now == min(step, comparison.num_steps)
    assert comparison.labels == ("hash chain, blocks of 16", "radix tree, blocks of 1")


def test_the_parting_is_told_with_the_names_of_both():
    assert MADE["kinds"].parting.sentence == (
        "In step 1 the hash chain finds 32 tokens of user2, the radix tree finds 0 tokens of user2."
    )
    fork = MADE["fork"]
    assert fork.labels == ("the original", "the fork")
    assert fork.parting.request == "user3"
    assert "the original" in fork.parting.sentence
    policies = MADE["policies"]
    assert policies.labels == ("as it is", "queue_policy = fcfs")
    same = Comparison.of_policies(Player(Timeline.record(find_scenario("tail-first"))), {"max_num_seqs": 200})
    assert same.parting is None


def test_a_fork_begins_at_the_step_boundary_and_leaves_its_parent_alone():
    player = Player(Timeline.record(find_scenario("timestamp-top")))
    player.seek(10)
    player.breakpoints = [Breakpoint(block=3)]
    before = shown(player)
    branch = player.fork(SetPolicy({"max_num_seqs": 2}))
    assert branch.parent is player
    assert branch.breakpoints == player.breakpoints
    assert branch.breakpoints is not player.breakpoints
    assert branch.place == player.timeline.next(-1, "StepFinished")
    assert branch.timeline.events[: branch.place] == player.timeline.events[: branch.place]
    assert shown(player) == before
    with pytest.raises(BadChange, match="no fork"):
        Comparison.of_fork(player)


def test_a_forked_prompt_is_labelled_as_it_was_edited():
    branch = forked()
    branch.go_to_request("user3")
    assert branch.ribbon("user3").blocks[0].text == "other things 0–15"
