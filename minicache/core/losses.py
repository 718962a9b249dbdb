"""What was in the cache and is not any more: how each block was lost, by a digest of what it held."""

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loss:
    """How a block became unfindable: in which step, for which request (None: for none), and why in words without it."""

    step: int
    request: str | None
    why: str


class Losses:
    """The last `limit` losses; what was lost longest ago is forgotten first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lost: OrderedDict[bytes, Loss] = OrderedDict()

    def of(self, digest: bytes) -> Loss | None:
        """How the block of that content was lost; None if it was not, or can be found again, or is forgotten."""
        return self._lost.get(digest)

    def remember(self, digest: bytes, loss: Loss) -> None:
        """The block of that content can be found no more."""
        self._lost[digest] = loss
        if len(self._lost) > self.limit:
            self.forget(next(iter(self._lost)))

    def forget(self, digest: bytes) -> None:
        """It can be found again."""
        self._lost.pop(digest, None)

    def clear(self) -> None:
        """Forget all losses."""
        self._lost.clear()
