"""Laws of the timeline: any way to a place leads to the same state, a fork without a change is the run itself."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.bench.sim import workload
from minicache.core.event_log import BadLog
from minicache.core.views import EngineView
from minicache.sim.breakpoint import Breakpoint
from minicache.sim.errors import BadBreakpoint, BadChange, UnknownThing
from minicache.sim.fork import SetBlockSize, ShrinkPool
from minicache.sim.library import find_scenario
from minicache.sim.recorded import read_recorded, write_recorded
from minicache.sim.timeline import Timeline

RUNS = [
    ("preempt-and-resume", "hash"),
    ("sglang-article", "radix"),
    ("thundering-herd", "radix"),
    ("thrashing", "hash"),
]
TIMELINES = {run: Timeline.record(find_scenario(run[0]), run[1]) for run in RUNS}


def folded(timeline, place):
    view = EngineView(timeline.settings["num_blocks"], timeline.settings["block_size"])
    view.apply_all(timeline.events[: place + 1])
    return view


def same(view, other):
    return (
        view.snapshot() == other.snapshot()
        and view.scheduler_snapshot() == other.scheduler_snapshot()
        and view.requests == other.requests
        and view.ended == other.ended
    )


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run[0])
@given(data=st.data())
def test_going_forward_and_back_at_random_leads_to_the_folded_state(run, data):
    timeline = TIMELINES[run]
    place = -1
    for step in data.draw(st.lists(st.integers(-400, 400), min_size=1, max_size=6)):
        place = max(-1, min(len(timeline) - 1, place + step))
        assert same(timeline.at(place), folded(timeline, place))


@pytest.mark.parametrize("work", [1, 7, 50])
def test_checkpoints_make_no_difference(work, monkeypatch):
    monkeypatch.setattr("minicache.sim.timeline.WORK", work)
    timeline = Timeline.record(find_scenario("radix-split-and-prune"))
    assert len(timeline._checkpoints) > len(timeline) / (work + 20)
    for place in range(-1, len(timeline)):
        assert same(timeline.at(place), folded(timeline, place))


def test_a_view_is_ones_own():
    timeline = TIMELINES[RUNS[0]]
    view = timeline.at(40)
    view.requests.clear()
    view.free.popleft()
    view.hashes.clear()
    assert same(timeline.at(40), folded(timeline, 40))


def test_places_out_of_range_are_refused():
    timeline = TIMELINES[RUNS[0]]
    with pytest.raises(UnknownThing, match="there is no event 100000: this run has events 0 to"):
        timeline.at(100_000)
    with pytest.raises(UnknownThing, match="there is no step 99"):
        timeline.place_of_step(99)


def test_next_and_previous():
    timeline = TIMELINES[RUNS[0]]
    kinds = [type(event).__name__ for event in timeline.events]
    for kind in {*kinds, "CacheReset"}:
        for place in range(-1, len(timeline)):
            after = [i for i, name in enumerate(kinds) if name == kind and i > place]
            before = [i for i, name in enumerate(kinds) if name == kind and i < place]
            assert timeline.next(place, kind) == (after[0] if after else None)
            assert timeline.previous(place, kind) == (before[-1] if before else None)
    assert timeline.next(-1) == 0
    assert timeline.next(len(timeline) - 1) is None
    assert timeline.previous(0) is None


def test_steps():
    timeline = TIMELINES[RUNS[0]]
    place = timeline.place_of_step(3)
    assert type(timeline.events[place]).__name__ == "StepStarted"
    assert timeline.step_of(place) == 3
    assert timeline.completed_steps(place) == 2
    assert timeline.step_of(-1) == 0


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("kind=RequestPreempted", "RequestPreempted"),
        ("request=second kind=RequestAdmitted", "RequestAdmitted"),
        ("block=4 kind=BlocksEvicted", "BlocksEvicted"),
    ],
)
def test_breakpoints_stop(text, kind):
    timeline = TIMELINES[RUNS[0]]
    place = timeline.run_to(-1, Breakpoint.parse(text))
    assert place is not None
    assert type(timeline.events[place]).__name__ == kind
    later = timeline.run_to(place, Breakpoint.parse(text))
    if later is not None:
        assert timeline.run_back_to(later, Breakpoint.parse(text)) == place


def test_a_breakpoint_on_a_hash_stops_where_it_is_published_and_evicted():
    timeline = TIMELINES["preempt-and-resume", "hash"]
    first = timeline.run_to(-1, Breakpoint(kind="BlocksEvicted"))
    hash = timeline.events[first].hashes[0].hex()
    published = timeline.run_to(-1, Breakpoint.parse(f"hash={hash[:8]}"))
    assert type(timeline.events[published]).__name__ == "BlocksPublished"
    assert timeline.run_to(published, Breakpoint.parse(f"hash={hash}")) is not None


def test_a_breakpoint_on_the_hit_rate_stops_at_the_admission_that_crosses_it():
    timeline = TIMELINES["sglang-article", "radix"]
    place = timeline.run_to(100, Breakpoint.parse("hit_rate<0.42"))
    event = timeline.events[place]
    assert (type(event).__name__, event.request) == ("RequestAdmitted", "few-shot1")
    assert timeline.hit_rate(place) < 0.42 <= timeline.hit_rate(place - 1)
    assert timeline.hit_rate(-1) is None


@pytest.mark.parametrize(
    "text", ["", "kind", "kind=Nothing", "block=x", "hash=xyz", "hit_rate=0.5", "request<3", "a=b"]
)
def test_bad_breakpoints_are_refused(text):
    with pytest.raises(BadBreakpoint):
        Breakpoint.parse(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("evict", "'evict' is not a condition: did you mean kind=BlocksEvicted?"),
        ("hello", "'hello' is not a condition: write kind=BlocksEvicted, request="),
        ("kind=evicted", "'evicted' is not an event type: did you mean 'BlocksEvicted'?"),
        ("kind=BlokEvicted", "'BlokEvicted' is not an event type: did you mean 'BlocksEvicted'?"),
        ("kind=zzz", "'zzz' is not an event type: the types are AdmissionFailed, BlockTableRewritten,"),
        ("blok=3", "'blok' is not a field of a condition: did you mean 'block'?"),
        ("colour=red", "'colour' is not a field of a condition: write kind="),
        ("block=seven", "'seven' is not a block's number: write block=7"),
        ("request=r1 block=seven", "'seven' is not a block's number: write block=7"),
        ("hash=xyz", "'xyz' is not the beginning of a hash in hex: write hash=9c1f"),
        ("hit_rate=0.5", "'hit_rate=0.5': write hit_rate<0.5"),
        ("hit_rate<5", "'5' is not a share above 0, up to 1: write hit_rate<0.5"),
        ("block<3", "'block<3': write block=7"),
        (
            "kind=BlocksEvicted kind=NodesEvicted",
            "kind is given twice, and one event cannot match both: set two",
        ),
        ("", "the breakpoint is empty: write kind="),
    ],
)
def test_of_a_bad_breakpoint_the_part_that_is_wrong_is_named_with_what_is_allowed(text, sentence):
    with pytest.raises(BadBreakpoint) as caught:
        Breakpoint.parse(text)
    assert str(caught.value).startswith(sentence)


def test_spaces_around_the_sign_of_a_condition_are_allowed():
    assert Breakpoint.parse(" kind = BlocksEvicted  hit_rate < 0.5 ") == Breakpoint.parse(
        "kind=BlocksEvicted hit_rate<0.5"
    )


def test_a_recorded_run_is_the_run(tmp_path):
    for run, timeline in TIMELINES.items():
        write_recorded(timeline, tmp_path / "run.jsonl")
        read = read_recorded(tmp_path / "run.jsonl")
        assert read.events == timeline.events
        assert read.kind == run[1]
        place = len(read) // 2
        assert same(read.at(place), timeline.at(place))


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_a_recorded_run_may_have_changed_its_pool(kind, tmp_path):
    timeline = Timeline.record(find_scenario("preempt-and-resume"), kind)
    fork = timeline.fork(timeline.place_of_step(4), SetBlockSize(2))
    write_recorded(fork, tmp_path / "run.jsonl")
    read = read_recorded(tmp_path / "run.jsonl")
    assert read.events == fork.events
    replaced = fork.next(-1, "PoolReplaced")
    for place in (replaced - 1, replaced, len(fork) - 1):
        assert same(read.at(place), fork.at(place))
    assert read.index.to_json() == fork.index.to_json()
    with pytest.raises(BadChange, match=rf"event {replaced} \(PoolReplaced\) was not the scheduler's decision"):
        read.fork(0)
    write_recorded(timeline.fork(-1, ShrinkPool(1)), tmp_path / "run.jsonl")
    with pytest.raises(BadChange, match=r"event 0 \(PoolShrunk\) was not the scheduler's decision"):
        read_recorded(tmp_path / "run.jsonl").fork(0)


@pytest.mark.parametrize("clock", [None, "measured", "modelled: qwen on a100"])
def test_tokens_are_simulated_where_times_are_modelled(clock):
    timeline = Timeline(9, 4, {} if clock is None else {"clock": clock})
    assert timeline.is_modelled == timeline.token_words.simulated == (clock is not None and clock != "measured")
    assert timeline.index.clock == ("modelled" if timeline.is_modelled else "measured")


def _spoil(tmp_path, change):
    path = tmp_path / "run.jsonl"
    write_recorded(TIMELINES[RUNS[0]], path)
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("\n".join(lines) + "\n")
    return path


def _other_version(lines):
    lines[0] = json.dumps(json.loads(lines[0]) | {"minicache_events": 999})


def _no_blocks(lines):
    header = json.loads(lines[0])
    del header["num_blocks"]
    lines[0] = json.dumps(header)


def _header(**changes):
    def change(lines):
        lines[0] = json.dumps(json.loads(lines[0]) | changes)

    return change


def _field(number, **changes):
    def change(lines):
        lines[number] = json.dumps(json.loads(lines[number]) | changes)

    return change


def _left_out(lines):
    """An event that publishes blocks is missing, with no gap in the numbers: later, unpublished blocks are evicted."""
    del lines[[i for i, line in enumerate(lines) if "BlocksPublished" in line][2]]
    for number, line in enumerate(lines[1:]):
        lines[number + 1] = json.dumps(json.loads(line) | {"seq": number})


def _not_json(lines):
    lines[4] = lines[4][:-3]


def _missing_key(lines):
    event = json.loads(lines[1])
    del event["request"]
    lines[1] = json.dumps(event)


def _missing_line(lines):
    del lines[5]


def _new_pool(**fields):
    def change(lines):
        event = {"type": "PoolReplaced", "seq": 0, "step": 0, "time": 0.0, "num_blocks": 9, "block_size": 4}
        lines[1:] = [json.dumps(event | fields)]

    return change


def _impossible(lines):
    event = json.loads(lines[5])
    event["blocks"] = [1000]
    lines[5] = json.dumps(event)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_other_version, r"run\.jsonl, line 1: this log has schema 999"),
        (_no_blocks, r"run\.jsonl, line 1: the header has no num_blocks"),
        (_not_json, r"run\.jsonl, line 5: not JSON"),
        (_missing_key, r"run\.jsonl, line 2: .*RequestArrived: the key 'request' is missing"),
        (_header(num_blocks=0), r"line 1: num_blocks must be an integer from 2 to 4,194,304, not 0"),
        (_header(num_blocks=10**12), r"line 1: num_blocks must be an integer from 2 to"),
        (_header(block_size=True), r"line 1: block_size must be an integer from 1 to .*, not True"),
        (_field(1, tokens=[1, "a"]), r"line 2: .*tokens must be a list of integers .*, not \[1, 'a'\]"),
        (_field(1, time="noon"), r"line 2: .*RequestArrived: time must be a number, not 'noon'"),
        (_field(1, namespace={}), r"line 2: .*namespace must be an object with adapter, salt and extra, not \{\}"),
        (_field(1, type="Nothing"), r"line 2: .*'Nothing' is not an event type"),
        (_new_pool(num_blocks=10**12), r"line 2: num_blocks must be an integer from 2 to 4,194,304, not 1000000000000"),
        (_new_pool(block_size=0), r"line 2: block_size must be an integer from 1 to 4,194,304, not 0"),
        (_left_out, r"line 65: this event does not follow from those before it"),
        (_missing_line, r"run\.jsonl, line 6: .*events are missing"),
        (_impossible, r"run\.jsonl, line \d+: "),
    ],
)
def test_bad_logs_are_refused(change, message, tmp_path):
    with pytest.raises(BadLog, match=message):
        read_recorded(_spoil(tmp_path, change))


def test_files_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(BadLog, match="there is no file"):
        read_recorded(tmp_path / "none.jsonl")
    with pytest.raises(OSError, match="there is no folder"):
        write_recorded(TIMELINES[RUNS[0]], tmp_path / "none" / "run.jsonl")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_any_place_of_a_long_run_is_reached_at_once(kind):
    """Compared with recording it all, on the same machine."""
    start = time.process_time()
    timeline = Timeline.record(workload(200), kind)
    recording = time.process_time() - start
    assert len(timeline) > 14_000
    assert len(timeline._checkpoints) > 3
    times = []
    for place in range(500, len(timeline), len(timeline) // 20):
        start = time.process_time()
        timeline.at(place)
        times.append(time.process_time() - start)
    assert sorted(times)[len(times) // 2] < recording / 20
