"""What came of a run, in a sentence: its figures are those of the summary."""

import pytest

from minicache.sim.closing import closing_words
from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.summary import Summary
from minicache.sim.timeline import Timeline


@pytest.mark.parametrize("name", scenario_names())
def test_the_last_sentence_says_what_the_summary_says(name):
    for kind in find_scenario(name).kinds:
        timeline = Timeline.record(find_scenario(name), kind)
        summary = Summary.of(timeline)
        words = closing_words(summary)
        totals = summary.totals
        assert words.startswith(f"In all: {len(summary.requests):,} request")
        assert f", and {summary.cached_tokens:,} of {summary.prompt_tokens:,} prompt tokens found" in words
        assert f"({summary.hit_rates['tokens of all']:.1%})" in words
        assert f"{totals['computed_tokens']:,} tokens computed, answers included, in {totals['steps']:,} step" in words
        assert f"; {totals['evicted_blocks']:,} block" in words


def test_of_nothing_nothing_came():
    assert closing_words(Summary.of(Timeline(9, 4))).startswith(
        "In all: 0 requests, and 0 of 0 prompt tokens found in the cache"
    )
