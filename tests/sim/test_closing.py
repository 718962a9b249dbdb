"""What came of a run, in a sentence: its figures are those of the summary."""

import pytest

from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.timeline import Timeline
from minicache.sim.words import CUT, closing_words, end_of_log_words


@pytest.mark.parametrize("name", scenario_names())
def test_the_last_sentence_says_what_the_summary_says(name):
    for kind in find_scenario(name).kinds:
        timeline = Timeline.record(find_scenario(name), kind)
        summary = timeline.index
        words = closing_words(summary)
        totals = summary.totals
        assert words.startswith(f"In all: {len(summary.requests):,} request")
        assert f", and {summary.cached_tokens:,} of {summary.prompt_tokens:,} prompt tokens found" in words
        assert f"({summary.hit_rates['tokens of all']:.1%})" in words
        assert f"{totals['computed_tokens']:,} tokens computed, answers included, in {totals['steps']:,} step" in words
        assert f"; {totals['evicted_blocks']:,} block" in words


def test_of_nothing_nothing_came():
    assert closing_words(Timeline(9, 4).index).startswith(
        "In all: 0 requests, and 0 of 0 prompt tokens found in the cache"
    )


@pytest.mark.parametrize(
    ("waiting", "running", "words"),
    [
        (12, 1, "The log ends here: 12 requests wait, 1 request runs."),
        (1, 3, "The log ends here: 1 request waits, 3 requests run."),
        (0, 1, "The log ends here: 1 request runs."),
        (0, 2, "The log ends here: 2 requests run."),
        (2, 0, "The log ends here: 2 requests wait."),
        (0, 0, ""),
    ],
)
def test_a_log_that_ends_before_its_run_does(waiting, running, words):
    assert end_of_log_words(waiting, running) == words
    assert end_of_log_words(waiting, running, cut=True) == f"{words} {CUT}".strip()
