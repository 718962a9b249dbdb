"""What a sentence asks for: the state, and what is known beside it. `words.py` and `rules.py` are given a narrator.

There are two kinds. This one stands over a view that somebody else folds and is told the rest; a `Listener`, which
listens to a run from its first event on, finds out everything by itself.
"""

from collections.abc import Collection

from minicache.core.events import BlocksPublished
from minicache.core.views import EngineView
from minicache.sim.finding import Finding
from minicache.sim.tokens import SIMULATED


class Narrator(EngineView):
    """An `EngineView` that tells. `radix` says of which kind the cache is, once that can be told; `finding` is what the
    latest lookup found."""

    def __init__(self, num_blocks: int, block_size: int, modelled: bool = True) -> None:
        super().__init__(num_blocks, block_size)
        self.modelled = modelled  # whether times are a cost model's
        self.start: float | None = (
            0.0 if modelled else None
        )  # a measured clock counts from anywhere: from the first event
        self.token_words = SIMULATED
        self.finding: Finding | None = None
        self.radix = False

    @classmethod
    def over(cls, view: EngineView) -> "Narrator":
        """One that shares the state of a view: valid until the view changes, and not to be changed itself."""
        narrator = cls(1, view.block_size)
        vars(narrator).update((name, value) for name, value in vars(view).items() if name in _STATE)
        return narrator

    def clock(self, time: float) -> str:
        return f"{time - (self.start or 0.0):.3f} s{' (modelled)' if self.modelled else ''}"

    def is_ahead(self, event: BlocksPublished) -> bool:
        """Whether blocks that have just been published are not computed yet."""
        request = self.requests.get(event.request)
        if request is None or event.node is not None:
            return False
        last = self.tables[event.request].index(event.blocks[-1])
        return request.num_computed_tokens < (last + 1) * self.block_size

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
        return len(self._held())

    @property
    def num_findable_unheld(self) -> int:
        """Blocks that nobody holds and that a lookup can find: what eviction would take."""
        if self.hashes:
            return len(self.hashes) - sum(block in self.hashes for block in self._held())
        return sum(len(node.blocks) for node in self.nodes.values() if not node.locks)

    def _held(self) -> set[int]:
        return {block for table in self.tables.values() for block in table}


_STATE = frozenset(vars(EngineView(1, 1)))
