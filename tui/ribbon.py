"""A request's tokens as a ribbon cut into blocks: what was found, where it first differed, what is computed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from minicache.core.views import EngineView, RequestView
from minicache.sim.finding import Finding
from minicache.sim.phrases import block_ranges

from .model.labels import Texts
from .model.rows import Selection
from .model.run_index import RunIndex
from .signs import Sign

PIECE = 16  # tokens: blocks of one or two tokens are drawn together in pieces of at most so many
SMALL = 4  # tokens: blocks that are smaller are drawn together

Find = Callable[[int], Finding]


@dataclass(frozen=True, slots=True)
class RibbonBlock:
    """Tokens `[start, start + num_tokens)`. `sign` is hit, computed or generated, for good and not only in this step;
    None is still to come. `block` holds them, the first of several, and `held` names all; before they have one it is
    None, and `held` empty."""

    index: int
    start: int
    num_tokens: int
    text: str
    sign: Sign | None
    block: int | None
    held: str
    selection: Selection


@dataclass(frozen=True, slots=True)
class RibbonModel:
    """It takes `num_blocks` blocks. `blocks` are these, or, if `drawn` is not 0, pieces of at most so many tokens in
    which several smaller ones are drawn together. `hit_tokens` were found by the last lookup; at token `difference` the
    request differs from `against`, the one it was compared with, and nothing behind it can be found."""

    request: str
    num_tokens: int
    num_prompt_tokens: int
    num_blocks: int
    drawn: int
    blocks: list[RibbonBlock]
    hit_tokens: int
    difference: int | None
    against: str | None


def ribbon_of(
    request: str, place: int, view: EngineView, index: RunIndex, texts: Texts, finding_at: Find
) -> RibbonModel | None:
    """The ribbon of a request at a place; None if it is not there. `finding_at` tells what a lookup found."""
    known = view.requests.get(request) or view.ended.get(request)
    if known is None:
        return None
    lookup = index.last_lookup(request, place)
    finding = finding_at(lookup) if lookup is not None else None
    hit = finding.explanation.num_tokens if finding else 0
    computed = known.num_computed_tokens
    table = view.tables.get(request, [])
    text = texts.of(request, known.tokens, known.num_prompt_tokens)
    borders = {hit, known.num_prompt_tokens, computed, *_node_ends(view, request)}
    blocks = [
        RibbonBlock(
            number,
            start,
            end - start,
            text.piece(start, end),
            _sign(known, start, end, hit, computed),
            table[start // view.block_size] if start // view.block_size < len(table) else None,
            _held(table, start, end, view.block_size),
            _selection(request, start, table, view.block_size),
        )
        for number, (start, end) in enumerate(_pieces(len(known.tokens), view.block_size, borders))
    ]
    difference = against = None
    if finding is not None and finding.explanation.reason == "difference":
        difference, against = finding.explanation.token, finding.explanation.other
    size = view.block_size
    return RibbonModel(
        request,
        len(known.tokens),
        known.num_prompt_tokens,
        -(-len(known.tokens) // size),
        _together(size) if size < SMALL else 0,
        blocks,
        hit,
        difference,
        against,
    )


def _sign(known: RequestView, start: int, end: int, hit: int, computed: int) -> Sign | None:
    if end <= hit:
        return Sign.HIT
    if start >= known.num_prompt_tokens:
        return Sign.GENERATED
    return Sign.COMPUTED if computed > start else None


def _held(table: Sequence[int], start: int, end: int, size: int) -> str:
    """The names of the blocks that hold the tokens `[start, end)`."""
    first, behind = start // size, -(-end // size)
    if first + 1 == behind:
        return f"b{table[first]}" if first < len(table) else ""
    return block_ranges(table[first:behind], 2)


def _selection(request: str, start: int, table: Sequence[int], block_size: int) -> Selection:
    if start // block_size < len(table):
        return Selection("block", table[start // block_size])
    return Selection("token", (request, start))


def _node_ends(view: EngineView, request: str) -> list[int]:
    """Where the radix nodes on the request's locked path end, in tokens."""
    lengths = []
    node = view.locks.get(request)
    while node:
        lengths.append(len(view.nodes[node].tokens))
        node = view.nodes[node].parent
    ends, end = [], 0
    for length in reversed(lengths):
        end += length
        ends.append(end)
    return ends


def _together(block_size: int) -> int:
    """How many tokens of small blocks are drawn in a piece at most."""
    return PIECE // block_size * block_size


def _pieces(count: int, block_size: int, borders: set[int]) -> Iterator[tuple[int, int]]:
    """Whole blocks; small ones together, up to the next border."""
    small = block_size < SMALL
    size = _together(block_size) if small else block_size
    walls = sorted(border for border in borders if 0 < border < count and border % block_size == 0) if small else []
    start = 0
    while start < count:
        while walls and walls[0] <= start:
            walls.pop(0)
        end = min(start + size, count, *walls[:1])
        yield start, end
        start = end
