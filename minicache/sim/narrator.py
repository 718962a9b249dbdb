"""What a storyteller knows: the state, the history, and who published which block.

A narrator listens to a run from its first event on. `words.py` asks it for what a sentence needs.
"""
# ruff: noqa: N802 - a handler carries the name of its event type

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from minicache.core import events as ev
from minicache.core.explain import Explanation, explain
from minicache.core.history import History, Known
from minicache.core.losses import Losses
from minicache.core.views import EngineView
from minicache.sim.tokens import SIMULATED


@dataclass(frozen=True, slots=True)
class Finding:
    """What a lookup found, and why no more, with what words need beside `Explanation`: the two tokens that differ, and
    of the whole blocks behind the difference, those that differ too. If that is one alone, where it does: `only_at` is
    a token of the request, `only_here` and `only_there` what stands there; None if the other request has ended."""

    explanation: Explanation
    num_tokens: int  # of the request
    here: int | None = None
    there: int | None = None
    waits: bool = False  # the other request waits too, so nobody is computing these tokens
    lost: bool = False  # the block was not evicted for another's sake: the cache was reset, or it was never computed
    ended: str | None = None  # a request that said the next token last, so that nobody computed its KV
    blocks_behind: int = 0
    differ_behind: tuple[int, ...] = ()
    only_at: int | None = None
    only_here: int | None = None
    only_there: int | None = None

    @property
    def same_behind(self) -> int:
        """How many whole blocks behind the difference hold the same text in both requests."""
        return self.blocks_behind - len(self.differ_behind)


