"""Why no more matched in each lookup of a run: found while the run is recorded, and kept by place.

A finding is an `Explanation` of the core: a cause and its figures. It does not keep what two requests have in common
after their first difference: `blocks_after` compares their tokens, which every later view still has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from minicache.core.events import Event, PrefixMatched
from minicache.core.explain import Explanation, explain
from minicache.core.history import History
from minicache.core.views import EngineView, Follower


class Findings(Follower):
    """The findings of one run, an `Explanation` for each lookup; a few hundred bytes each."""

    def __init__(self) -> None:
        self._history = History()
        self._at: dict[int, Explanation] = {}

    def on(self, event: Event, view: EngineView) -> None:
        self._history.on(event, view)
        if isinstance(event, PrefixMatched):
            if event.request not in self._history.known:
                raise ValueError("its request has not arrived, or has ended")
            self._at[event.seq] = explain(event.request, self._history, operator=True)  # a run is its operator's

    def at(self, place: int) -> Explanation:
        """Why no more matched in the lookup at `place`. Raises `KeyError` for an event that is not a lookup."""
        return self._at[place]


@dataclass(frozen=True, slots=True)
class BlocksAfter:
    """The `count` whole blocks of a request after its first difference from another request. The blocks numbered in
    `differing` hold different tokens from the other request's blocks; the rest hold the same tokens."""

    count: int
    differing: Sequence[int]

    @property
    def num_same(self) -> int:
        return self.count - len(self.differing)


def blocks_after(finding: Explanation, view: EngineView) -> BlocksAfter:
    """Compare the blocks after a difference. `view` is the state at the lookup or later."""
    if finding.reason != "difference" or finding.token is None or finding.other is None:
        return BlocksAfter(0, ())
    size = view.block_size
    ours = tokens_of(view, finding.request)[: finding.length]
    theirs = tokens_of(view, finding.other)[: finding.other_length]
    blocks = range(finding.token // size + 1, finding.length // size)
    differing = [b for b in blocks if ours[b * size : (b + 1) * size] != theirs[b * size : (b + 1) * size]]
    return BlocksAfter(len(blocks), differing)


def tokens_of(view: EngineView, request: str) -> Sequence[int]:
    """The tokens of a request, live or ended; empty for an unknown request."""
    known = view.requests.get(request) or view.ended.get(request)
    return known.tokens if known is not None else ()
