"""A request's tokens as a ribbon cut into blocks: what was found, where it first differed, what is computed."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from minicache.core.explain import Explanation
from minicache.core.views import EngineView, RequestView
from minicache.sim.findings import BlocksAfter, blocks_after
from minicache.sim.phrases import block_ranges
from minicache.sim.run_index import RunIndex

from ..signs import Sign
from .labels import Texts
from .rows import Selection

PIECE = 16  # tokens: blocks of one or two tokens are drawn together in pieces of at most so many
SMALL = 4  # tokens: blocks that are smaller are drawn together

Find = Callable[[int], Explanation]


class RibbonBlock(NamedTuple):
    """Tokens `[start, start + num_tokens)`, the ribbon's block `number`. `sign` is hit, computed or generated, for good
    and not only in this step; None is still to come. `lost`: its text is in the other prompt too, but after the
    difference, so that it cannot be found. `block` of the pool holds the tokens, the first of several, and `held` names
    all; before they have one it is None, and `held` empty."""

    number: int
    start: int
    num_tokens: int
    text: str
    sign: Sign | None
    lost: bool
    block: int | None
    held: str
    selection: Selection


@dataclass(frozen=True, slots=True)
class RibbonModel:
    """Its KV takes `num_blocks` blocks; the token that it said last has none yet. `blocks` are these, or, if `drawn` is
    not 0, pieces of at most so many tokens in which several smaller ones are drawn together. `hit_tokens` were found by
    the last lookup; at token `difference` the request differs from `against`, the one it was compared with, and nothing
    after it can be found, though the text of `num_lost` of the `num_after` whole blocks there is the same.
    `before_answer` is what the block in which the answer begins says before it."""

    request: str
    num_tokens: int
    num_prompt_tokens: int
    num_blocks: int
    drawn: int
    blocks: list[RibbonBlock]
    hit_tokens: int
    difference: int | None
    against: str | None
    num_lost: int
    num_after: int
    before_answer: str


def ribbon_of(
    request: str, place: int, view: EngineView, index: RunIndex, texts: Texts, finding_at: Find
) -> RibbonModel | None:
    """The ribbon of a request at a place; None if it is not there. `finding_at` tells what a lookup found."""
    known = view.requests.get(request) or view.ended.get(request)
    if known is None:
        return None
    lookup = index.last_lookup(request, place)
    finding = finding_at(lookup) if lookup is not None else None
    hit = finding.num_tokens if finding else 0
    after = blocks_after(finding, view) if finding else BlocksAfter(0, ())
    computed, prompt = known.num_computed_tokens, known.num_prompt_tokens
    table, size = view.tables.get(request, []), view.block_size
    text = texts.of(request, known.tokens, prompt)
    pieces = list(_pieces(len(known.tokens), size, {hit, prompt, computed, *_node_ends(view, request)}))
    blocks = [
        RibbonBlock(
            number,
            start,
            end - start,
            text.piece(start, end),
            _sign(known, start, end, hit, computed),
            _lost(finding, after, start // size, (end - 1) // size, size),
            table[start // size] if start // size < len(table) else None,
            _held(table, start, end, size),
            _selection(request, start, table, size),
        )
        for number, (start, end) in enumerate(pieces)
    ]
    differs = finding if finding is not None and finding.reason == "difference" else None
    return RibbonModel(
        request,
        len(known.tokens),
        prompt,
        -(-max(prompt, computed) // size),
        _together(size) if size < SMALL else 0,
        blocks,
        hit,
        differs.token if differs else None,
        differs.other if differs else None,
        after.num_same,
        after.count,
        text.piece(next(start for start, _ in reversed(pieces) if start <= prompt), prompt),
    )


def _lost(finding: Explanation | None, after: BlocksAfter, first: int, last: int, size: int) -> bool:
    """Whether the blocks `first` to `last` stand after the first difference, and hold what the other's there hold."""
    if finding is None or finding.reason != "difference" or finding.token is None:
        return False
    start = finding.token // size + 1
    differing = after.differing[bisect_left(after.differing, first) :][:1]
    return start <= first and last < start + after.count and all(block > last for block in differing)


def _sign(known: RequestView, start: int, end: int, hit: int, computed: int) -> Sign | None:
    if end <= hit:
        return Sign.HIT
    if computed <= start:
        return None
    return Sign.GENERATED if start >= known.num_prompt_tokens else Sign.COMPUTED


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
