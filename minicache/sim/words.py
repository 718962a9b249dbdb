"""One whole sentence for every event: about this request, this block and this token.

`tell(narrator, event)` is called when the narrator has taken the event. The transcript prints these sentences, the TUI
shows them, tests compare them: they are written here and nowhere else. `rules.py` says by which rule it was so.
"""
# ruff: noqa: N802 - a handler carries the name of its event type

from minicache.core import events as ev
from minicache.core.request import Namespace
from minicache.sim.lookup_words import lookup_words
from minicache.sim.narrator import Narrator
from minicache.sim.phrases import block_ranges, listed, named_blocks, plural, sentence, short_hash
from minicache.sim.simulator import TAKEN_AWAY


def tell(narrator: Narrator, event: ev.Event) -> str:
    """The event in a sentence or two."""
    words: str = globals()[f"on_{type(event).__name__}"](narrator, event)
    return words


def namespace_words(namespace: Namespace) -> str:
    """`adapter legal and salt tenant-a`, or nothing."""
    parts = [f"adapter {namespace.adapter.name}"] if namespace.adapter else []
    parts += [f"salt {namespace.salt}"] if namespace.salt else []
    parts += [f"extra key {part}" for part in namespace.extra]
    return listed(parts) if parts else ""


# Steps


def on_StepStarted(narrator: Narrator, event: ev.StepStarted) -> str:
    running, waiting = len(narrator.running), len(narrator.waiting)
    return f"Step {event.step} begins at {narrator.clock(event.time)}: {running} running, {waiting} waiting."


def on_StepFinished(narrator: Narrator, event: ev.StepFinished) -> str:
    held, findable = narrator.num_held, narrator.num_findable_unheld
    capacity = narrator.num_blocks - 1
    means = " (in the tree, used by nobody)" if narrator.radix else " (free, but can still be found)"
    return (
        f"Step {event.step} ends at {narrator.clock(event.time)} with {plural(event.num_tokens, 'token')} computed. Of "
        f"{plural(capacity, 'block')}, {held:,} are in use, {findable:,} cached{means if findable else ''}, "
        f"{capacity - held - findable:,} empty; {len(narrator.running)} running, {len(narrator.waiting)} waiting."
    )


# A request's life


def on_RequestArrived(narrator: Narrator, event: ev.RequestArrived) -> str:
    whole, tail = divmod(len(event.tokens), narrator.block_size)
    blocks = "" if narrator.block_size == 1 else f", which is {plural(whole, 'whole block')}"
    if blocks and tail:
        blocks += f" and {plural(tail, 'token')} more"
    shared = namespace_words(event.namespace)
    shared = f" It shares only with requests of {shared}." if shared else ""
    text = narrator.token_words.run(event.tokens)
    return (
        f"{event.request} arrives with {plural(len(event.tokens), 'token')}{blocks}: {text}. It "
        f"may generate {event.max_tokens} and waits as number {len(narrator.waiting)} in the queue.{shared}"
    )


def on_RequestRejected(narrator: Narrator, event: ev.RequestRejected) -> str:
    return sentence(f"{event.request} is refused: {event.reason}")


def on_QueueReordered(narrator: Narrator, event: ev.QueueReordered) -> str:
    return f"The queue is put into another order: {', '.join(event.requests)}."


