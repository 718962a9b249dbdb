"""What panels draw, as data. Every text in here may come from a prompt: draw it as text, never as markup."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, overload

from ..signs import Sign

Kind = Literal["nothing", "event", "request", "block", "node", "token"]
State = Literal["waiting", "prefill", "decode", "preempted", "done", "aborted", "refused"]


class Selection(NamedTuple):
    """What is explained: an event (its place), a request (its id), a block, a node, a token as (request, position)."""

    kind: Kind = "nothing"
    id: int | str | tuple[str, int] | None = None


NOTHING = Selection()


class RequestRow(NamedTuple):
    """A request at this place. All counts are in tokens: of its prompt `hit` were found in the cache when it was
    admitted first (None before that), and `computed` were computed for it in all, also those that it lost when it was
    preempted. `total` are known now; `has_kv` of them have their KV, of which `found` were found when it was admitted
    last."""

    id: str
    state: State
    prompt: int
    hit: int | None
    computed: int
    total: int
    generated: int
    max_tokens: int
    preemptions: int = 0
    has_kv: int = 0
    found: int = 0


class BeltItem(NamedTuple):
    """One thing that will be handed out: a block, `num_blocks` empty ones in a row, or a leaf of the radix tree.

    `text` says what it holds, `selection` is the block, the first of several, or the leaf. `later`: a node that is no
    leaf yet, but becomes one when those before it have gone.
    """

    label: str
    sign: Sign
    text: str
    selection: Selection
    num_blocks: int = 1
    later: bool = False


class TreeRow(NamedTuple):
    """A row of the hash chain or of the radix tree.

    `key` stays the same while the thing is there. `branches` says for each level down to this row whether more siblings
    follow on it; the last is the row's own. `folded` blocks of a run without a branch stand behind a row that says
    only this. `orphan`: what it hangs on is gone, so no lookup gets here. `sharers` hold it; `locked`: it cannot be
    evicted.
    """

    key: object
    depth: int
    branches: tuple[bool, ...]
    label: str
    blocks: tuple[int, ...]
    sharers: int
    text: str
    sign: Sign
    selection: Selection
    locked: bool = False
    folded: int = 0
    orphan: bool = False


NO_ROW: Callable[[Any], TreeRow] = {}.__getitem__


class LazyRows(Sequence[TreeRow]):
    """The rows with these keys, each made when it is asked for. Valid until the player moves."""

    def __init__(self, keys: Sequence[Hashable] = (), make: Callable[[Any], TreeRow] = NO_ROW) -> None:
        self.keys = keys
        self.make = make

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> TreeRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[TreeRow]: ...
    def __getitem__(self, index: int | slice) -> TreeRow | list[TreeRow]:
        if isinstance(index, slice):
            return [self.make(key) for key in self.keys[index]]
        return self.make(self.keys[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazyRows) and list(self) == list(other)


@dataclass(frozen=True, slots=True)
class TreeModel:
    """The rows, which of them the current event is about, and the keys of those that came since the stop before."""

    rows: LazyRows = field(default_factory=LazyRows)
    focus: int | None = None
    came: frozenset[Hashable] = frozenset()


ChainModel = TreeModel


@dataclass(frozen=True, slots=True)
class Meter:
    """A figure, its text, its latest values (each between 0 and 1, oldest first), and what it means."""

    name: str
    value: str
    history: list[float]
    definition: str


class StripCell(NamedTuple):
    """The events `first` to `last` in one cell: the rarest kind among them, as a style name and a glyph."""

    glyph: str
    kind: str
    contains_place: bool
    first: int
    last: int
    what: str


@dataclass(frozen=True, slots=True)
class Found:
    """Something that was looked for: what it is, in words, what to select, and the place to go to, if any."""

    label: str
    selection: Selection
    place: int | None = None
