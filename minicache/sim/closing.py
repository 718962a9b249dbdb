"""What came of a run, in a sentence: the last that is told of it; or that its log ends before it does."""

from minicache.sim.phrases import plural
from minicache.sim.summary import Summary

CUT = "The last line of the log is not whole: what wrote it stopped there."


def closing_words(summary: Summary) -> str:
    """`In all: 5 requests, and 0 of 3,360 prompt tokens found in the cache (0.0%). …`"""
    totals, rate = summary.totals, summary.hit_rates["tokens of all"]
    return (
        f"In all: {plural(len(summary.requests), 'request')}, and {summary.cached_tokens:,} of "
        f"{plural(summary.prompt_tokens, 'prompt token')} found in the cache ({rate:.1%}). "
        f"{plural(totals['computed_tokens'], 'token')} computed, answers included, in "
        f"{plural(totals['steps'], 'step')}; {plural(totals['evicted_blocks'], 'block')} evicted."
    )


def end_of_log_words(waiting: int, running: int, cut: bool = False) -> str:
    """`The log ends here: 12 requests wait, 1 runs.`, and whether its last line was cut off; nothing if there is
    nothing to say, for all that arrived is over and the log is whole."""
    wait = f"{plural(waiting, 'request')} {'waits' if waiting == 1 else 'wait'}" if waiting else ""
    running_ones = f"{running:,}" if waiting else plural(running, "request")
    run = f"{running_ones} {'runs' if running == 1 else 'run'}" if running else ""
    unfinished = ", ".join(filter(None, (wait, run)))
    ending = f"The log ends here: {unfinished}." if unfinished else ""
    return " ".join(filter(None, (ending, CUT if cut else "")))
