"""Laws of the player: what is shown depends on the place alone, a step and a step back cancel out, and `changed` is
exactly what differs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.sim.breakpoint import Breakpoint
from minicache.sim.timeline import Timeline
from minicache_tui.model.state import State
from minicache_tui.player import BEAT_SECONDS, SPEEDS, Player, Run, Selection
from tests.thinned import thinned

from .player_runs import POINTS, TIMELINES, cells_of, make, moves, player_at, runs, shown, walks

every_run = pytest.mark.parametrize("timeline", TIMELINES.values(), ids=list(TIMELINES))


@given(run=runs, walk=walks)
def test_after_any_moves_all_is_as_for_a_fresh_player_at_that_place(run, walk):
    timeline = TIMELINES[run]
    player = Player(timeline)
    player.breakpoints = list(POINTS)
    for move in walk:
        make(player, move)
    fresh = player_at(timeline, player.place)
    assert shown(player) == shown(fresh)
    assert player.view.snapshot() == timeline.at(player.place).snapshot()
    assert player.view.scheduler_snapshot() == timeline.at(player.place).scheduler_snapshot()


@given(run=runs, walk=walks, data=st.data())
def test_what_is_selected_is_there_and_the_tokens_are_of_a_request_that_came(run, walk, data):
    """Whatever is selected and wherever one moves: Explain has something to say of it."""
    timeline = TIMELINES[run]
    player = Player(timeline)
    for move in walk:
        make(player, move)
        player.explain()
        focus = player.focus_request
        assert focus is None or focus in {**player.view.requests, **player.view.ended}
        assert (focus is None) == (player.ribbon() is None)
        known = {**player.view.requests, **player.view.ended}
        there = [
            [Selection("request", id) for id in known],
            [Selection("token", (id, len(request.tokens) - 1)) for id, request in known.items()],
            [Selection("node", node) for node in player.view.nodes],
            [Selection("block", block) for block in range(1, player.view.num_blocks)],
            [Selection("event", place) for place in range(len(timeline))],
        ]
        player.select(data.draw(st.sampled_from(data.draw(st.sampled_from([some for some in there if some])))))


@every_run
def test_every_event_can_be_taken_back(timeline):
    """Forward one by one and back one by one, with every state on the way."""
    state = State(timeline)
    forward = []
    for place in range(-1, len(timeline)):
        state.go(place)
        forward.append((state.view.snapshot(), state.view.scheduler_snapshot(), bytes(state.cells.codes)))
    for place in range(len(timeline) - 1, -2, -1):
        state.go(place)
        assert (state.view.snapshot(), state.view.scheduler_snapshot(), bytes(state.cells.codes)) == forward[place + 1]


@pytest.mark.parametrize(
    "name", thinned(["one token each", "two-equal-prompts, radix", "two texts", "tail-first, hash"])
)
def test_it_does_not_matter_where_the_checkpoints_are(name, monkeypatch):
    monkeypatch.setattr("minicache_tui.model.state.NEAR", 0)  # every place from a checkpoint
    recorded = TIMELINES[name]
    forward = Player(recorded)
    expected = []
    for _ in range(len(recorded)):
        forward.next_event()
        expected.append(cells_of(forward))
    for checkpoint in range(len(recorded)):
        timeline = Timeline(recorded.settings["num_blocks"], recorded.settings["block_size"], recorded.settings)
        for place, event in enumerate(recorded.events):
            timeline.add(event)
            if place == checkpoint:
                timeline.checkpoint()
        for place in range(checkpoint, min(checkpoint + 16, len(recorded))):
            assert cells_of(player_at(timeline, place)) == expected[place]


@given(run=runs, walk=walks, last=moves)
def test_changed_is_exactly_the_blocks_whose_cell_differs(run, walk, last):
    timeline = TIMELINES[run]
    player = Player(timeline)
    for move in walk:
        make(player, move)
    before, version = cells_of(player), player.version
    if last[0] in ("run", "run back"):
        last = ("step",)
    moved = make(player, last)
    after = cells_of(player)
    assert moved == (player.version != version)
    if not moved:
        return
    if len(before) != len(after) or player.changed is None:
        assert player.changed is None
        assert timeline.next(-1, "PoolReplaced") is not None
    else:
        assert player.changed == {block for block in range(len(after)) if before[block] != after[block]}


@given(run=runs, place=st.integers(-1, 160))
def test_a_step_and_a_step_back_return_to_a_stop(run, place):
    timeline = TIMELINES[run]
    player = player_at(timeline, min(place, len(timeline) - 1))
    player.step()
    player.back()
    at_stop = player.place
    if player.step():
        assert player.beat.start == at_stop + 1
        player.back()
        assert player.place == at_stop


@every_run
def test_moves_say_whether_they_moved_and_stay_within_the_run(timeline):
    player = Player(timeline)
    assert not player.back()
    assert not player.previous_event()
    assert not player.start()
    assert player.end()
    assert player.at_end
    for move in ("step", "next_event", "next_step", "next_request", "end", "continue_"):
        assert not getattr(player, move)()
    assert not player.seek(10**9)
    assert not any(player.run_to(run) for run in Run)


def test_step_by_step_the_key_goes_through_every_stop_and_back():
    player = Player(TIMELINES["tail-first, hash"])
    there = []
    while player.step():
        there.append(player.place)
    back = [player.place]
    while player.back():
        back.append(player.place)
    assert back == [*reversed(there), -1]


def test_playing_takes_as_many_beats_as_are_due():
    player = Player(TIMELINES["tail-first, hash"])
    player.playing = True
    assert not player.advance(BEAT_SECONDS / 2)
    assert player.advance(BEAT_SECONDS / 2)
    stops = list(player.beats.stops)
    assert player.place == stops[0]
    player.speed = 2
    assert player.advance(BEAT_SECONDS)
    assert player.place == stops[4]
    player.speed = -1
    assert not player.advance(BEAT_SECONDS)
    assert player.advance(BEAT_SECONDS)
    assert player.place == stops[5]


def test_playing_stops_at_a_breakpoint_inside_a_beat_and_at_the_end():
    player = Player(TIMELINES["tail-first, hash"])
    sampled = player.timeline.next(-1, "TokensSampled")
    assert sampled not in player.beats.stops
    player.breakpoints = [Breakpoint(kind="TokensSampled")]
    player.playing, player.speed = True, SPEEDS.stop - 1
    player.advance(10)
    assert player.place == sampled
    assert not player.playing
    player.start()
    player.breakpoints = [Breakpoint(kind="RequestFinished")]
    player.playing, player.speed = True, 0
    assert player.advance(BEAT_SECONDS)
    assert player.playing
    assert player.place == player.beats.stops[0]
    player.breakpoints = []
    player.speed = SPEEDS.stop - 1
    player.advance(100)
    assert player.at_end
    assert not player.playing
    assert not player.advance(1)


def test_speed_stays_within_its_limits():
    player = Player(TIMELINES["tail-first, hash"])
    player.speed = 99
    assert player.speed == 6
    player.speed = -99
    assert player.speed == -3


def test_each_target_is_what_it_says():
    timeline = TIMELINES["thrashing, hash"]
    events = timeline.events
    for run, right in {
        Run.HIT: lambda e: type(e).__name__ == "PrefixMatched" and e.num_tokens > 0,
        Run.MISS: lambda e: type(e).__name__ == "PrefixMatched" and e.end == "no_entry",
        Run.EVICT: lambda e: type(e).__name__ == "BlocksEvicted",
    }.items():
        player, found = Player(timeline), []
        while player.run_to(run):
            found.append(player.place)
        assert found
        assert all(right(events[place]) for place in found)
        assert all(place in player.beats.stops for place in found)
        back = []
        player.end()
        while player.run_back_to(run):
            back.append(player.place)
        assert back == found[::-1]
    equal = Player(TIMELINES["two-equal-prompts, hash"])
    assert [list(equal.beats.targets[run]) for run in (Run.MISS, Run.HIT)] == [[3], [7]]
    admissions = [e for e in events if type(e).__name__ == "RequestAdmitted"]
    player = Player(timeline)
    assert len(player.beats.targets[Run.HIT]) == sum(e.num_cached_tokens > 0 for e in admissions)
