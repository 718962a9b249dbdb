"""Where minicache differs from the real engine on purpose: the third table of `docs/reference/vectors.md`.

Anything else that differs is a fault. `tests/differential/` plays random histories against the real engines.
"""

from typing import NamedTuple


class Deviation(NamedTuple):
    """`engine` does `theirs`; minicache does `ours`, because of `reason`."""

    engine: str
    theirs: str
    ours: str
    reason: str


DEVIATIONS = [
    Deviation(
        "vLLM",
        "leaves blocks findable that a request published when it was scheduled and never computed, because it was "
        "preempted or aborted in the same step, or its model run failed (V23)",
        "makes them unfindable when the request gives them back",
        "a request that found them would read KV that was never written",
    ),
    Deviation(
        "SGLang",
        "fills a step with either prefill or decode, unless mixed chunks are switched on",
        "puts both into one step under either profile: requests that decode first, then prompts begun earlier, then "
        "newcomers",
        "one scheduler serves both engines, and a reader sees one kind of step",
    ),
    Deviation(
        "SGLang",
        "keeps a prompt that is being computed in chunks out of the requests that may be preempted, and cuts its next "
        "chunk to the room that the reserve leaves",
        "gives it its share of the budget, and may preempt it if the blocks of the step do not fit",
        "with both kinds of work in one step, the room is shared by all requests of the step",
    ),
    Deviation(
        "SGLang",
        "cuts `max_tokens` when a request arrives, so that the request fits into the pool with its reserve; aborts the "
        "last running request if it does not fit",
        "refuses a request that could not run alone, and admits any other when no request runs, without a reserve",
        "no request is cut short or waits for ever",
    ),
    Deviation(
        "SGLang",
        "matches the whole prompt when a queue policy looks a waiting request up (P3)",
        "leaves the last token out, as every lookup does",
        "one rule for all lookups; the order of the queue is the same, and at most one node is split elsewhere",
    ),
    Deviation(
        "SGLang",
        "publishes the prompt of a request that is aborted while its last chunk is computed, since it ends as other "
        "requests do",
        "releases it without publishing that chunk",
        "an abort publishes only what had been computed for a request that decodes",
    ),
    Deviation(
        "SGLang",
        "lowers `new_token_ratio` in steps that only decode, and resets it when its loop finds nothing to do",
        "lowers it in each step in which a request decodes, and resets it when the last request leaves",
        "follows from mixed steps, and from having no loop that runs without requests",
    ),
    Deviation(
        "SGLang",
        "hands freed slots out last, and freed pages of several tokens first; sorts both where prefill and decode run "
        "apart",
        "hands empty blocks out first if they were freed last, as vLLM does",
        "both caches share one pool; no hit, eviction or output depends on the numbers of blocks",
    ),
]
