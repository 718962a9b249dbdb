"""Why a match ended where it did, in words.

A lookup says where it ended (`Match.end`); the history says why nothing was there. That another *namespace* has the
block is told to operators only: a tenant who learns it learns that somebody else sent that very prompt.
"""

from dataclasses import dataclass
from typing import Literal

from minicache.core.errors import UnknownRequest
from minicache.core.history import Diagnosis, History, Known
from minicache.core.losses import Loss
from minicache.core.prefix_cache import MatchEnd
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
    "not_published",
    "other_namespace",
    "unknown",
]

RULES: dict[MatchEnd, str] = {
    "whole": "Every whole block of {request} was found ({found} tokens). Only full blocks are cached, so its last, "
    "partial one was not.",
    "last_token": "Every block of {request} that may be reused was found ({found} tokens). One token must be computed "
    "to have logits, so the block with its last token was not reused.",
    "too_short": "{request} has no block that could be reused: only full blocks are cached, and one token must be "
    "computed.",
    "skipped": "{request} found {found} tokens and looked no further: it asked not to read the cache, or wants the "
    "log-probabilities of prompt tokens, which exist only for tokens that are computed.",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """`num_tokens` of `request` were found; `reason` is why no more were, and `sentence` says it with its rule.

    Where they apply: `block` is the first block that was not found (counted from 0), `other` the request it is
    compared with, `token` the position of the first difference between the two, `step` the step of the eviction.
    """

    request: str
    num_tokens: int
    reason: Reason
    sentence: str
    block: int | None = None
    other: str | None = None
    token: int | None = None
    step: int | None = None


def explain(request: Request | str, history: History, *, operator: bool = False) -> Explanation:
    """Why the latest lookup of `request` found no more than it did.

    With `operator=False`, which is what anything that faces a user must pass, the answer tells nothing about requests
    of other namespaces. Raises `UnknownRequest` if the request is not, or no longer, in the history.
    """
    id = request if isinstance(request, str) else request.id
    known = history.known.get(id)
    if known is None:
        raise UnknownRequest(f"request {id!r} is not among the last {history.max_requests} that were recorded")
    if known.match is None:
        return Explanation(id, 0, "not_looked_up", f"{id} waits, and has not been looked up yet.")
    found, end = known.match
    diagnosis = known.diagnosis
    if diagnosis is None:
        assert end != "no_entry"
        return Explanation(id, found, end, RULES[end].format(request=id, found=found))
    block = found // history.block_size
    if operator and diagnosis.elsewhere is not None:
        sentence = (
            f"{diagnosis.elsewhere} has block {block} of {id}, but in another namespace (adapter, salt or extra key): "
            "namespaces never share."
        )
        return Explanation(id, found, "other_namespace", sentence, block, diagnosis.elsewhere)
    sentence = _sentence(id, known, block, diagnosis, history, operator)
    step = diagnosis.loss.step if diagnosis.loss else None
    return Explanation(id, found, diagnosis.cause, sentence, block, diagnosis.other, diagnosis.token, step)


def _sentence(id: str, known: Known, block: int, diagnosis: Diagnosis, history: History, operator: bool) -> str:
    other = diagnosis.other
    match diagnosis.cause:
        case "difference":
            assert other is not None
            assert diagnosis.token is not None
            return _difference(id, known, block, other, history.known.get(other), diagnosis.token)
        case "evicted":
            assert diagnosis.loss is not None
            why = _why(diagnosis.loss, known, history, operator)
            return f"Block {block} of {id} was in the cache until step {diagnosis.loss.step}: {why}."
        case "not_computed":
            return f"Block {block} of {id} is the same as {other}'s, which has not computed it yet."
        case "not_published":
            return (
                f"Block {block} of {id} is the same as {other}'s, which has computed it and not published it: output "
                "is published when its block is full, or when its request ends."
            )
        case "unknown":
            return f"Nothing is remembered that goes on like {id} at block {block}."


def _why(loss: Loss, known: Known, history: History, operator: bool) -> str:
    """A request of another namespace is named to operators only."""
    cause = history.known.get(loss.request) if loss.request else None
    if loss.request and (operator or (cause is not None and cause.namespace == known.namespace)):
        return f"{loss.request} needed the room"
    return loss.why


def _difference(id: str, known: Known, block: int, other: str, candidate: Known | None, at: int) -> str:
    if candidate is None:
        return f"Block {block} of {id} differs from {other}'s at token {at}."
    if at == len(candidate.tokens):
        return f"{other} is the same as {id} and ends at token {at}, in the middle of block {block}."
    return (
        f"Block {block} of {id} differs from {other}'s at token {at}: {known.tokens[at]} stands there instead of "
        f"{candidate.tokens[at]}. Nothing after a difference can be reused, whatever it holds."
    )
