"""What was in the cache and is not any more: how each block was lost, by a digest of what it held."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

LossCause = Literal["needed", "evict_called", "not_computed", "reset"]


@dataclass(frozen=True, slots=True)
class Loss:
    """How a block became unfindable: in which step and why.

    `needed`: `request` needed its room (None where the reader must not learn which). `evict_called`: by a caller of
    `evict()`. `not_computed`: its request gave it up before its KV was computed. `reset`: the whole cache was reset.
    """

    step: int
    cause: LossCause
    request: str | None = None


class Losses:
    """The last `limit` losses; the oldest are forgotten first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lost: OrderedDict[bytes, Loss] = OrderedDict()

    def of(self, digest: bytes) -> Loss | None:
        """How the block of that content was lost; None if it never was, can be found again, or is forgotten."""
        return self._lost.get(digest)

    def remember(self, digest: bytes, loss: Loss) -> None:
        """The block of that content was lost."""
        self._lost[digest] = loss
        if len(self._lost) > self.limit:
            self._lost.popitem(last=False)

    def forget(self, digest: bytes) -> None:
        """The block of that content can be found again."""
        self._lost.pop(digest, None)

    def clear(self) -> None:
        """Forget every loss: the pool is a new one."""
        self._lost.clear()
