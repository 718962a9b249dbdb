"""Losses with their times: what was lost as of any place of a timeline that was read once."""

from dataclasses import dataclass

from minicache.core.losses import Loss, Losses


@dataclass(frozen=True, slots=True)
class _Change:
    """What became of a digest at `place`, and what had become of it before."""

    place: int
    loss: Loss | None
    before: "_Change | None"


class LossLog(Losses):
    """Remembers as `Losses` does, and also when: set `place` to that of the event that is being applied."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.place = -1
        self._changes: dict[bytes, _Change] = {}

    def remember(self, digest: bytes, loss: Loss) -> None:
        self._note(digest, loss)
        super().remember(digest, loss)

    def forget(self, digest: bytes) -> None:
        if self.of(digest) is not None:
            self._note(digest, None)
            super().forget(digest)

    def clear(self) -> None:
        """Forget everything, from here on."""
        for digest in tuple(self._lost):
            self.forget(digest)

    def _note(self, digest: bytes, loss: Loss | None) -> None:
        self._changes[digest] = _Change(self.place, loss, self._changes.get(digest))

    def as_of(self, digest: bytes, place: int) -> Loss | None:
        """What `of` answered after the event at `place`."""
        change = self._changes.get(digest)
        while change is not None and change.place > place:
            change = change.before
        return change.loss if change is not None else None


class LossesAt(Losses):
    """A log as of `place`, which may be moved. It is told nothing: the log knows already."""

    def __init__(self, log: LossLog, place: int) -> None:
        super().__init__(log.limit)
        self.log, self.place = log, place

    def of(self, digest: bytes) -> Loss | None:
        return self.log.as_of(digest, self.place)

    def remember(self, digest: bytes, loss: Loss) -> None:
        """In the log already."""

    def forget(self, digest: bytes) -> None:
        """In the log already."""
