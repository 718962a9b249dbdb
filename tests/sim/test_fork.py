"""Forks: the same up to a step boundary, then what was asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.sim.errors import BadChange, BadScenario, UnknownThing
from minicache.sim.fork import (
    EditPrompt,
    InjectRequest,
    SetBlockSize,
    SetNumBlocks,
    SetPolicy,
    ShrinkPool,
)
from minicache.sim.library import find_scenario
from minicache.sim.prompt import Segment, Text
from minicache.sim.recorded import read_recorded, write_recorded
from minicache.sim.redact import redacted
from minicache.sim.scenario import RequestSpec
from minicache.sim.timeline import Timeline
from tests.sim.test_simulator import facts
from tests.sim.test_timeline import folded, same

RUNS = [("timestamp-top", "hash"), ("timestamp-top", "radix"), ("multi-turn", "radix"), ("preempt-and-resume", "hash")]
TIMELINES = {run: Timeline.record(find_scenario(run[0]), run[1]) for run in RUNS}
NEW = RequestSpec("new", (Text("Where is my parcel, please?"),), max_tokens=3)


@given(run=st.sampled_from(RUNS), data=st.data())
def test_a_fork_without_a_change_is_the_run(run, data):
    timeline = TIMELINES[run]
    fork = timeline.fork(data.draw(st.integers(-1, len(timeline) - 1)))
    assert fork.events == timeline.events


@pytest.mark.parametrize("run", RUNS, ids=str)
@pytest.mark.parametrize(
    "change",
    [InjectRequest(NEW), SetPolicy({"max_num_batched_tokens": 8}), ShrinkPool(1), SetBlockSize(2)],
    ids=lambda change: type(change).__name__,
)
def test_a_fork_begins_at_the_last_step_boundary_and_ends(run, change):
    timeline = TIMELINES[run]
    place = len(timeline) // 3
    fork = timeline.fork(place, change)
    assert 0 < fork.forked_at <= place + 1
    assert type(timeline.events[fork.forked_at - 1]).__name__ == "StepFinished"
    assert fork.events[: fork.forked_at] == timeline.events[: fork.forked_at]
    assert fork.events != timeline.events
    summary = fork.index
    assert all(request.outcome == "length" for request in summary.requests.values())
    for place in range(-1, len(fork), 37):
        assert same(fork.at(place), folded(fork, place))


def test_the_timestamp_moved_to_the_end_is_hit():
    timeline = TIMELINES["timestamp-top", "hash"]
    assert timeline.index.requests["user2"].cached_tokens == 0
    place = timeline.next(-1, "StepFinished")
    moved = (
        Text("It is 14:03:21. You are a support bot of a parcel service."),
        Segment("rules and tools", 582),
        Text("!"),
    )
    fork = timeline.fork(place, EditPrompt("user2", moved))
    assert fork.index.requests["user2"].cached_tokens == 640


def test_what_has_arrived_cannot_be_edited():
    timeline = TIMELINES["timestamp-top", "hash"]
    with pytest.raises(BadChange, match="user2 has arrived already: fork before step 5, at event"):
        timeline.fork(len(timeline) - 1, EditPrompt("user2", (Text("late"),)))
    with pytest.raises(BadChange, match="this run has no request 'user9': did you mean"):
        timeline.fork(3, EditPrompt("user9", (Text("nobody"),)))


def test_another_policy_from_there_on():
    scenario = find_scenario("in-batch-order", ["scheduler.queue_policy=fcfs"])
    timeline = Timeline.record(scenario)
    assert timeline.index.totals["duplicates_freed"] > 0
    fork = timeline.fork(-1, SetPolicy({"queue_policy": "lpm", "strategy": "lfu"}))
    assert fork.index.totals["duplicates_freed"] == 0


def test_a_smaller_pool_evicts_and_preempts():
    timeline = TIMELINES["multi-turn", "radix"]
    capacity = timeline.settings["num_blocks"] - 1
    fork = timeline.fork(len(timeline) // 3, ShrinkPool(capacity - 300))
    assert fork.at(len(fork) - 1).capacity == 300
    running = find_scenario("chunked-prefill")
    middle = Timeline.record(running)
    tight = middle.fork(middle.place_of_step(6), ShrinkPool(44))
    assert tight.index.totals["preemptions"] > 0
    assert tight.index.totals["finished"] == 3


def test_blocks_of_another_size_start_empty():
    timeline = TIMELINES["preempt-and-resume", "hash"]
    fork = timeline.fork(timeline.place_of_step(4), SetBlockSize(2))
    place = fork.next(-1, "PoolReplaced")
    view = fork.at(place)
    assert (view.num_blocks, view.block_size) == (17, 2)
    assert not view.hashes


@given(run=st.sampled_from(RUNS), data=st.data())
def test_a_pool_of_another_number_of_blocks_starts_empty_at_the_step_boundary(run, data):
    timeline = TIMELINES[run]
    place = data.draw(st.integers(-1, len(timeline) - 1))
    num_blocks = data.draw(st.integers(timeline.settings["num_blocks"] - 1, 3 * timeline.settings["num_blocks"]))
    fork = timeline.fork(place, SetNumBlocks(num_blocks))
    block_size = timeline.settings["block_size"]
    at = fork.next(-1, "PoolReplaced")
    if not fork.forked_at:
        assert at is None, "a run that begins with a pool did not replace it"
        at = -1
    else:
        assert at >= fork.forked_at
    assert fork.events[: fork.forked_at] == timeline.events[: fork.forked_at]
    held = [type(event).__name__ for event in fork.events[fork.forked_at : max(0, at)]]
    assert set(held) <= {"RequestPreempted", "BlocksReleased", "LockMoved", "PathInserted", "DuplicatesFreed"}
    view = fork.at(at)
    assert (view.num_blocks, view.block_size, len(view.free)) == (num_blocks + 1, block_size, num_blocks)
    assert not view.hashes
    assert not view.nodes
    assert fork.index.totals["finished"] == timeline.index.totals["finished"]
    assert fork.fork(len(fork) - 1).events == fork.events, "a fork of it keeps the pool"


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_a_fork_from_the_start_keeps_what_was_changed_later(run):
    timeline = TIMELINES[run]
    once = timeline.fork(timeline.place_of_step(3), InjectRequest(NEW))
    from_start = once.fork_from_start(SetPolicy({"max_num_seqs": 1}))
    assert from_start.forked_at == 0
    assert [steps for steps, _ in from_start.changes] == [0, 2]
    assert "new" in from_start.index.requests
    only = timeline.fork(-1, SetPolicy({"max_num_seqs": 1}))
    assert only.fork(only.place_of_step(3), InjectRequest(NEW)).events == from_start.events
    assert timeline.fork_from_start(SetPolicy({})).events == timeline.events


def test_a_fork_of_a_fork_keeps_the_earlier_change():
    timeline = TIMELINES["timestamp-top", "hash"]
    once = timeline.fork(timeline.place_of_step(3), InjectRequest(NEW))
    twice = once.fork(once.place_of_step(12), ShrinkPool(100))
    assert [steps for steps, _ in twice.changes] == [2, 11]
    assert "new" in twice.index.requests
    assert twice.events[: twice.forked_at] == once.events[: twice.forked_at]
    before = once.fork(0)
    assert before.changes == ()
    assert before.events == timeline.events


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (InjectRequest(RequestSpec("user1", (Text("x"),))), BadChange, "this run has a request 'user1' already"),
        (InjectRequest(RequestSpec("big", (Segment("x", 9000),))), BadScenario, "request 'big' can never fit"),
        (InjectRequest(RequestSpec("x", (Text("x"),), after="nobody")), BadScenario, "needs a request 'nobody'"),
        (
            SetPolicy({"queue_polcy": "lpm"}),
            BadChange,
            "this cache has no setting 'queue_polcy': did you mean 'queue_policy'",
        ),
        (SetPolicy({"queue_policy": "best"}), BadChange, "queue_policy must be one of"),
        (SetPolicy({"strategy": "lfu"}), BadChange, "only the radix tree has a choice"),
        (SetPolicy({"watermark": 7}), BadChange, "watermark"),
        (ShrinkPool(0), BadChange, "count must be"),
        (ShrinkPool(480), BadChange, "needs 43 blocks of 16, and the pool would have 32"),
        (ShrinkPool(-1), BadChange, "count must be from 1 to 511, as one of the 512 blocks must stay, not -1"),
        (ShrinkPool(512), BadChange, "count must be from 1 to 511,"),
        (SetBlockSize(0), BadChange, "block_size must be at least 1"),
        (SetBlockSize(8193), BadChange, "block_size must be at most 8,192"),
        (SetBlockSize(-1), BadChange, "block_size must be at least 1, not -1"),
        (SetNumBlocks(0), BadChange, "num_blocks must be from 1 to 131,072 with blocks of this size, not 0"),
        (SetNumBlocks(-3), BadChange, "not -3"),
        (SetNumBlocks(131_073), BadChange, "not 131,073"),
        (SetNumBlocks(42), BadChange, "needs 43 blocks of 16, and the pool would have 42"),
        (SetPolicy({"num_blocks": 97}), BadChange, "num_blocks is a setting of the pool"),
        (SetPolicy({"max_num_seqs": [1]}), BadChange, "max_num_seqs must be an integer"),
    ],
)
def test_changes_that_cannot_be_made(change, error, message):
    timeline = TIMELINES["timestamp-top", "hash"]
    with pytest.raises(error, match=message):
        timeline.fork(30, change)
    assert timeline.fork(30).events == timeline.events


def _timeless(events):
    return [facts(event) for event in events]


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_a_recorded_run_can_be_forked(run, tmp_path):
    timeline = TIMELINES[run]
    write_recorded(timeline, tmp_path / "run.jsonl")
    read = read_recorded(tmp_path / "run.jsonl")
    assert _timeless(read.fork(len(read) // 2).events) == _timeless(timeline.events)
    fork = read.fork(len(read) // 2, InjectRequest(NEW))
    assert "new" in fork.index.requests
    assert _timeless(fork.fork(0).events) == _timeless(timeline.events)


def test_recorded_runs_that_cannot_be_forked():
    timeline = TIMELINES["timestamp-top", "hash"]
    with pytest.raises(BadChange, match="redacted"):
        redacted(timeline).fork(3)
    bare = Timeline(timeline.settings["num_blocks"], timeline.settings["block_size"])
    for event in timeline.events:
        bare.add(event)
    with pytest.raises(BadChange, match="does not say how the scheduler was set"):
        bare.fork(3)


def test_a_place_that_is_not_there():
    with pytest.raises(UnknownThing):
        TIMELINES["timestamp-top", "hash"].fork(10_000)