def on_AdmissionFailed(narrator: Narrator, event: ev.AdmissionFailed) -> str:
    own = -(-len(narrator.requests[event.request].tokens) // narrator.block_size)
    reserve = ", a reserve for outputs included," if event.needed > own else ""
    return (
        f"{event.request} does not fit: it needs {plural(event.needed, 'block')}{reserve} and {event.free:,} could be "
        "had. It stays at the head of the queue, and nobody overtakes it."
    )


def on_RequestAdmitted(narrator: Narrator, event: ev.RequestAdmitted) -> str:
    request = narrator.requests[event.request]
    again = " again after its preemption" if event.resumed else ""
    rest = len(request.tokens) - event.num_cached_tokens - event.num_tokens
    later = f", the other {rest:,} later" if rest else ""
    return (
        f"{event.request} is admitted{again}: {event.num_cached_tokens:,} of its "
        f"{plural(len(request.tokens), 'token')} come from the cache, {event.num_tokens:,} are computed in this "
        f"step{later}."
    )


def on_TokensComputed(narrator: Narrator, event: ev.TokensComputed) -> str:
    end = event.start + event.num_tokens
    if event.num_tokens == 1:
        return f"The KV of {event.request}'s token {event.start:,} is computed."
    return (
        f"The KV of {event.request}'s tokens {event.start:,} to {end - 1:,} is computed, {event.num_tokens:,} in all."
    )


def on_TokensSampled(narrator: Narrator, event: ev.TokensSampled) -> str:
    request = narrator.requests[event.request]
    count = len(request.tokens) - request.num_prompt_tokens
    said = ", ".join(narrator.token_words.one(token).removeprefix("generated ") for token in event.tokens)
    return f"{event.request} generates {said}, its token {count} of {request.max_tokens}."


def on_RequestPreempted(narrator: Narrator, event: ev.RequestPreempted) -> str:
    end = "front" if event.front else "back"
    return (
        f"{event.request} is preempted: {event.why}. It must give back its blocks, which hold its KV; it keeps its "
        f"tokens and waits again, at the {end} of the queue."
    )


def on_RequestFinished(narrator: Narrator, event: ev.RequestFinished) -> str:
    request = narrator.ended[event.request]
    said = len(request.tokens) - request.num_prompt_tokens
    return f"{event.request} is done ({event.reason}) with {plural(said, 'generated token')}."


def on_RequestAborted(narrator: Narrator, event: ev.RequestAborted) -> str:
    return f"{event.request} is aborted: nobody waits for its answer any more."


# Blocks


def on_PrefixMatched(narrator: Narrator, event: ev.PrefixMatched) -> str:
    assert narrator.finding is not None
    return lookup_words(narrator.finding, narrator.radix, narrator.block_size, narrator.token_words)


def on_BlocksAdopted(narrator: Narrator, event: ev.BlocksAdopted) -> str:
    others = [id for id in narrator.holders(event.blocks) if id != event.request]
    shared = f", which it shares with {listed(others)}" if others else "; nobody else holds them now"
    return f"{event.request} adopts {plural(len(event.blocks), 'cached block')}: {block_ranges(event.blocks)}{shared}."


def on_BlocksAllocated(narrator: Narrator, event: ev.BlocksAllocated) -> str:
    if event.request == TAKEN_AWAY:
        be = "is" if len(event.blocks) == 1 else "are"
        return f"{plural(len(event.blocks), 'block')} {be} taken out of the pool: {block_ranges(event.blocks)}."
    return (
        f"{event.request} takes {plural(len(event.blocks), 'fresh block')} from the head of the free queue: "
        f"{block_ranges(event.blocks)}."
    )


def on_BlocksPublished(narrator: Narrator, event: ev.BlocksPublished) -> str:
    single = len(event.blocks) == 1
    be, it = ("is", "it") if single else ("are", "them")
    what = f"{plural(len(event.blocks), 'block')} of {event.request} {be} published (a lookup can find {it} now)"
    where = block_ranges(event.blocks)
    if event.node is not None:
        below = f"below node {event.parent_node}" if event.parent_node else "below the root"
        return f"{what} as node {event.node}, {below}: {where}."
    first, last = short_hash(event.hashes[0]), short_hash(event.hashes[-1])
    hashes = f"hash {first}…" if single else f"hashes {first}… to {last}…"
    early = ""
    if narrator.is_ahead(event):
        early = f"; {'its' if single else 'their'} KV is still to be computed, in this step"
    return f"{what}: {where}, under {hashes}{early}."


def on_BlocksReleased(narrator: Narrator, event: ev.BlocksReleased) -> str:
    empty = [block for block in event.freed if block not in narrator.hashes]
    findable = [block for block in event.freed if block in narrator.hashes]
    parts = []
    if empty:
        do = "is empty and goes" if len(empty) == 1 else "are empty and go"
        parts.append(f"{named_blocks(empty)} {do} to the head of the free queue")
    if findable:
        do = "stays cached and goes" if len(findable) == 1 else "stay cached and go"
        order = "" if len(findable) == 1 else ", last block first"
        parts.append(f"{named_blocks(findable)} {do} to the tail of the free queue{order}")
    kept = len(event.blocks) - len(event.freed)
    if kept and narrator.radix:
        parts.append(f"{plural(kept, 'block')} {'stays' if kept == 1 else 'stay'} cached in the tree")
    elif kept:
        parts.append(f"{plural(kept, 'block')} {'is' if kept == 1 else 'are'} still held by others")
    return f"{event.request} gives back its {plural(len(event.blocks), 'block')}: {'; '.join(parts)}."


def on_BlocksUnpublished(narrator: Narrator, event: ev.BlocksUnpublished) -> str:
    return f"{named_blocks(event.blocks).capitalize()} can be found no more: {event.request} never computed them."


def on_BlocksEvicted(narrator: Narrator, event: ev.BlocksEvicted) -> str:
    be, it = ("is", "it") if len(event.blocks) == 1 else ("are", "they")
    blocks = named_blocks(event.blocks).capitalize()
    return f"{blocks} {be} evicted: {event.why}. What {it} held can be found no more."


def on_NodesEvicted(narrator: Narrator, event: ev.NodesEvicted) -> str:
    leave = "leaves" if len(event.nodes) == 1 else "leave"
    nodes = ("node " if len(event.nodes) == 1 else "nodes ") + ", ".join(map(str, event.nodes[:6]))
    nodes += ", …" if len(event.nodes) > 6 else ""
    return f"{nodes.capitalize()} with {plural(len(event.blocks), 'block')} {leave} the tree: {event.why}."


def on_CacheReset(narrator: Narrator, event: ev.CacheReset) -> str:
    return "Everything cached is forgotten."


def on_PoolReplaced(narrator: Narrator, event: ev.PoolReplaced) -> str:
    return (
        f"The pool is replaced: {plural(event.num_blocks - 1, 'block')} of {plural(event.block_size, 'token')}, all "
        "empty. What was cached is gone."
    )


# The radix tree


def on_NodeSplit(narrator: Narrator, event: ev.NodeSplit) -> str:
    rest = len(narrator.nodes[event.node].tokens)
    return (
        f"Node {event.node} is cut after {plural(event.at, 'token')}: the new node {event.upper} above it holds these, "
        f"and node {event.node} keeps the {rest:,} after them."
    )


def on_PathInserted(narrator: Narrator, event: ev.PathInserted) -> str:
    path = []
    node = event.node
    while node:
        path.append(node)
        node = narrator.nodes[node].parent
    length = sum(len(narrator.nodes[id].tokens) for id in path)
    way = " → ".join(str(id) for id in reversed(path))
    along = f"node {way}, which was" if len(path) == 1 else f"nodes {way}, which were"
    if length < event.start:  # SGLang's cache inserts a prompt once more behind the whole, with a priority of its own
        return (
            f"The prompt of {event.request} alone, {plural(length, 'token')} along {along} used just now, gets "
            f"priority {event.priority}: eviction by priority spares prompts longer than answers."
        )
    return f"The first {plural(length, 'token')} of {event.request} are in the tree, along {along} used just now."


def on_LockMoved(narrator: Narrator, event: ev.LockMoved) -> str:
    if event.node is None:
        return f"{event.request} unlocks its path: what nobody else locks can be evicted."
    return f"{event.request} locks node {event.node} and all above it: they cannot be evicted."


def on_DuplicatesFreed(narrator: Narrator, event: ev.DuplicatesFreed) -> str:
    copies = "copy {} is" if len(event.blocks) == 1 else "copies {} are"
    return (
        f"{event.request} computed {plural(len(event.blocks), 'block')} that somebody else had published meanwhile: "
        f"its {copies.format(block_ranges(event.blocks))} freed."
    )


def on_BlockTableRewritten(narrator: Narrator, event: ev.BlockTableRewritten) -> str:
    return (
        f"{event.request}'s block table names the tree's blocks from entry {event.start} on: "
        f"{block_ranges(event.blocks)}."
    )
