"""How things stand after a step, in sentences: what a screen shows beside the events, for those who read.

The requests and their blocks, the queue, what eviction would take first, what can be found, the hit rate so far.
"""

from collections.abc import Iterator
from itertools import groupby

from minicache.core import events as ev
from minicache.sim.listener import Listener
from minicache.sim.phrases import block_ranges, listed, named_blocks, plural, ranges

MANY = 12  # so many runs of blocks are named

CHANGES_FINDABLE = (
    ev.BlocksPublished,
    ev.BlocksUnpublished,
    ev.BlocksEvicted,
    ev.NodesEvicted,
    ev.NodeSplit,
    ev.PathInserted,
    ev.LockMoved,
    ev.CacheReset,
    ev.PoolReplaced,
)


def state_words(narrator: Listener, findable: bool = True, hit_rate: float | None = None) -> Iterator[str]:
    """A sentence for each thing there is something to say about; `findable`: tell what can be found, too."""
    for id in narrator.running:
        yield _running(narrator, id)
    if narrator.waiting:
        yield f"Waiting, the next one first: {', '.join(narrator.waiting)}."
    shared = _shared(narrator)
    if shared:
        yield f"Held by several: {named_blocks(shared)}."
    if narrator.free:
        yield f"The free queue, from its head: {block_ranges(list(narrator.free), MANY)}."
    if findable and narrator.nodes:
        yield f"The tree: {'; '.join(_node(narrator, id) for id in narrator.nodes)}."
        yield _leaves(narrator)
    elif findable and narrator.published:
        yield f"What can be found: {'; '.join(_found(narrator))}."
    if hit_rate is not None:
        yield f"Hit rate so far: {hit_rate:.1%} of the tokens looked up."


def _running(narrator: Listener, id: str) -> str:
    request = narrator.requests[id]
    hit = f", {request.num_cached_tokens:,} of them hit" if request.num_cached_tokens else ""
    said = len(request.tokens) - request.num_prompt_tokens
    table = narrator.tables.get(id)
    return (
        f"{id} runs: {plural(request.num_prompt_tokens, 'prompt token')}{hit}, {said:,} generated, the KV of "
        f"{request.num_computed_tokens:,} in {named_blocks(table) if table else 'no block'}."
    )


def _shared(narrator: Listener) -> list[int]:
    """Blocks that stand in more than one block table."""
    held: set[int] = set()
    shared: dict[int, None] = {}
    for table in narrator.tables.values():
        shared |= dict.fromkeys(block for block in table if block in held)
        held.update(table)
    return list(shared)


def _node(narrator: Listener, id: int) -> str:
    node = narrator.nodes[id]
    below = f"below node {node.parent}" if node.parent else "below the root"
    locks = f", {plural(node.locks, 'lock')}" if node.locks else ""
    text = narrator.token_words.run(node.tokens, 20)
    return f"node {id} {below} holds {plural(len(node.tokens), 'token')}, {text}{locks}"


def _leaves(narrator: Listener) -> str:
    """Recency is a tick: the smaller, the longer ago."""
    parents = {node.parent for node in narrator.nodes.values()}
    leaves = [id for id, node in narrator.nodes.items() if id not in parents and not node.locks]
    if not leaves:
        return "No leaf of the tree could be evicted."
    leaves.sort(key=lambda id: narrator.nodes[id].tick)
    which = f"{'node' if len(leaves) == 1 else 'nodes'} {listed(map(str, leaves))}"
    return f"Leaves that could be evicted, the least recently used first: {which}."


def _found(narrator: Listener) -> Iterator[str]:
    """`blocks 0–3 of r0 in b1–b4`, by who published them."""
    by_publisher = sorted(narrator.published.items(), key=lambda item: item[1])
    for publisher, group in groupby(by_publisher, key=lambda item: item[1][0]):
        items = list(group)
        which = f"{'block' if len(items) == 1 else 'blocks'} {ranges([index for _, (_, index) in items])}"
        yield f"{which} of {publisher} in {block_ranges([block for block, _ in items], MANY)}"
