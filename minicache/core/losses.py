"""Lost blocks, which were findable and are not any more: how each was lost, by a digest of its prefix."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

LossCause = Literal["needed", "evict_called", "not_computed", "reset"]


@dataclass(frozen=True, slots=True)
class Loss:
    """In which step a block became unfindable, and why.

    `needed`: `request` needed the block (`None`: the caller may not learn which request). `evict_called`: `evict()` or
    `shrink()` was called. `not_computed`: its request gave it up before its KV was computed. `reset`: the whole cache
    was reset.
    """

    step: int
    cause: LossCause
    request: str | None = None


class Losses:
    """The latest `limit` losses."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lost: OrderedDict[bytes, Loss] = OrderedDict()

    def of(self, digest: bytes) -> Loss | None:
        """How the block with this digest was lost. `None` if it was never lost, is findable again, or is forgotten."""
        return self._lost.get(digest)

    def remember(self, digest: bytes, loss: Loss) -> None:
        """Record that the block with this digest was lost."""
        self._lost[digest] = loss
        if len(self._lost) > self.limit:
            self._lost.popitem(last=False)

    def forget(self, digest: bytes) -> None:
        """Record that the block with this digest is findable again."""
        self._lost.pop(digest, None)

    def clear(self) -> None:
        """Forget every loss, because the pool was replaced."""
        self._lost.clear()
