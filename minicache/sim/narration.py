"""A run in sentences, at any place: what the transcript says there, without telling all that comes before.

    checkpoints  ^               ^               ^
    at(place)                    |--quiet-->|-told-|
                                            place - BACK ... place

The run is read once, quietly, when the narration is made; at each checkpoint of the timeline what a narrator knows
beside the view is packed. A place is then reached by reading on from the checkpoint before it. The lines just before it
are told as well and kept, for whoever looks at an event looks at the one before it next.
"""

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from minicache.core.history import Known
from minicache.sim.collection import no_collection
from minicache.sim.loss_log import LossesAt, LossLog
from minicache.sim.narrator import Narrator
from minicache.sim.timeline import Timeline
from minicache.sim.transcript import Line, new_narrator, tell_line

BACK = 64  # so many lines before a place are told with it
KEPT = 4096  # lines that are kept, the latest ones
DIGEST = 16  # bytes
MAX_LOSSES = 256_000  # as many as a `History` remembers


@dataclass(frozen=True, slots=True)
class _Memory:
    """What a narrator remembers at a checkpoint and the checkpoint does not. `Known` objects are shared, for their
    tokens only grow: how many there were is kept."""

    known: list[tuple[str, Known, int, int, bool, bool]]  # request, its tokens, how many, how many computed, live, …
    blocks: "array[int]"  # that can be found
    digests: bytes  # theirs, one after the other
    publishers: list[str]  # theirs
    indices: "array[int]"  # which of its publisher's blocks each is
    radix: bool

    @classmethod
    def of(cls, narrator: Narrator) -> "_Memory":
        history, published = narrator.history, narrator.published.values()
        return cls(
            [(id, k, len(k.tokens), k.num_computed, k.live, k.admitted) for id, k in history.known.items()],
            array("I", narrator.published),
            b"".join(history.digests[block] for block in narrator.published),
            [request for request, _ in published],
            array("I", [index for _, index in published]),
            narrator.radix,
        )

    def fill(self, narrator: Narrator) -> None:
        """Make a new narrator remember it."""
        for id, known, length, computed, live, admitted in self.known:
            narrator.history.known[id] = Known(known.tokens[:length], known.namespace, computed, live, admitted)
        digests = (self.digests[at : at + DIGEST] for at in range(0, len(self.digests), DIGEST))
        narrator.history.put_back(dict(zip(self.blocks, digests, strict=True)))
        places = zip(self.publishers, self.indices, strict=True)
        narrator.published = dict(zip(self.blocks, places, strict=True))
        narrator.radix = self.radix


class Narration:
    """The lines of a timeline. Making one takes as long as reading the run once; the timeline may grow afterwards.

    The memory it takes is that of the lost blocks of the run, and of one packed checkpoint for each of the timeline's.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._losses = LossLog(MAX_LOSSES)
        self._reader = new_narrator(timeline, self._losses)
        self._reader.quiet = True
        self._num_read = 0
        self._memories: list[_Memory] = []
        self._lines: OrderedDict[int, Line] = OrderedDict()
        self._cursor: Narrator | None = None  # has taken the events up to `_place`
        self._place = -1
        self._read()

    def at(self, place: int) -> Line:
        """The event at `place`, told as `narrate` tells it. Raises `UnknownThing` for a place that is not there."""
        self.timeline.require(place)
        self._read()
        if place not in self._lines:
            with no_collection():
                self._tell(max(0, place - BACK), place)
        self._lines.move_to_end(place)
        return self._lines[place]

    def lines(self, places: Iterable[int]) -> Iterator[Line]:
        """The lines of some places, and only these; quick if the places ascend. Raises as `at` does."""
        for place in places:
            self.timeline.require(place)
            self._read()
            if place not in self._lines:
                with no_collection():
                    self._tell(place, place)
            yield self._lines[place]

    def _read(self) -> None:
        """Read what is new, quietly."""
        timeline = self.timeline
        if self._num_read == len(timeline) and len(self._memories) == timeline.num_checkpoints:
            return
        with no_collection():
            while len(self._memories) < timeline.num_checkpoints:
                index = len(self._memories)
                place, _ = timeline.checkpoint_at(index)
                self._read_to(place)
                is_last = index + 1 == timeline.num_checkpoints or timeline.checkpoint_at(index + 1)[0] > place
                if is_last and place + 1 in timeline.rebases:
                    self._losses.clear()
                    self._reader = self._reader.rebase(*timeline.rebases[place + 1], self._losses)
                self._memories.append(_Memory.of(self._reader))
            self._read_to(len(timeline) - 1)

    def _read_to(self, last: int) -> None:
        for place in range(self._num_read, last + 1):
            self._losses.place = place
            self._reader.apply(self.timeline.events[place])
        self._num_read = max(self._num_read, last + 1)

    def _tell(self, first: int, last: int) -> None:
        """Go to `last`, and keep what is told from `first` on."""
        narrator = self._stand_before(last)
        for place in range(self._place + 1, last + 1):
            assert isinstance(narrator.history.losses, LossesAt)
            narrator.history.losses.place = self._place = place
            narrator.quiet = place < first
            event = self.timeline.events[place]
            if narrator.quiet:
                narrator.apply(event)
            else:
                self._lines[place] = tell_line(place, event, narrator, partial(self._narrator_at, place))
        while len(self._lines) > KEPT:
            self._lines.popitem(last=False)

    def _stand_before(self, place: int) -> Narrator:
        """The narrator, somewhere before `place`: where it stands, or at the last checkpoint if that is nearer."""
        index = self.timeline.checkpoint_before(place)
        start, checkpoint = self.timeline.checkpoint_at(index)
        goes_on = start <= self._place < place and self._place + 1 not in self.timeline.rebases
        if self._cursor is None or not goes_on:
            losses = LossesAt(self._losses, start)
            narrator = Narrator(checkpoint.num_blocks, checkpoint.block_size, self._reader.modelled, losses)
            narrator.start, narrator.token_words = self._reader.start, self._reader.token_words
            checkpoint.fill(narrator)
            checkpoint.fill_cache(narrator.history)
            self._memories[index].fill(narrator)
            self._cursor, self._place = narrator, start
        return self._cursor

    def _narrator_at(self, place: int) -> Narrator:
        """As it was when the line of `place` was told."""
        if self._cursor is None or self._place != place:
            self._tell(place, place)
        assert self._cursor is not None
        return self._cursor
