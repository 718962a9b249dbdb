"""What a lookup found, and why no more: the reason that the history knows, with what words need beside it."""

from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from minicache.core.explain import Explanation, explain
from minicache.core.history import History, Known

AROUND = 16  # tokens of a piece that is shown of a prompt without blocks of many tokens


@dataclass(frozen=True, slots=True)
class Finding:
    """What a lookup found, and why no more, with what words need beside `Explanation`: the two tokens that differ, and
    of the whole blocks behind the difference, those that differ too. If that is one alone, where it does: `only_at` is
    a token of the request, `only_here` and `only_there` what stands there; None if the other request has ended."""

    explanation: Explanation
    num_tokens: int  # of the request
    here: int | None = None
    there: int | None = None
    here_behind: Sequence[int] = ()  # a few tokens behind each, for segments to be recognized by
    there_behind: Sequence[int] = ()
    waits: bool = False  # the other request waits too, so nobody is computing these tokens
    lost: bool = False  # the block was not evicted for another's sake: the cache was reset, or it was never computed
    ended: str | None = None  # a request that said the next token last, so that nobody computed its KV
    blocks_behind: int = 0
    differ_behind: tuple[int, ...] = ()
    only_at: int | None = None
    only_here: int | None = None
    only_there: int | None = None
    only_near: Sequence[int] = ()  # the block in which that is, or some tokens around it if a block is one token

    @property
    def same_behind(self) -> int:
        """How many whole blocks behind the difference hold the same text in both requests."""
        return self.blocks_behind - len(self.differ_behind)


def find(request: str, history: History, waiting: Collection[str], running: Iterable[str]) -> Finding:
    """What the latest lookup of a request found, which the history has just taken. `running` in order of admission."""
    found = explain(request, history, operator=True)  # a simulation has no tenants to protect
    known, size = history.known[request], history.block_size
    if found.reason == "unknown":
        return Finding(found, len(known.tokens), ended=_ended_there(request, known, history))
    if found.reason == "evicted":
        loss = known.diagnosis.loss if known.diagnosis else None
        return Finding(found, len(known.tokens), lost=loss is not None and loss.request is None)
    if found.reason == "not_computed" and found.other in waiting:
        computing = _who_computes(request, known, history, running)
        if computing is None:
            return Finding(found, len(known.tokens), waits=True)
        words = found.sentence.replace(f"{found.other}'s", f"{computing}'s")
        return Finding(replace(found, other=computing, sentence=words), len(known.tokens))
    other = history.known.get(found.other or "")
    if found.reason != "difference" or other is None or found.token is None:
        return Finding(found, len(known.tokens))
    at = found.token
    here = known.tokens[at] if at < len(known.tokens) else None
    there = other.tokens[at] if at < len(other.tokens) else None
    behind = range(at // size + 1, len(known.tokens) // size)
    differ = tuple(index for index in behind if _block(known, index, size) != _block(other, index, size))
    next_ones = slice(at + 1, at + AROUND)
    finding = Finding(
        found,
        len(known.tokens),
        here,
        there,
        known.tokens[next_ones],
        other.tokens[next_ones],
        blocks_behind=len(behind),
        differ_behind=differ,
    )
    return _with_only(finding, known, other, size) if len(differ) == 1 else finding


def _who_computes(request: str, known: Known, history: History, running: Iterable[str]) -> str | None:
    """The first running request that sent the same block, while it is not computed."""
    for other in running:
        candidate = history.known.get(other)
        if other != request and candidate is not None and _goes_on_alike(known, candidate, history):
            return other
    return None


def _ended_there(request: str, known: Known, history: History) -> str | None:
    """Who went on alike for a block more, and ended before that was computed."""
    for other, candidate in reversed(history.known.items()):
        if other != request and not candidate.live and _goes_on_alike(known, candidate, history):
            return other
    return None


def _goes_on_alike(known: Known, candidate: Known, history: History) -> bool:
    """Whether the candidate has the block that was not found, with all before it."""
    assert known.match is not None
    end = known.match[0] + history.block_size
    return (
        candidate.namespace == known.namespace
        and len(candidate.tokens) >= end
        and candidate.tokens[:end] == known.tokens[:end]
    )


def _block(known: Known, index: int, size: int) -> "array[int]":
    return known.tokens[index * size : (index + 1) * size]


def _with_only(finding: Finding, known: Known, other: Known, size: int) -> Finding:
    """Where the only block behind the difference that differs too does so."""
    (index,) = finding.differ_behind
    ours, theirs = _block(known, index, size), _block(other, index, size)
    within = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), len(theirs))
    there = theirs[within] if within < len(theirs) else None
    at = index * size + within
    near = ours if size > 1 else known.tokens[at // AROUND * AROUND :][:AROUND]
    return replace(finding, only_at=at, only_here=ours[within], only_there=there, only_near=near)
