"""Laws of the narrator and of the findings: at any place, in any order, they say what they say in order."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.bench.sim import workload
from minicache.core.events import BlocksPublished, NodesEvicted, NodeSplit, PrefixMatched
from minicache.core.views import EngineView
from minicache.sim.errors import UnknownThing
from minicache.sim.fork import SetBlockSize, ShrinkPool
from minicache.sim.library import find_scenario
from minicache.sim.narrator import Narrator
from minicache.sim.timeline import Timeline


def record(name, kind, *settings):
    return Timeline.record(find_scenario(name, settings), kind)


def forked():
    timeline = record("chunked-prefill", "hash")
    fork = timeline.fork(timeline.place_of_step(6), SetBlockSize(2))
    return fork.fork(fork.place_of_step(8), ShrinkPool(20))


def emptied():
    """An empty cache of the same shape: what was lost before is not what is missed now."""
    timeline = record("thrashing", "hash")
    missed = next(line for line in Narrator(timeline).lines() if "Its block 0 was in the cache" in line.words)
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
    """A run with many checkpoints, and all its lines in order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minicache.sim.timeline.WORK", 40)
        timeline = RUNS[request.param]()
    assert timeline.checkpoint_before(len(timeline)) > 1
    return timeline, list(Narrator(timeline).lines())


@given(jumps=st.lists(st.integers(-90, 90), min_size=1, max_size=12), kept=st.integers(1, 9), near=st.integers(0, 99))
def test_at_any_place_it_says_what_it_says_in_order(run, jumps, kept, near):
    timeline, lines = run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minicache.sim.narrator.KEPT", kept)
        patch.setattr("minicache.sim.narrator.NEAR", near)
        narrator, place = Narrator(timeline), len(timeline) // 2
        for jump in jumps:
            place = max(0, min(len(timeline) - 1, place + jump))
            assert narrator.line(place) == lines[place]


def test_a_caller_with_a_view_gets_the_line_without_another(run, monkeypatch):
    timeline, lines = run
    narrator = Narrator(timeline)
    monkeypatch.setattr(Narrator, "view", None)
    view = EngineView(timeline.settings["num_blocks"], timeline.settings["block_size"])
    for place, event in enumerate(timeline.events):
        view.apply(event)
        before = view.snapshot()
        assert not narrator.is_kept(place)
        assert narrator.line(place, view) == lines[place]
        assert narrator.is_kept(place)
        assert view.snapshot() == before


def test_every_lookup_has_a_finding_about_itself(run):
    timeline, _ = run
    lookups = [place for place, event in enumerate(timeline.events) if isinstance(event, PrefixMatched)]
    assert lookups
    for place in lookups:
        event, finding, view = timeline.events[place], timeline.findings.at(place), timeline.at(place)
        assert (finding.request, finding.num_tokens) == (event.request, event.num_tokens)
        assert finding.length == len(view.requests[event.request].tokens)
        if finding.reason == "difference":
            other = (view.requests.get(finding.other) or view.ended[finding.other]).tokens
            assert other[: finding.token] == view.requests[event.request].tokens[: finding.token]
            assert finding.there == (other[finding.token] if finding.token < len(other) else None)
            assert finding.other_length == len(other)
    with pytest.raises(KeyError):
        timeline.findings.at(next(place for place in range(len(timeline)) if place not in lookups))


def test_a_request_that_waits_longer_than_the_history_reaches_is_looked_up_like_any_other():
    """More requests wait than a history remembers: the first of them looks up when it is not among the latest."""
    scenario = find_scenario("thundering-herd")
    like = scenario.requests[0]
    crowd = tuple(replace(like, id=f"r{number}", at=0.0, step=None, after=None) for number in range(300))
    timeline = Timeline.record(replace(scenario, requests=crowd), "hash")
    first = timeline.next(-1, "PrefixMatched")
    assert timeline.findings.at(first).request == "r0"
    assert timeline.findings.at(first).reason == "waiting"
    assert "r299, which begins in the same way, waits too" in Narrator(timeline).line(first).words


def test_step_by_step_forward_and_back(run):
    timeline, lines = run
    narrator = Narrator(timeline)
    for place in (*range(len(timeline)), *reversed(range(len(timeline)))):
        assert narrator.line(place) == lines[place]


def test_some_lines(run):
    timeline, lines = run
    places = [2, 3, 9, 41, len(timeline) - 1, 5]
    assert list(Narrator(timeline).lines(places)) == [lines[place] for place in places]


def test_where_something_happens_to_a_request_a_block_or_a_node(run):
    timeline, _ = run
    places, events = timeline.index, timeline.events
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


def test_a_growing_run_is_described_as_it_grows(monkeypatch):
    monkeypatch.setattr("minicache.sim.timeline.WORK", 40)
    whole = record("preempt-and-resume", "hash")
    lines = list(Narrator(whole).lines())
    growing = Timeline(whole.settings["num_blocks"], whole.settings["block_size"], whole.settings)
    narrator = Narrator(growing)
    for place, event in enumerate(whole.events):
        growing.add(event)
        if place % 7 == 0:
            assert narrator.line(place) == lines[place]
            assert narrator.line(place // 2) == lines[place // 2]


def test_a_place_that_is_not_there_is_refused():
    narrator = Narrator(record("last-token", "hash"))
    with pytest.raises(UnknownThing, match="there is no event 100000"):
        narrator.line(100_000)
    with pytest.raises(UnknownThing, match="there is no event -1"):
        narrator.line(-1)


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_any_line_of_a_long_run_is_described_at_once(kind):
    """Compared with describing all lines, one after the other, on the same machine."""
    timeline = Timeline.record(workload(200), kind)
    start = time.process_time()
    for _ in Narrator(timeline).lines():
        pass
    all_lines = time.process_time() - start
    narrator = Narrator(timeline)
    cold, next_to_it = [], []
    for place in range(500, len(timeline), len(timeline) // 20):
        for at, times in ((place, cold), (place - 1, next_to_it), (place + 1, next_to_it)):
            start = time.process_time()
            narrator.line(at)
            times.append(time.process_time() - start)
    assert sorted(cold)[len(cold) // 2] < all_lines / 10
    assert sorted(next_to_it)[len(next_to_it) // 2] < all_lines / 50
