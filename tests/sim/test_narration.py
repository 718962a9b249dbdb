"""Laws of the narration: at any place, however one comes there, it says what the transcript says."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.bench.sim import workload
from minicache.core.events import BlocksPublished, NodesEvicted, NodeSplit, PrefixMatched
from minicache.core.losses import Loss
from minicache.core.views import EngineView
from minicache.sim.errors import UnknownThing
from minicache.sim.fork import SetBlockSize, ShrinkPool
from minicache.sim.library import find_scenario
from minicache.sim.loss_log import LossesAt, LossLog
from minicache.sim.narration import Narration
from minicache.sim.places import Places
from minicache.sim.timeline import Timeline
from minicache.sim.transcript import narrate


def record(name, kind, *settings):
    return Timeline.record(find_scenario(name, settings), kind)


def forked():
    timeline = record("chunked-prefill", "hash")
    fork = timeline.fork(timeline.place_of_step(6), SetBlockSize(2))
    return fork.fork(fork.place_of_step(8), ShrinkPool(20))


def emptied():
    """An empty cache of the same shape: what was lost before is not what is missed now."""
    timeline = record("thrashing", "hash")
    missed = next(line for line in narrate(timeline) if "tenant" in line.words and "Its block 0 was" in line.words)
    return timeline.fork(timeline.place_of_step(missed.event.step), SetBlockSize(16))


RUNS = {
    "preempted": lambda: record("preempt-and-resume", "hash"),
    "article": lambda: record("sglang-article", "radix"),
    "herd in another order": lambda: record("thundering-herd", "radix", "queue_policy=lpm"),
    "thrashing": lambda: record("thrashing", "hash"),
    "two tenants": lambda: record("adapters-and-salts", "radix"),
    "forked twice": forked,
    "emptied": emptied,
}


@pytest.fixture(params=RUNS, scope="module")
def run(request):
    """A run with many checkpoints, a short memory for lines, and all its lines as the transcript has them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minicache.sim.timeline.WORK", 40)
        timeline = RUNS[request.param]()
    assert timeline.num_checkpoints > 2
    return timeline, [(line.words, line.rule, line.narrator.finding) for line in narrate(timeline)]


@given(jumps=st.lists(st.integers(-90, 90), min_size=1, max_size=12), kept=st.integers(1, 9), near=st.integers(0, 99))
def test_it_says_what_the_transcript_says(run, jumps, kept, near):
    timeline, lines = run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minicache.sim.narration.KEPT", kept)
        patch.setattr("minicache.sim.narration.NEAR", near)
        patch.setattr("minicache.sim.lookups.KEPT", 2)
        narration, place = Narration(timeline), len(timeline) // 2
        for jump in jumps:
            place = max(0, min(len(timeline) - 1, place + jump))
            line = narration.at(place)
            assert (line.place, line.event) == (place, timeline.events[place])
            assert (line.words, line.rule) == lines[place][:2]


def test_whoever_has_a_view_there_gets_the_line_without_another(run, monkeypatch):
    timeline, lines = run
    narration = Narration(timeline)
    monkeypatch.setattr(Timeline, "at", None)
    view = EngineView(timeline.settings["num_blocks"], timeline.settings["block_size"])
    for place, event in enumerate(timeline.events):
        view.apply(event)
        before = view.snapshot()
        assert not narration.knows(place)
        assert (narration.tell(place, view).words, narration.at(place).rule) == lines[place][:2]
        assert narration.knows(place)
        assert view.snapshot() == before


def test_every_lookup_is_known_in_any_order(run):
    timeline, lines = run
    narration = Narration(timeline)
    lookups = [place for place, event in enumerate(timeline.events) if isinstance(event, PrefixMatched)]
    assert lookups
    for place in reversed(lookups):
        assert narration.finding(place) == lines[place][2]


def test_a_request_that_has_waited_till_the_history_forgot_it_is_looked_up_like_any_other():
    """More wait than a history remembers: the first of them looks up when it is not among the latest any more."""
    scenario = find_scenario("thundering-herd")
    like = scenario.requests[0]
    crowd = tuple(replace(like, id=f"r{number}", at=0.0, step=None, after=None) for number in range(300))
    timeline = Timeline.record(replace(scenario, requests=crowd), "hash")
    narration = Narration(timeline)
    lookups = {}
    for line in narrate(timeline, 900):
        if isinstance(line.event, PrefixMatched):
            lookups[line.event.request] = line.narrator.finding
            assert narration.finding(line.place) == line.narrator.finding
    assert lookups["r0"].explanation.reason


