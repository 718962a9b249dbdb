"""What came of a run, in a sentence: the last that is told of it."""

from minicache.sim.phrases import plural
from minicache.sim.summary import Summary


def closing_words(summary: Summary) -> str:
    """`In all: 5 requests, and 0 of 3,360 prompt tokens found in the cache (0.0%). …`"""
    totals, rate = summary.totals, summary.hit_rates["tokens of all"]
    return (
        f"In all: {plural(len(summary.requests), 'request')}, and {summary.cached_tokens:,} of "
        f"{plural(summary.prompt_tokens, 'prompt token')} found in the cache ({rate:.1%}). "
        f"{plural(totals['computed_tokens'], 'token')} computed, answers included, in "
        f"{plural(totals['steps'], 'step')}; {plural(totals['evicted_blocks'], 'block')} evicted."
    )
