"""Why a match ended where it did, as values; the simulator turns these into sentences.

A lookup says how it ended (`Match.end`); the history says why the next block was not in the cache. Only operators may
learn that another *namespace* has the block: from this a tenant would learn that another tenant sent the same prompt.
"""

from dataclasses import dataclass, replace
from typing import Literal

from minicache.core.errors import UnknownRequest
from minicache.core.history import History, Known
from minicache.core.losses import Loss
from minicache.core.request import Request

Reason = Literal[
    "not_looked_up",
    "whole",
    "last_token",
    "too_short",
    "skipped",
    "difference",
    "evicted",
    "not_computed",
    "waiting",
    "not_published",
    "no_kv",
    "other_namespace",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A lookup found `num_tokens` of the `length` tokens of `request`; `reason` says why no more matched.

    - `whole`, `last_token`, `too_short`, `skipped`: as in `Match.end`; every reusable block was found.
    - `difference`: the request has the token `here` at position `token`, and `other`, which had `other_length` tokens,
      has `there` (`None`: it ends there).
    - `evicted`: the block was in the cache; `loss` says when and how it was lost.
    - `not_computed`: `other` is running and has the same block, but has not computed it yet.
    - `waiting`: `other` has the same block and waits too.
    - `not_published`: `other` has computed the same block and has not published it yet.
    - `no_kv`: the block ends with the last token that `other` generated; `other` ended before its KV was computed.
    - `other_namespace`: `other` has the same block in another namespace.
    - `unknown`: the history remembers nothing that explains it.
    - `not_looked_up`: the request waits for its first lookup.

    `block` is the first block that was not found, counted from 0 in the request; `None` if no block is missing.
    """

    request: str
    reason: Reason
    num_tokens: int = 0
    length: int = 0
    block: int | None = None
    other: str | None = None
    other_length: int = 0
    token: int | None = None
    here: int | None = None
    there: int | None = None
    loss: Loss | None = None


def explain(request: Request | str, history: History, *, operator: bool = False) -> Explanation:
    """Why no more matched in the latest lookup of `request`. Pure.

    With `operator=False` the answer says nothing about requests of other namespaces: every caller that shows it to a
    user must pass this. Raises `UnknownRequest` if the request is not, or no longer, in the history.
    """
    id = request if isinstance(request, str) else request.id
    known = history.known.get(id)
    if known is None:
        raise UnknownRequest(f"request {id!r} is not among the last {history.max_requests} that were recorded")
    if known.match is None:
        return Explanation(id, "not_looked_up", length=len(known.tokens))
    found, end = known.match
    diagnosis = known.diagnosis
    if diagnosis is None:
        assert end != "no_entry"
        return Explanation(id, end, found, known.length)
    if operator and diagnosis.elsewhere is not None:
        return Explanation(id, "other_namespace", found, known.length, diagnosis.block, diagnosis.elsewhere)
    return Explanation(
        id,
        diagnosis.cause,
        found,
        known.length,
        diagnosis.block,
        diagnosis.other,
        diagnosis.other_length,
        diagnosis.token,
        diagnosis.here,
        diagnosis.there,
        diagnosis.loss if operator else _shown(diagnosis.loss, known, history),
    )


def _shown(loss: Loss | None, known: Known, history: History) -> Loss | None:
    """The loss, without the request that needed the block unless this has the same namespace."""
    if loss is None or loss.request is None:
        return loss
    cause = history.known.get(loss.request)
    return loss if cause is not None and cause.namespace == known.namespace else replace(loss, request=None)