def test_step_by_step_forward_and_back(run):
    timeline, lines = run
    narration = Narration(timeline)
    for place in (*range(len(timeline)), *reversed(range(len(timeline)))):
        assert narration.at(place).words == lines[place][0]


def test_some_lines(run):
    timeline, lines = run
    places = [2, 3, 9, 41, len(timeline) - 1, 5]
    assert [line.words for line in Narration(timeline).lines(places)] == [lines[place][0] for place in places]


def test_where_something_happens_to_a_request_a_block_or_a_node(run):
    timeline, _ = run
    places, events = Places(timeline), timeline.events
    places.update()
    last = 2 * len(events) // 3
    for request in places.requests:
        named = [at for at in range(last + 1) if getattr(events[at], "request", None) == request]
        assert list(places.of_request(request, last)) == named
    for block in range(timeline.settings["num_blocks"]):
        named = [at for at in range(5, last + 1) if block in getattr(events[at], "blocks", ())]
        assert list(places.of_block(block, 5, last)) == named
    nodes = {node for event in events if (node := getattr(event, "upper", getattr(event, "node", None)))}
    for node in nodes:
        made = [at for at, e in enumerate(events) if isinstance(e, BlocksPublished) and e.node == node]
        cut = [at for at, e in enumerate(events) if isinstance(e, NodeSplit) and node in (e.node, e.upper)]
        gone = [at for at, e in enumerate(events) if isinstance(e, NodesEvicted) and node in e.nodes]
        assert list(places.of_node(node, len(events))) == sorted(made + cut + gone)
    assert list(places.of_request("nobody", last)) == []


def test_a_growing_run_is_told_as_it_grows(monkeypatch):
    monkeypatch.setattr("minicache.sim.timeline.WORK", 40)
    whole = record("preempt-and-resume", "hash")
    lines = [line.words for line in narrate(whole)]
    growing = Timeline(whole.settings["num_blocks"], whole.settings["block_size"], whole.settings)
    narration = Narration(growing)
    for place, event in enumerate(whole.events):
        growing.add(event)
        if place % 7 == 0:
            assert narration.at(place).words == lines[place]
            assert narration.at(place // 2).words == lines[place // 2]


def test_a_place_that_is_not_there_is_refused():
    narration = Narration(record("last-token", "hash"))
    with pytest.raises(UnknownThing, match="there is no event 100000"):
        narration.at(100_000)
    with pytest.raises(UnknownThing, match="there is no event -1"):
        narration.at(-1)


def test_losses_are_known_as_of_any_place():
    log = LossLog(limit=2)
    losses = {digest: Loss(step, None, "so") for step, digest in enumerate((b"a", b"b", b"c"))}
    for place, digest in enumerate(losses, start=10):
        log.place = place
        log.remember(digest, losses[digest])
    assert (log.of(b"a"), log.of(b"c")) == (None, losses[b"c"])  # two are remembered
    assert [LossesAt(log, place).of(b"a") for place in (9, 10, 11, 12)] == [None, losses[b"a"], losses[b"a"], None]
    log.place = 20
    log.forget(b"c")
    assert [log.as_of(b"c", place) for place in (11, 12, 19, 20)] == [None, losses[b"c"], losses[b"c"], None]
    at = LossesAt(log, 12)
    at.forget(b"c")
    assert at.of(b"c") == losses[b"c"]
    log.place = 21
    log.clear()
    assert (log.of(b"b"), log.as_of(b"b", 20)) == (None, losses[b"b"])


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_any_line_of_a_long_run_is_told_at_once(kind):
    timeline = Timeline.record(workload(200), kind)
    narration = Narration(timeline)
    cold, next_to_it = [], []
    for place in range(500, len(timeline), len(timeline) // 20):
        for at, times in ((place, cold), (place - 1, next_to_it), (place + 1, next_to_it)):
            start = time.process_time()
            narration.at(at)
            times.append(time.process_time() - start)
    assert sorted(cold)[len(cold) // 2] < 0.05
    assert sorted(next_to_it)[len(next_to_it) // 2] < 0.002
