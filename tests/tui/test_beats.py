"""Where the → key stops."""

import pytest

from minicache.bench.sim import workload
from minicache.core import events as ev
from minicache.sim.library import find_scenario
from minicache.sim.timeline import Timeline
from minicache_tui.beats import TOLD, Beats
from minicache_tui.player import Player

from .player_runs import TIMELINES

BUSY = Timeline.record(workload(12), "radix")


def told(name, kind):
    """The last sentence at each stop, up to the first full stop, without what is behind a colon or a comma."""
    player = Player(Timeline.record(find_scenario(name), kind))
    sentences = []
    while player.step():
        sentences.append(player.sentences()[-1].sentence)
    return sentences


def begins(sentences, beginnings):
    assert len(sentences) >= len(beginnings)
    for sentence, beginning in zip(sentences, beginnings, strict=False):
        assert sentence.startswith(beginning), sentence


def test_two_equal_prompts_read_as_a_story():
    begins(
        told("two-equal-prompts", "hash"),
        [
            "user1 arrives with 40 tokens",
            "user2 arrives with 40 tokens",
            "user1 looks up its prefix and finds 0 of 40",
            "user1 is admitted: 0 of its 40 tokens come from the cache",
            "user2 looks up its prefix and finds 32 of 40",
            "user2 adopts 2 cached blocks",
            "user2 is admitted: 32 of its 40 tokens",
            "The KV of user1's tokens 0 to 39 is computed",
            "The KV of user2's tokens 32 to 39 is computed",
            "user1 gives back its 3 blocks",
            "user2 gives back its 3 blocks",
            "Step 2 ends",
        ],
    )


def test_the_tree_is_split_and_pruned_in_stops_of_their_own():
    sentences = told("radix-split-and-prune", "radix")
    for beginning in ("Node 1 is split", "Nodes 1, 3 with 21 blocks leave the tree", "first unlocks its path"):
        assert sum(sentence.startswith(beginning) for sentence in sentences) == 1


def test_lookups_of_requests_that_wait_are_no_stops():
    timeline = TIMELINES["in-batch-order, radix"]
    beats = Beats(timeline)
    stops = set(beats.stops)
    lookups = [place for place, event in enumerate(timeline.events) if isinstance(event, ev.PrefixMatched)]
    admissions = sum(isinstance(event, ev.RequestAdmitted) for event in timeline.events)
    assert len(lookups) > 2 * admissions
    assert sum(place in stops for place in lookups) == admissions


@pytest.mark.parametrize("timeline", [*TIMELINES.values(), BUSY], ids=[*TIMELINES, "busy"])
def test_every_admission_eviction_and_preemption_is_a_stop_and_the_stops_ascend(timeline):
    stops = list(Beats(timeline).stops)
    assert stops == sorted(set(stops))
    kinds = ev.RequestAdmitted, ev.BlocksEvicted, ev.NodesEvicted, ev.RequestPreempted, ev.NodeSplit, ev.BlocksAdopted
    for place, event in enumerate(timeline.events):
        if isinstance(event, kinds):
            assert place in stops


@pytest.mark.parametrize("timeline", [*TIMELINES.values(), BUSY], ids=[*TIMELINES, "busy"])
def test_beats_that_read_a_growing_run_find_the_same_stops(timeline):
    events, timeline.events = timeline.events, []
    try:
        beats = Beats(timeline)
        for event in events:
            timeline.events.append(event)
            beats.update()
    finally:
        timeline.events = events
    assert beats.stops == Beats(timeline).stops
    assert beats.targets == Beats(timeline).targets


def test_generating_is_told_once_in_a_row():
    timeline = Timeline.record(find_scenario("timestamp-top"), "hash")
    stops = [timeline.events[place] for place in Beats(timeline).stops]
    sampled = [event.request for event in stops if isinstance(event, ev.TokensSampled)]
    assert sampled == [f"user{number}" for number in range(1, 6)]


def test_a_herd_arrives_in_one_stop():
    timeline = Timeline.record(find_scenario("thundering-herd"), "hash")
    arrivals = [place for place, event in enumerate(timeline.events) if isinstance(event, ev.RequestArrived)]
    assert len(arrivals) > 2
    assert Beats(timeline).stops[0] == arrivals[-1]


def test_an_admission_that_fails_again_by_the_same_figures_is_no_stop():
    timeline = TIMELINES["preempt-and-resume, hash"]
    stops = set(Beats(timeline).stops)
    last = {}
    for place, event in enumerate(timeline.events):
        if isinstance(event, ev.AdmissionFailed):
            assert (place in stops) == (last.get(event.request) != (event.needed, event.free))
            last[event.request] = event.needed, event.free
    assert last


@pytest.mark.parametrize("timeline", [*TIMELINES.values(), BUSY], ids=[*TIMELINES, "busy"])
def test_a_beat_is_told_in_order_in_few_sentences_the_event_itself_last(timeline):
    beats = Beats(timeline)
    for place in range(len(timeline)):
        told = beats.told(place)
        assert told == sorted(told)
        assert told[-1] == place
        assert set(told) <= set(beats.beat(place))
        assert len(told) <= TOLD