class Narrator(EngineView):
    """An `EngineView` that also remembers. `radix` says of which kind the cache is, once that can be told.

    A `quiet` one asks no lookup for its reason, which is what costs most: it reads what nobody will be told.
    """

    def __init__(self, num_blocks: int, block_size: int, modelled: bool = True, losses: Losses | None = None) -> None:
        super().__init__(num_blocks, block_size)
        self.modelled = modelled  # whether times are a cost model's
        self.start: float | None = (
            0.0 if modelled else None
        )  # a measured clock counts from anywhere: from the first event
        self.quiet = False
        self.token_words = SIMULATED
        self.history = History(num_blocks, block_size, losses=losses)
        self.published: dict[int, tuple[str, int]] = {}  # findable block -> who published it, as which of its blocks
        self.finding: Finding | None = None  # of the latest lookup
        self.radix = False

    def rebase(self, num_blocks: int, block_size: int, losses: Losses | None = None) -> "Narrator":
        """One that goes on over an empty pool of another shape, and remembers the requests."""
        other = Narrator(num_blocks, block_size, self.modelled, losses)
        for name in ("step", "requests", "waiting", "running", "ended", "radix", "quiet", "start", "token_words"):
            setattr(other, name, getattr(self, name))
        other.history.known = self.history.known
        for known in other.history.known.values():
            known.num_computed = 0
        return other

    def apply(self, event: ev.Event) -> None:
        if self.start is None:
            self.start = event.time
        super().apply(event)
        if not isinstance(event, ev.PrefixMatched):
            self.history.apply(event)
            return
        self.radix = self.radix or event.tick > 0
        if self.quiet:  # a lookup changes nothing in a history but its own answer
            self.finding = None
        else:
            self.history.apply(event)
            self.finding = self._find(event)

    __call__ = apply

    def on_BlocksPublished(self, event: ev.BlocksPublished) -> None:
        super().on_BlocksPublished(event)
        first = self.tables[event.request].index(event.blocks[0])
        self.published |= {block: (event.request, first + i) for i, block in enumerate(event.blocks)}

    def on_BlocksEvicted(self, event: ev.BlocksEvicted) -> None:
        super().on_BlocksEvicted(event)
        self._lose(event.blocks)

    def on_NodesEvicted(self, event: ev.NodesEvicted) -> None:
        super().on_NodesEvicted(event)
        self._lose(event.blocks)

    def on_BlocksUnpublished(self, event: ev.BlocksUnpublished) -> None:
        super().on_BlocksUnpublished(event)
        self._lose(event.blocks)

    def on_CacheReset(self, event: ev.CacheReset) -> None:
        super().on_CacheReset(event)
        self.published.clear()

    def _lose(self, blocks: tuple[int, ...]) -> None:
        for block in blocks:
            self.published.pop(block, None)

    def clock(self, time: float) -> str:
        return f"{time - (self.start or 0.0):.3f} s{' (modelled)' if self.modelled else ''}"

    # A lookup

    def _find(self, event: ev.PrefixMatched) -> Finding:
        found = explain(event.request, self.history, operator=True)  # a simulation has no tenants to protect
        known = self.history.known[event.request]
        if found.reason == "unknown":
            return Finding(found, len(known.tokens), ended=self._ended_there(event.request, known))
        if found.reason == "evicted":
            loss = known.diagnosis.loss if known.diagnosis else None
            return Finding(found, len(known.tokens), lost=loss is not None and loss.request is None)
        if found.reason == "not_computed" and found.other in self.waiting:
            computing = self._who_computes(event.request, known)
            if computing is None:
                return Finding(found, len(known.tokens), waits=True)
            words = found.sentence.replace(f"{found.other}'s", f"{computing}'s")
            return Finding(replace(found, other=computing, sentence=words), len(known.tokens))
        other = self.history.known.get(found.other or "")
        if found.reason != "difference" or other is None or found.token is None:
            return Finding(found, len(known.tokens))
        at = found.token
        here = known.tokens[at] if at < len(known.tokens) else None
        there = other.tokens[at] if at < len(other.tokens) else None
        first, end = at // self.block_size + 1, len(known.tokens) // self.block_size
        differ = tuple(index for index in range(first, end) if self._block(known, index) != self._block(other, index))
        finding = Finding(
            found, len(known.tokens), here, there, blocks_behind=max(0, end - first), differ_behind=differ
        )
        return self._with_only(finding, known, other) if len(differ) == 1 else finding

    def _who_computes(self, request: str, known: Known) -> str | None:
        """The first running request that sent the same block, while it is not computed."""
        assert known.match is not None
        end = known.match[0] + self.block_size
        for other in self.running:
            candidate = self.history.known.get(other)
            if other == request or candidate is None or candidate.namespace != known.namespace:
                continue
            if len(candidate.tokens) >= end and candidate.tokens[:end] == known.tokens[:end]:
                return other
        return None

    def _ended_there(self, request: str, known: Known) -> str | None:
        """Who went on alike for a block more, and ended before that was computed."""
        assert known.match is not None
        end = known.match[0] + self.block_size
        for other, candidate in reversed(self.history.known.items()):
            ended = other != request and candidate.namespace == known.namespace and not candidate.live
            if ended and len(candidate.tokens) >= end and candidate.tokens[:end] == known.tokens[:end]:
                return other
        return None

    def _block(self, known: Known, index: int) -> Sequence[int]:
        return known.tokens[index * self.block_size : (index + 1) * self.block_size]

    def _with_only(self, finding: Finding, known: Known, other: Known) -> Finding:
        """Where the only block behind the difference that differs too does so."""
        (index,) = finding.differ_behind
        ours, theirs = self._block(known, index), self._block(other, index)
        within = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), len(theirs))
        there = theirs[within] if within < len(theirs) else None
        return replace(finding, only_at=index * self.block_size + within, only_here=ours[within], only_there=there)

    # The pool

    def holders(self, blocks: Collection[int]) -> list[str]:
        """The requests whose block tables name any of `blocks`, in order of admission."""
        wanted = frozenset(blocks)
        return [request for request, table in self.tables.items() if not wanted.isdisjoint(table)]

    def owners(self, block: int) -> list[str]:
        """The requests whose block tables name `block`, in order of admission."""
        return self.holders([block])

    def node_of(self, block: int) -> int | None:
        """The radix node that has `block`."""
        return next((id for id, node in self.nodes.items() if block in node.blocks), None)

    @property
    def num_held(self) -> int:
        return len({block for table in self.tables.values() for block in table})

    @property
    def num_findable_unheld(self) -> int:
        """Blocks that nobody holds and that a lookup can find: what eviction would take."""
        if self.hashes:
            return sum(block in self.hashes for block in self.free)
        return sum(len(node.blocks) for node in self.nodes.values() if not node.locks)
