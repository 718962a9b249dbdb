"""A narrator that listens to a run from its first event on: it knows the history, and who published which block."""
# ruff: noqa: N802 - a handler carries the name of its event type

from array import array

from minicache.core import events as ev
from minicache.core.history import History, Known
from minicache.core.losses import Losses
from minicache.sim.finding import Finding, find
from minicache.sim.narrator import Narrator


class Listener(Narrator):
    """A `quiet` one asks no lookup for its reason, which is what costs most: it reads what nobody will be told."""

    def __init__(self, num_blocks: int, block_size: int, modelled: bool = True, losses: Losses | None = None) -> None:
        super().__init__(num_blocks, block_size, modelled)
        self.quiet = False
        self.history = History(losses=losses)
        self.published: dict[int, tuple[str, int]] = {}  # findable block -> who published it, as which of its blocks

    def apply(self, event: ev.Event) -> None:
        if self.start is None:
            self.start = event.time
        super().apply(event)
        if not isinstance(event, ev.PrefixMatched):
            self.history.on(event, self)
            return
        self.radix = self.radix or event.tick > 0
        self.finding = None if self.quiet else self._find(event)  # a lookup changes nothing in a history but its answer

    __call__ = apply

    def _find(self, event: ev.PrefixMatched) -> Finding:
        known = self.history.known
        forgotten = event.request not in known  # it has waited so long: remembered for as long as this takes
        if forgotten:
            request = self.requests[event.request]
            known[event.request] = Known(array("Q", request.tokens), request.namespace)
        self.history.on(event, self)
        found = find(event.request, self.history, self.waiting, self.running)
        if forgotten:
            del known[event.request]
        return found

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

    def on_PoolReplaced(self, event: ev.PoolReplaced) -> None:
        super().on_PoolReplaced(event)
        self.published.clear()

    def _lose(self, blocks: tuple[int, ...]) -> None:
        for block in blocks:
            self.published.pop(block, None)
