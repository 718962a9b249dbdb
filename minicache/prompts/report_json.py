"""The object that `minicache diff --json` prints."""

from typing import Any

from minicache.prompts.diff import Cause
from minicache.prompts.examine import Examined
from minicache.prompts.report import Costs, verdict
from minicache.prompts.shown import Shown


def to_json(examined: Examined, costs: Costs, shown: Shown) -> dict[str, Any]:
    """Offsets count characters of the field's text (entries, in an object or list), tokens and blocks from 0."""
    diff = examined.diff
    return {
        "a": {"tokens": diff.a_tokens},
        "b": {"tokens": diff.b_tokens},
        "generated_tokens": diff.generated_tokens,
        "cached_tokens_of_a": diff.cached_tokens_of_a,
        "diverge_token": diff.diverge_token,
        "reusable": {
            "block_size": diff.block_size,
            "blocks": diff.reuse.blocks,
            "total_blocks": diff.total_blocks,
            "vllm_tokens": diff.reuse.vllm_tokens,
            "radix_tokens": diff.reuse.radix_tokens,
        },
        "context": [shown.text(text) for text in diff.context],
        "causes": [_cause(cause, costs, shown) for cause in diff.causes],
        "verdict": " ".join([verdict(examined, shown), *diff.notes]),
    }


def _cause(cause: Cause, costs: Costs, shown: Shown) -> dict[str, Any]:
    found = {
        "layer": str(cause.layer),
        "kind": str(cause.kind),
        "path": None if cause.path is None else shown.path(cause.path),
        "offset": cause.offset,
        "a_text": shown.text(cause.a_text),
        "b_text": shown.text(cause.b_text),
        "gain_tokens": cause.gain_tokens,
        "gain_blocks": cause.gain_blocks,
        "fix": cause.fix,
    }
    seconds, money = costs.seconds(cause.gain_tokens), costs.money(cause.gain_tokens)
    return {
        **found,
        **({} if seconds is None else {"gain_seconds": seconds}),
        **({} if money is None else {"gain_money": money}),
    }
