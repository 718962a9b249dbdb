"""State and rows however they were reached, over runs with many checkpoints, and how little a step back does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.sim.timeline import Timeline
from minicache_tui.model import folding, state, stretch
from minicache_tui.model.state import State
from minicache_tui.player import Player
from tests.thinned import thinned

from .player_runs import TIMELINES, make, player_at, runs, shown, walks

MIXED = ("preempt-and-resume, hash", "sglang-article, radix", "another block size")
BEHIND, REMEMBERED, NEAR = 6, 15, 8
every_run = pytest.mark.parametrize("recorded", TIMELINES.values(), ids=list(TIMELINES))


@pytest.fixture(autouse=True)
def _short_stretches(monkeypatch):
    """So that a run of a hundred events has many."""
    monkeypatch.setattr(folding, "BEHIND", BEHIND)
    monkeypatch.setattr(stretch, "REMEMBERED", REMEMBERED)
    monkeypatch.setattr(state, "NEAR", NEAR)


def with_checkpoints(recorded, every):
    """The run again, with a checkpoint after so many events."""
    timeline = Timeline(recorded.settings["num_blocks"], recorded.settings["block_size"], recorded.settings)
    timeline.kind, timeline.scenario, timeline.changes = recorded.kind, recorded.scenario, recorded.changes
    for place, event in enumerate(recorded.events):
        timeline.add(event)
        if place % every == every - 1:
            timeline.checkpoint()
    return timeline


def all_of(state):
    cells = state.cells
    holders = [cells.sharers(block) for block in range(len(cells))]
    found = bytes(cells._findable)
    assert state.lru.blocks.tolist() == [block for block in state.view.free if block in state.view.hashes]
    assert state.lru.empty_first
    return state.view.snapshot(), state.view.scheduler_snapshot(), bytes(cells.codes), holders, found, cells.counts()


def forward(timeline):
    """What each place is like, -1 first, reached event by event from the beginning."""
    walked = State(timeline)
    return [(walked.go(place), all_of(walked))[1] for place in range(-1, len(timeline))]


@every_run
@pytest.mark.parametrize("every", thinned([1, 4, 11], 4))
def test_back_from_any_place_to_the_beginning_every_state_is_as_on_the_way_there(recorded, every):
    timeline = with_checkpoints(recorded, every)
    expected = forward(timeline)
    for start in range(len(timeline) - 1, 0, -max(1, len(timeline) // 5)):
        back = State(timeline)
        back.go(start)
        for place in range(start - 1, -2, -1):
            back.go(place)
            assert all_of(back) == expected[place + 1], place


@given(run=runs, every=st.integers(1, 20), walk=st.lists(st.integers(-12, 12) | st.integers(-200, 200), max_size=30))
def test_after_any_walk_the_state_is_that_of_the_place(run, every, walk):
    timeline = with_checkpoints(TIMELINES[run], every)
    walked = State(timeline)
    for by in walk:
        place = max(-1, min(walked.place + by, len(timeline) - 1))
        before = all_of(walked)
        changed = walked.go(place)
        assert walked.place == place
        fresh = State(timeline)
        fresh.go(place)
        now = all_of(walked)
        assert now == all_of(fresh)
        if changed is not None:
            differ = {b for b in range(len(now[2])) if (now[2][b], now[3][b]) != (before[2][b], before[3][b])}
            assert changed == differ


@given(run=runs, every=st.integers(1, 20), walk=walks, reads=st.lists(st.booleans(), min_size=12, max_size=12))
def test_rows_that_were_kept_are_those_of_a_fresh_player(run, every, walk, reads):
    """Also if nobody looks at them for a while, and if the player gets ready for what comes next."""
    timeline = with_checkpoints(TIMELINES[run], every)
    player = Player(timeline)
    for move, read in zip(walk, reads, strict=False):
        make(player, move)
        player.prepare()
        if read:
            assert shown(player) == shown(player_at(timeline, player.place))


@pytest.mark.parametrize("recorded", thinned(TIMELINES.values(), *(TIMELINES[n] for n in MIXED)), ids=list(TIMELINES))
def test_every_row_that_comes_goes_or_moves_is_where_it_would_be_laid_out(recorded):
    """Event by event, there and back: the kept rows and the kept order of leaves against new ones."""
    player = Player(recorded)
    rows = player.tree if recorded.kind == "radix" else player.chain
    rows()
    for move in (player.next_event, player.previous_event):
        while move():
            kept, belt = rows(), list(player.belt())
            player._state.take_touched()
            player._state._now.touched = None  # everything anew
            assert (kept.rows.keys, kept.focus) == (list(rows().rows.keys), rows().focus)
            assert belt == list(player.belt())


@pytest.mark.parametrize("name", ["thrashing, hash", "sglang-article, radix"])
def test_a_step_back_folds_a_few_events_and_is_never_without_the_stretch_before(name, monkeypatch):
    timeline = with_checkpoints(TIMELINES[name], 7)
    applied = 0
    take = stretch.Stretch.forward

    def counted(self, place):
        nonlocal applied
        applied += place - self.place
        take(self, place)

    monkeypatch.setattr(stretch.Stretch, "forward", counted)
    monkeypatch.setattr(folding, "HEAVY", 1)
    back = State(timeline)
    back.go(len(timeline) - 1)
    most = 0
    for place in range(len(timeline) - 2, -2, -1):
        applied = 0
        back.go(place)
        most = max(most, applied)
    assert 0 < most <= 7


@given(
    run=runs,
    every=st.integers(1, 20),
    walk=st.lists(st.integers(-12, 12), min_size=1, max_size=20),
    back=st.integers(0, 9),
)
def test_who_looks_back_sees_earlier_states_and_leaves_all_as_it_was(run, every, walk, back):
    timeline = with_checkpoints(TIMELINES[run], every)
    expected = forward(timeline)
    walked = State(timeline)
    for by in walk:
        place = max(-1, min(walked.place + by, len(timeline) - 1))
        walked.go(place, place - back)
        before = all_of(walked)
        walked.take_touched()
        for earlier, view in walked.look_back(range(max(0, place - back), place + 1)):
            assert (view.snapshot(), view.scheduler_snapshot()) == expected[earlier + 1][:2]
        assert walked.place == place
        assert all_of(walked) == before
        assert walked.take_touched() == set()


@pytest.mark.parametrize("name", ["thrashing, hash", "sglang-article, radix"])
def test_going_back_one_can_look_back_as_far_as_one_said(name):
    timeline = with_checkpoints(TIMELINES[name], 7)
    walked = State(timeline)
    walked.go(len(timeline) - 1)
    for place in range(len(timeline) - 2, -1, -1):
        walked.go(place, place - 3)
        wanted = range(max(0, place - 2), place + 1)
        assert [at for at, _ in walked.look_back(wanted)] == list(wanted)
