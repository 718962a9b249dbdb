"""The index of a run says what a recount says, whatever pools the run has had."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.core import events as ev
from minicache.core.hit_rate import DEFINITIONS, Lookup
from minicache.core.views import EngineView
from minicache.sim.errors import BadChange
from minicache.sim.fork import SetBlockSize, SetNumBlocks, ShrinkPool
from minicache.sim.library import find_scenario
from minicache.sim.narrator import Narrator
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


def share(use):
    """The share of a pool that is in use: `use` is the number of blocks used, and of all."""
    return Fraction(*use)


def require_recount(timeline):
    index, view = timeline.index, timeline.at(-1)
    used, waiting, rates, lookups = [], [], [], []
    most_waiting = evicted = allocated = 0
    peak = 0, view.capacity
    for event in timeline.events:
        view.apply(event)
        held = Counter(block for table in view.tables.values() for block in table)
        assert view.num_holders == held
        assert not held.keys() & set(view.removed)
        allocated += len(event.blocks) if isinstance(event, ev.BlocksAllocated) else 0
        if isinstance(event, ev.BlocksAdopted | ev.BlocksAllocated | ev.PoolShrunk):
            peak = max(peak, (len(held), view.capacity), key=share)
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
            assert len(held) <= view.capacity
    assert (list(index.used), list(index.waiting)) == (used, waiting)
    assert list(index.hit_rates_by_step) == pytest.approx(rates)
    totals = index.totals
    assert (totals["peak_blocks"], index.capacity) == peak
    assert (totals["max_waiting"], totals["evicted_blocks"]) == (most_waiting, evicted)
    assert totals["allocated_blocks"] == allocated
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


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_blocks_that_were_taken_away_are_not_in_use(kind):
    timeline = Timeline.record(find_scenario("timestamp-top"), kind)
    shrunk = timeline.fork(-1, ShrinkPool(100))
    require_recount(shrunk)
    assert shrunk.at(len(shrunk) - 1).capacity == timeline.at(-1).capacity - 100
    assert list(shrunk.index.used) == list(timeline.index.used), "there was room enough: the run goes as before"
    for name in ("peak_blocks", "allocated_blocks", "evicted_blocks"):
        assert shrunk.index.totals[name] == timeline.index.totals[name]
    fork = shrunk.fork(shrunk.place_of_step(3), SetNumBlocks(3000))
    assert fork.at(len(fork) - 1).capacity == 3000, "no block of the new pool is missing"


def test_a_smaller_pool_says_how_many_blocks_it_has():
    timeline = Timeline.record(find_scenario("thrashing"), "hash")
    [place] = list(timeline.index.of_kind("StepFinished"))[-3:-2]
    fork = timeline.fork(place, ShrinkPool(20))
    lines = [line.words for line in Narrator(fork).lines()]
    assert not any("(taken away)" in words for words in lines)
    assert "Of 56 blocks, 0 are in use" in lines[-1]
    assert any("20 blocks are taken out of the pool" in words and "56 blocks stay." in words for words in lines)


@pytest.mark.parametrize("change", [SetBlockSize(4), SetBlockSize(64), SetNumBlocks(100), SetNumBlocks(1000)], ids=str)
def test_the_peak_is_the_largest_share_of_a_pool_that_was_in_use(change):
    timeline = Timeline.record(find_scenario("thrashing"), "hash")
    assert (timeline.index.totals["peak_blocks"], timeline.index.capacity) == (76, 76)
    fork = timeline.fork(timeline.index.of_kind("StepFinished")[-3], change)
    require_recount(fork)
    assert (fork.index.totals["peak_blocks"], fork.index.capacity) == (76, 76), "no later pool was fuller"


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
