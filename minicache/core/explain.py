"""Why a match ended where it did, as values: the simulator (`minicache.sim.words`) makes the sentences.

A lookup says where it ended (`Match.end`); the history says why nothing was there. Only operators learn that another
*namespace* has the block: a tenant who learns it learns that another tenant sent that very prompt.
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
    """`num_tokens` of the `length` tokens that `request` had were found; `reason` is why no more were.

    - `whole`, `last_token`, `too_short`, `skipped`: the rules of `Match.end`; all that could be reused was found.
    - `difference`: `other` differs at `token`: `here` stands there in the request and `there` in `other`, None if
      `other` ends there. `other` had `other_length` tokens.
    - `evicted`: the block was in the cache; `loss` says when and how it was lost.
    - `not_computed`: `other` runs and has the same block, but has not computed it yet; `waiting`: `other` waits too.
    - `not_published`: `other` has computed the same block and not published it yet.
    - `no_kv`: the last token of the block is the last that `other` generated before it ended: nothing needed its KV.
    - `other_namespace`: `other` has the same block in another namespace; `unknown`: nothing of this is remembered.
    - `not_looked_up`: the request waits for its first lookup.

    `block` is the first block that was not found, counted from 0 in the request; None where no block was missing.
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
    """Why the latest lookup of `request` found no more than it did.

    With `operator=False`, which is what anything that faces a user must pass, the answer says nothing about requests
    of other namespaces. Raises `UnknownRequest` if the request is not, or no longer, in the history.
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
    """The loss without the request that needed the room, unless that is of the same namespace."""
    if loss is None or loss.request is None:
        return loss
    cause = history.known.get(loss.request)
    return loss if cause is not None and cause.namespace == known.namespace else replace(loss, request=None)
