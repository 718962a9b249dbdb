"""What a sentence needs: the state right after its event, and how this run names tokens and times."""

from collections.abc import Collection
from dataclasses import dataclass

from minicache.core.events import BlocksPublished
from minicache.core.explain import Explanation
from minicache.core.views import EngineView
from minicache.sim.tokens import TokenWords


@dataclass(frozen=True, slots=True)
class Scene:
    """A view that has just taken an event: valid until the view moves on, and never changed through the scene.

    `start` is the time of the run's first event where times were measured (such a clock counts from anywhere), and None
    where they are modelled. `finding` is that of the lookup, if the event is one.
    """

    view: EngineView
    tokens: TokenWords
    radix: bool
    start: float | None
    finding: Explanation | None = None

    @property
    def modelled(self) -> bool:
        return self.start is None

    def clock(self, time: float) -> str:
        """`0.012 s (modelled)`"""
        return f"{time:.3f} s (modelled)" if self.start is None else f"{time - self.start:.3f} s"

    def is_ahead(self, event: BlocksPublished) -> bool:
        """Whether blocks that were just published are not computed yet."""
        request = self.view.requests.get(event.request)
        return request is not None and request.num_computed_tokens < event.start + len(event.tokens)

    # The pool

    def holders(self, blocks: Collection[int]) -> list[str]:
        """The requests whose block tables name any of `blocks`, in order of admission."""
        wanted = frozenset(blocks)
        return [request for request, table in self.view.tables.items() if not wanted.isdisjoint(table)]

    def node_of(self, block: int) -> int | None:
        """The radix node that has `block`."""
        return next((id for id, node in self.view.nodes.items() if block in node.blocks), None)

    def is_findable(self, block: int) -> bool:
        """Whether a lookup can find `block`."""
        return block in self.view.hashes or self.node_of(block) is not None

    def num_cached(self) -> int:
        """How many blocks a lookup can find that are not in use: those that can be evicted."""
        if self.view.hashes:
            return len(self.view.hashes) - sum(block in self.view.hashes for block in self.view.num_holders)
        return sum(len(node.blocks) for node in self.view.nodes.values() if not node.locks)
