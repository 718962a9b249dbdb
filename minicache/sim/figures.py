"""The figures of a run by name, with their definitions."""

from minicache.core.hit_rate import DEFINITIONS

TOKENS_OF_ALL, RECENT, LAST_PREFILL = "tokens of all", "recent (vLLM)", "last prefill (SGLang)"
RATES: dict[str, str] = {
    **{name: (function.__doc__ or "").strip() for name, function in DEFINITIONS.items()},
    RECENT: "Hit tokens divided by looked-up tokens over the last 1,000 requests in whole steps, without resumed ones.",
    LAST_PREFILL: "Hit tokens divided by hit plus computed prompt tokens, in the last step with a prefill.",
}

PER_REQUEST = {  # name in a scenario's [expect] -> attribute of `RequestRecord`
    "hit_tokens": "cached_tokens",
    "end": "end",
    "computed_tokens": "computed_tokens",
    "preemptions": "preemptions",
}

TOTALS = (
    "events",
    "steps",
    "finished",
    "rejected",
    "computed_tokens",
    "output_tokens",
    "allocated_blocks",
    "evicted_blocks",
    "evicted_nodes",
    "duplicates_freed",
    "splits",
    "preemptions",
    "admission_failures",
    "max_waiting",
    "peak_blocks",
)
