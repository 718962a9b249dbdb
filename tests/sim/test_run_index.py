"""The index of a run says what a recount says, whatever pools the run has had."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.core import events as ev
from minicache.core.hit_rate import DEFINITIONS, Lookup
from minicache.core.views import EngineView
from minicache.sim.errors import BadChange
from minicache.sim.fork import SetBlockSize, SetNumBlocks, ShrinkPool
from minicache.sim.library import find_scenario
from minicache.sim.redact import redacted
from minicache.sim.timeline import Timeline

RUNS = [("preempt-and-resume", "hash"), ("chunked-prefill", "hash"), ("multi-turn", "radix")]
TIMELINES = {run: Timeline.record(find_scenario(run[0]), run[1]) for run in RUNS}
CHANGES = st.one_of(
    st.builds(ShrinkPool, st.integers(1, 60)),
    st.builds(SetBlockSize, st.sampled_from([1, 2, 4, 16])),
    st.builds(SetNumBlocks, st.integers(20, 300)),
)


def forked(timeline, data):
    """A fork of forks, with up to three changes that can be made."""
    for change in data.draw(st.lists(CHANGES, max_size=3)):
        place = data.draw(st.integers(-1, len(timeline) - 1))
        try:
            timeline = timeline.fork(place, change)
        except BadChange:
            continue
    return timeline


def require_recount(timeline):
    index, view = timeline.index, timeline.at(-1)
    used, waiting, rates, lookups = [], [], [], []
    peak = most_waiting = evicted = 0
    for event in timeline.events:
        view.apply(event)
        held = Counter(block for table in view.tables.values() for block in table)
        assert view.num_holders == held
        if isinstance(event, ev.BlocksAdopted | ev.BlocksAllocated):
            peak = max(peak, len(held))
        if isinstance(event, ev.RequestAdmitted) and not event.resumed:
            prompt = view.requests[event.request].num_prompt_tokens
            lookups.append(Lookup(prompt, event.num_cached_tokens, view.block_size))
        if isinstance(event, ev.BlocksEvicted | ev.NodesEvicted):
            evicted += len(event.blocks)
        most_waiting = max(most_waiting, len(view.waiting))
        if isinstance(event, ev.StepFinished):
            used.append(len(held))
            waiting.append(len(view.waiting))
            rates.append(DEFINITIONS["tokens of all"](lookups))
            assert len(held) <= view.num_blocks - 1
    assert (list(index.used), list(index.waiting)) == (used, waiting)
    assert list(index.hit_rates_by_step) == pytest.approx(rates)
    totals = index.totals
    assert totals["peak_blocks"] <= index.capacity
    assert (totals["peak_blocks"], totals["max_waiting"], totals["evicted_blocks"]) == (peak, most_waiting, evicted)
    assert {name: index.hit_rates[name] for name in DEFINITIONS} == {
        name: function(lookups) for name, function in DEFINITIONS.items()
    }
    computed = [event for event in timeline.events if isinstance(event, ev.TokensComputed)]
    for id, record in index.requests.items():
        request = view.requests.get(id) or view.ended[id]
        assert (record.tokens, record.cached_tokens) == (request.num_prompt_tokens, request.num_cached_tokens)
        assert (record.preemptions, record.output) == (
            request.num_preemptions,
            request.tokens[request.num_prompt_tokens :],
        )
        assert record.computed_tokens == sum(event.num_tokens for event in computed if event.request == id)


@pytest.mark.parametrize("run", RUNS, ids=str)
@given(data=st.data())
def test_it_says_what_a_recount_says(run, data):
    require_recount(forked(TIMELINES[run], data))


def test_blocks_that_were_taken_away_are_in_use_until_the_pool_is_replaced():
    timeline = TIMELINES["chunked-prefill", "hash"]
    shrunk = timeline.fork(-1, ShrinkPool(20))
    place = shrunk.place_of_step(3)
    fork = shrunk.fork(place, SetBlockSize(4))
    require_recount(fork)
    before = fork.completed_steps(place)
    assert min(fork.index.used[:before]) >= 20
    assert fork.index.used[-1] == 0, "all requests have ended, and nothing holds a block of the new pool"
    assert {lookup.block_size for lookup in fork.index.lookups} == {timeline.settings["block_size"], 4}


def test_the_largest_pool_is_the_room_that_a_run_had():
    timeline = TIMELINES["preempt-and-resume", "hash"]
    fork = timeline.fork(timeline.place_of_step(4), SetNumBlocks(100))
    assert (timeline.index.capacity, fork.index.capacity) == (timeline.settings["num_blocks"] - 1, 100)
    assert fork.fork(fork.place_of_step(5), SetNumBlocks(9)).index.capacity == 100


@pytest.mark.parametrize("run", RUNS, ids=str)
@given(data=st.data())
def test_a_redacted_run_has_the_same_figures_whatever_became_of_its_pool(run, data):
    timeline = forked(TIMELINES[run], data)
    hidden = redacted(timeline)
    assert hidden.index.to_json() == timeline.index.to_json()
    assert hidden.at(len(hidden) - 1).snapshot().tables == timeline.at(len(timeline) - 1).snapshot().tables
    view = EngineView(timeline.settings["num_blocks"], timeline.settings["block_size"])
    for event, shown in zip(timeline.events, hidden.events, strict=True):
        view.apply(shown)
        if isinstance(event, ev.BlocksPublished):
            assert isinstance(shown, ev.BlocksPublished)
            assert len(shown.tokens) == len(event.tokens) == len(event.blocks) * view.block_size
            first = view.tables[event.request].index(event.blocks[0]) * view.block_size
            assert list(shown.tokens) == view.requests[event.request].tokens[first : first + len(shown.tokens)]
