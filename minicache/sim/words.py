"""The sentences: one for every event, why a lookup found no more, the state after a step, how a run ends.

`describe(event, scene)` gives the sentence of an event. The transcript prints these sentences, the TUI shows them,
tests compare them: they are written here and nowhere else. `rules.py` has the rule of each event.
"""
# ruff: noqa: N802 - a handler carries the name of its event type

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice

from minicache.core import events as ev
from minicache.core.explain import Explanation, Reason
from minicache.core.request import Namespace
from minicache.sim.findings import BlocksAfter, blocks_after, tokens_of
from minicache.sim.phrases import (
    block_ranges,
    listed,
    named_blocks,
    own_blocks,
    plural,
    ranges,
    requests_do,
    short_hash,
)
from minicache.sim.run_index import RunIndex
from minicache.sim.scene import Scene

FOR_NO_REQUEST = "the pool was made smaller, or evict() was called"
AROUND = 16  # tokens shown of a prompt around a token that differs, where blocks hold one token


def describe(event: ev.Event, scene: Scene) -> str:
    """The event in a sentence or two."""
    words: str = globals()[f"on_{type(event).__name__}"](event, scene)
    return words


def namespace_words(namespace: Namespace) -> str:
    """`adapter legal and salt tenant-a`, or nothing."""
    parts = [f"adapter {namespace.adapter.name}"] if namespace.adapter else []
    parts += [f"salt {namespace.salt}"] if namespace.salt else []
    parts += [f"extra key {part}" for part in namespace.extra]
    return listed(parts)


# Steps


def on_StepStarted(event: ev.StepStarted, scene: Scene) -> str:
    return f"Step {event.step} begins at {scene.clock(event.time)}: {_queues(scene)}."


def on_StepFinished(event: ev.StepFinished, scene: Scene) -> str:
    held, cached, capacity = len(scene.view.num_holders), scene.num_cached(), scene.view.capacity
    them = "it" if cached == 1 else "them"
    means = f" (a lookup can find {them}, and no request uses {them})" if cached else ""
    return (
        f"Step {event.step} ends at {scene.clock(event.time)} with {plural(event.num_tokens, 'token')} computed. Of "
        f"{plural(capacity, 'block')}, {held:,} {_are(held)} in use, {cached:,} {_are(cached)} cached{means} and "
        f"{capacity - held - cached:,} {_are(capacity - held - cached)} empty; {_queues(scene)}."
    )


def _queues(scene: Scene) -> str:
    """`1 request runs, 2 wait`"""
    running, waiting = len(scene.view.running), len(scene.view.waiting)
    return f"{requests_do(running, 'run')}, {waiting:,} {'waits' if waiting == 1 else 'wait'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


# A request's life


def on_RequestArrived(event: ev.RequestArrived, scene: Scene) -> str:
    whole, tail = divmod(len(event.tokens), scene.view.block_size)
    blocks = "" if scene.view.block_size == 1 else f", which is {plural(whole, 'whole block')}"
    if blocks and tail:
        blocks += f" and {plural(tail, 'token')} more"
    shared = namespace_words(event.namespace)
    shared = f" It shares only with requests that have {shared}." if shared else ""
    return (
        f"{event.request} arrives with {plural(len(event.tokens), 'token')}{blocks}: {scene.tokens.run(event.tokens)}. "
        f"It may generate {plural(event.max_tokens, 'token')}, and is number {len(scene.view.waiting):,} in the queue."
        f"{shared}"
    )


def on_RequestRejected(event: ev.RequestRejected, scene: Scene) -> str:
    return (
        f"{event.request} is refused: its {plural(event.num_prompt_tokens, 'prompt token')} and max_tokens "
        f"{event.max_tokens:,} need {plural(event.needed, 'block')}, and the pool has {event.capacity:,}."
    )


def on_QueueReordered(event: ev.QueueReordered, scene: Scene) -> str:
    return f"The queue policy puts the waiting requests into another order: {', '.join(event.requests)}."


def on_AdmissionFailed(event: ev.AdmissionFailed, scene: Scene) -> str:
    own = -(-len(scene.view.requests[event.request].tokens) // scene.view.block_size)
    reserve = ", a reserve for outputs included," if event.needed > own else ""
    return (
        f"{event.request} does not fit: it needs {plural(event.needed, 'block')}{reserve} and {event.free:,} "
        f"{_are(event.free)} available. It stays at the head of the queue, and no request is admitted before it."
    )


def on_RequestAdmitted(event: ev.RequestAdmitted, scene: Scene) -> str:
    length = len(scene.view.requests[event.request].tokens)
    again = " again after its preemption" if event.resumed else ""
    rest = length - event.num_cached_tokens - event.num_tokens
    later = f", the other {rest:,} later" if rest else ""
    return (
        f"{event.request} is admitted{again}: {event.num_cached_tokens:,} of its {plural(length, 'token')} come from "
        f"the cache, {event.num_tokens:,} {_are(event.num_tokens)} computed in this step{later}."
    )


def on_TokensComputed(event: ev.TokensComputed, scene: Scene) -> str:
    if event.num_tokens == 1:
        return f"The KV of {event.request}'s token {event.start:,} is computed."
    end = event.start + event.num_tokens
    return (
        f"The KV of {event.request}'s tokens {event.start:,} to {end - 1:,} is computed, {event.num_tokens:,} in all."
    )


def on_TokensSampled(event: ev.TokensSampled, scene: Scene) -> str:
    request = scene.view.requests[event.request]
    count = len(request.tokens) - request.num_prompt_tokens
    generated = ", ".join(map(scene.tokens.generated, event.tokens))
    return f"{event.request} generates {generated}, its token {count:,} of {request.max_tokens:,}."


def on_RequestPreempted(event: ev.RequestPreempted, scene: Scene) -> str:
    end = "front" if event.front else "back"
    return (
        f"{event.request} is preempted: {_preempted_why(event)}. It must give back its blocks, and with them its KV; "
        f"it keeps its tokens and waits again, at the {end} of the queue."
    )


def _preempted_why(event: ev.RequestPreempted) -> str:
    match event.cause:
        case "no_free_block":
            needed_by = "it" if event.needed_by == event.request else event.needed_by
            return f"{needed_by} needed a block and none was free"
        case "step_failed":
            return f"the model run of step {event.step} failed ({event.error})"
        case "preempt_all":
            return "all running requests were preempted"


def on_RequestFinished(event: ev.RequestFinished, scene: Scene) -> str:
    request = scene.view.ended[event.request]
    count = len(request.tokens) - request.num_prompt_tokens
    return f"{event.request} is done ({event.reason}) with {plural(count, 'generated token')}."


def on_RequestAborted(event: ev.RequestAborted, scene: Scene) -> str:
    return f"{event.request} is aborted: its caller no longer wants the answer."


# Blocks


def on_PrefixMatched(event: ev.PrefixMatched, scene: Scene) -> str:
    assert scene.finding is not None
    length, size = scene.finding.length, scene.view.block_size
    blocks = "" if size == 1 else f", {event.num_tokens // size:,} of {plural(length // size, 'whole block')}"
    head = f"{event.request} looks up its prefix and finds {event.num_tokens:,} of {plural(length, 'token')}{blocks}."
    return f"{head} {reason_words(scene.finding, scene)}"


def on_BlocksAdopted(event: ev.BlocksAdopted, scene: Scene) -> str:
    others = [id for id in scene.holders(event.blocks) if id != event.request]
    shared = f", which it shares with {listed(others)}" if others else "; no other request uses them now"
    return f"{event.request} adopts {plural(len(event.blocks), 'cached block')}: {block_ranges(event.blocks)}{shared}."


def on_BlocksAllocated(event: ev.BlocksAllocated, scene: Scene) -> str:
    return (
        f"{event.request} takes {plural(len(event.blocks), 'fresh block')} from the head of the free queue: "
        f"{block_ranges(event.blocks)}."
    )


def on_BlocksPublished(event: ev.BlocksPublished, scene: Scene) -> str:
    count = len(event.blocks)
    them = "it" if count == 1 else "them"
    what = f"{plural(count, 'block')} of {event.request} {_are(count)} published (a lookup can find {them} now)"
    where = block_ranges(event.blocks)
    if event.node is not None:
        below = f"below node {event.parent_node}" if event.parent_node else "below the root"
        return f"{what} as node {event.node}, {below}: {where}."
    first, last = short_hash(event.hashes[0]), short_hash(event.hashes[-1])
    hashes = f"hash {first}…" if count == 1 else f"hashes {first}… to {last}…"
    ahead = f"; {'its' if count == 1 else 'their'} KV is computed later in this step" if scene.is_ahead(event) else ""
    return f"{what}: {where}, under {hashes}{ahead}."


def on_BlocksReleased(event: ev.BlocksReleased, scene: Scene) -> str:
    empty = [block for block in event.freed if block not in scene.view.hashes]
    findable = [block for block in event.freed if block in scene.view.hashes]
    parts = []
    if empty:
        do = "is empty and goes" if len(empty) == 1 else "are empty and go"
        parts.append(f"{named_blocks(empty)} {do} to the head of the free queue")
    if findable:
        do = "stays cached and goes" if len(findable) == 1 else "stay cached and go"
        order = "" if len(findable) == 1 else ", last block first"
        parts.append(f"{named_blocks(findable)} {do} to the tail of the free queue{order}")
    kept = len(event.blocks) - len(event.freed)
    if kept and scene.radix:
        parts.append(f"{plural(kept, 'block')} {'stays' if kept == 1 else 'stay'} cached in the tree")
    elif kept:
        parts.append(f"other requests still use {plural(kept, 'block')}")
    return f"{event.request} gives back its {plural(len(event.blocks), 'block')}: {'; '.join(parts)}."


def on_BlocksUnpublished(event: ev.BlocksUnpublished, scene: Scene) -> str:
    them = "it" if len(event.blocks) == 1 else "them"
    return f"Lookups can no longer find {named_blocks(event.blocks)}: {event.request} never computed {them}."


def on_BlocksEvicted(event: ev.BlocksEvicted, scene: Scene) -> str:
    count = len(event.blocks)
    blocks, it = named_blocks(event.blocks).capitalize(), "it" if count == 1 else "they"
    return f"{blocks} {_are(count)} evicted: {_evicted_why(event.request)}. Lookups can no longer find what {it} held."


def on_NodesEvicted(event: ev.NodesEvicted, scene: Scene) -> str:
    single = len(event.nodes) == 1
    nodes = ", ".join(map(str, event.nodes[:6])) + (", …" if len(event.nodes) > 6 else "")
    return (
        f"{'Node' if single else 'Nodes'} {nodes} with {plural(len(event.blocks), 'block')} "
        f"{'leaves' if single else 'leave'} the tree: {_evicted_why(event.request)}."
    )


def _evicted_why(request: str | None) -> str:
    return FOR_NO_REQUEST if request is None else f"{request} needed blocks"


def on_CacheReset(event: ev.CacheReset, scene: Scene) -> str:
    return "The cache is reset: it forgets everything that it held."


def on_PoolReplaced(event: ev.PoolReplaced, scene: Scene) -> str:
    return (
        f"The pool is replaced by an empty one of {plural(event.num_blocks - 1, 'block')} of "
        f"{plural(event.block_size, 'token')}: everything that was cached is lost."
    )


def on_PoolShrunk(event: ev.PoolShrunk, scene: Scene) -> str:
    count, left = len(event.blocks), scene.view.capacity
    return (
        f"{plural(count, 'block')} {_are(count)} taken out of the pool: {block_ranges(event.blocks)}. "
        f"{plural(left, 'block')} {'stays' if left == 1 else 'stay'}."
    )


# The radix tree


def on_NodeSplit(event: ev.NodeSplit, scene: Scene) -> str:
    rest = len(scene.view.nodes[event.node].tokens)
    return (
        f"Node {event.node} is split after {plural(event.at, 'token')}: the new node {event.upper} above it holds "
        f"these, and node {event.node} keeps the {rest:,} after them."
    )


def on_PathInserted(event: ev.PathInserted, scene: Scene) -> str:
    path = []
    node = event.node
    while node:
        path.append(node)
        node = scene.view.nodes[node].parent
    length = sum(len(scene.view.nodes[id].tokens) for id in path)
    nodes = f"node{'s' if len(path) > 1 else ''} {' → '.join(map(str, reversed(path)))}"
    if length < event.start:  # SGLang's cache inserts the prompt once more after the whole, with a priority of its own
        return (
            f"The prompt of {event.request} alone ({plural(length, 'token')}, {nodes}) gets priority {event.priority}: "
            "the eviction strategy `priority` evicts answers before prompts."
        )
    return (
        f"The first {plural(length, 'token')} of {event.request} are in the tree, on the path of {nodes}, which counts "
        "as used just now."
    )


def on_LockMoved(event: ev.LockMoved, scene: Scene) -> str:
    if event.node is None:
        return f"{event.request} unlocks its path: nodes that no other request locks can be evicted."
    return f"{event.request} locks node {event.node} and every node above it: they cannot be evicted."


def on_DuplicatesFreed(event: ev.DuplicatesFreed, scene: Scene) -> str:
    count = len(event.blocks)
    copies = f"its {'copy' if count == 1 else 'copies'} {block_ranges(event.blocks)} {_are(count)} freed"
    return (
        f"{event.request} computed {plural(count, 'block')} that another request had published in the meantime: "
        f"{copies}."
    )


def on_BlockTableRewritten(event: ev.BlockTableRewritten, scene: Scene) -> str:
    return (
        f"{event.request}'s block table names the tree's blocks from entry {event.start} on: "
        f"{block_ranges(event.blocks)}."
    )


# Why a lookup found no more


def reason_words(finding: Explanation, scene: Scene) -> str:
    """Why a lookup found no more, in a sentence or two about `it`, the request."""
    single, other = scene.view.block_size == 1, finding.other
    unit = "token" if single else "block"
    its = f"Its {unit} {finding.block:,}" if finding.block is not None else ""
    match finding.reason:
        case "difference" if finding.there is None:
            return _ends_inside(finding, single)
        case "difference":
            return _difference(finding, scene)
        case "evicted":
            assert finding.loss is not None
            return f"{its} was in the cache until step {finding.loss.step:,}: {_lost_why(finding)}."
        case "not_computed":
            return f"{its} is the same as {other}'s, which has not computed it yet."
        case "waiting":
            return f"No request has computed more yet: {other}, which begins in the same way, waits too."
        case "not_published":
            return (
                f"{its} is the same as {other}'s, which has computed it and not published it yet: output is published "
                f"when {'' if single else 'its block is full, or when '}its request ends."
            )
        case "no_kv":
            token = "The next token" if single else f"The last token of its block {finding.block:,}"
            return f"{token} is the last that {other} generated: it has no KV, because no step needed it."
        case "other_namespace":
            return (
                f"{its} is in the cache for {other}, but in another namespace (adapter, salt or extra key): "
                "namespaces never share."
            )
        case "unknown":
            goes = "goes on" if finding.num_tokens else "begins"
            return f"No earlier request is known that {goes} in the same way."
        case "last_token" if single:
            return "All its tokens but the last were found: the last must be computed to get logits."
        case "last_token":
            return (
                "Every block that it may reuse was found. One token must be computed to get logits, so the block with "
                "its last token is never reused."
            )
        case "too_short" if single:
            return "It has a single token, which must be computed to get logits."
        case "too_short":
            return (
                "It has no block to reuse: only full blocks are cached, and one token must be computed to get logits."
            )
        case "whole":
            rest = finding.length - finding.num_tokens
            tail = "its last token does" if rest == 1 else f"its last {rest:,} tokens do"
            return f"Every full block was found. Only full blocks are cached, and {tail} not fill a block."
        case "skipped":
            return (
                "It looked no further: it asked not to read the cache, or it wants log-probabilities of prompt tokens, "
                "which only computed tokens have."
            )
        case "not_looked_up":
            return "It waits for its first lookup."


IN_SHORT: Mapping[Reason, str] = {
    "whole": "all was found",
    "last_token": "all but the last",
    "too_short": "below a block",
    "skipped": "not looked up",
    "not_looked_up": "not looked up yet",
    "difference": "differs at token {token:,}",
    "evicted": "the next was evicted",
    "not_computed": "not computed yet",
    "waiting": "no request computed it before",
    "not_published": "not published yet",
    "no_kv": "the next has no KV",
    "other_namespace": "in another namespace",
    "unknown": "no earlier request had it",
}


def reason_in_short(finding: Explanation) -> str:
    """The same in a few words, for a table."""
    if finding.reason == "difference" and finding.there is None:
        return "the other request ends there"
    return IN_SHORT[finding.reason].format(token=finding.token or 0)


def _lost_why(finding: Explanation) -> str:
    assert finding.loss is not None
    match finding.loss.cause:
        case "needed":
            return f"{finding.loss.request or 'another request'} needed blocks"
        case "evict_called":
            return FOR_NO_REQUEST
        case "not_computed":
            return "its request gave it up before its KV was computed"
        case "reset":
            return "the cache was reset"


def _ends_inside(finding: Explanation, single: bool) -> str:
    other = finding.other
    text = f"It is the same as {other} up to token {finding.token:,}, where {other} ends"
    return f"{text}." if single else f"{text} in the middle of a block: only full blocks are shared."


def _difference(finding: Explanation, scene: Scene) -> str:
    """`Its block 0 differs from user1's at token 13: "2" stands there instead of "1". …`"""
    assert finding.token is not None
    assert finding.other is not None
    single, at = scene.view.block_size == 1, finding.token
    ours, theirs = tokens_of(scene.view, finding.request), tokens_of(scene.view, finding.other)
    here, there = (scene.tokens.one(tokens[at], tokens[at + 1 : at + AROUND]) for tokens in (ours, theirs))
    change = f"{here} stands there instead of {there}"
    if single:
        text = f"Its token {at:,} differs from {finding.other}'s: {change}."
    else:
        text = f"Its block {finding.block:,} differs from {finding.other}'s at token {at:,}: {change}."
    after = blocks_after(finding, scene.view)
    if not after.count:
        return text
    unit = "token" if single else "block"
    what = f"the {after.count:,} {unit}s after it" if after.count > 1 else f"the {unit} after it"
    if scene.radix:
        text += f" The path in the tree parts there, so {what} cannot be reused"
    else:
        hashes = "are the hashes" if after.count > 1 else "is the hash"
        text += f" The hash of this block is new, and so {hashes} of {what}"
    return f"{text}{_same_after(finding, after, scene)}."


def _same_after(finding: Explanation, after: BlocksAfter, scene: Scene) -> str:
    """How many of the blocks after a difference hold the same text, and which of them do not."""
    single = scene.view.block_size == 1
    if not after.num_same or (single and 2 * after.num_same <= after.count):
        return ""
    if after.count == 1:
        return ", although it holds the same text"
    if after.num_same == after.count:
        return ", although they all hold the same text"
    same = f", although {after.num_same:,} of them {'holds' if after.num_same == 1 else 'hold'} the same text"
    if len(after.differing) == 1:
        return f"{same}; {_only_difference(finding, after.differing[0], scene)}"
    return same if single else f"{same}; {own_blocks(after.differing)} differ too"


def _only_difference(finding: Explanation, block: int, scene: Scene) -> str:
    """Where the only other block that differs does so."""
    assert finding.other is not None
    ours, theirs = tokens_of(scene.view, finding.request), tokens_of(scene.view, finding.other)
    size = scene.view.block_size
    at = next(at for at in range(block * size, (block + 1) * size) if ours[at : at + 1] != theirs[at : at + 1])
    if at >= len(theirs):
        return f"{finding.other} has no tokens after those"
    if size == 1:
        near = scene.tokens.run(ours[at // AROUND * AROUND :][:AROUND])
        where = f"only its token {at:,} in {near} differs too"
    else:
        near = scene.tokens.run(ours[block * size : (block + 1) * size])
        where = f"only its block {block:,}, {near}, differs too, at token {at:,}"
    return f"{where}: {scene.tokens.one(ours[at])} instead of {scene.tokens.one(theirs[at])}"


# The state after a step, which a screen shows next to the events

MANY = 12  # runs of blocks that are named
HEAD = 4096  # blocks of the free queue that are looked at, at every step of a transcript
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


def state_words(
    scene: Scene, publishers: Mapping[int, tuple[str, int]], findable: bool = True, hit_rate: float | None = None
) -> Iterator[str]:
    """A sentence about each thing that is there: the running requests and their blocks, the queue, what is evicted
    first, the hit rate; and what lookups can find, if `findable`. `publishers` maps a block to the request that
    published it last, and to its number in that request."""
    view = scene.view
    for id in view.running:
        yield _running(id, scene)
    if view.waiting:
        yield f"Waiting, the next one first: {', '.join(view.waiting)}."
    shared = _shared(scene)
    if shared:
        yield f"Used by several requests: {named_blocks(shared)}."
    if view.free:
        head = block_ranges(list(islice(view.free, HEAD)), MANY)
        more = ", …" if len(view.free) > HEAD and not head.endswith("…") else ""
        yield f"The free queue, from its head: {head}{more}."
    if findable and view.nodes:
        yield f"The tree: {'; '.join(_node(id, scene) for id in view.nodes)}."
        yield _leaves(scene)
    elif findable and view.hashes:
        found = sorted((*publishers[block], block) for block in view.hashes)
        yield f"Lookups can find: {'; '.join(_found(found))}."
    if hit_rate is not None:
        yield f"Hit rate so far: {hit_rate:.1%} of the tokens looked up."


def _running(id: str, scene: Scene) -> str:
    request, table = scene.view.requests[id], scene.view.tables.get(id)
    hit = f", {request.num_cached_tokens:,} of them hit" if request.num_cached_tokens else ""
    generated = len(request.tokens) - request.num_prompt_tokens
    return (
        f"{id} runs: {plural(request.num_prompt_tokens, 'prompt token')}{hit}, {generated:,} generated, the KV of "
        f"{request.num_computed_tokens:,} in {named_blocks(table) if table else 'no block'}."
    )


def _shared(scene: Scene) -> list[int]:
    """Blocks that more than one block table names."""
    holders = scene.view.num_holders
    return list(dict.fromkeys(b for table in scene.view.tables.values() for b in table if holders[b] > 1))


def _node(id: int, scene: Scene) -> str:
    node = scene.view.nodes[id]
    below = f"below node {node.parent}" if node.parent else "below the root"
    locks = f", {plural(node.locks, 'lock')}" if node.locks else ""
    return f"node {id} {below} holds {plural(len(node.tokens), 'token')}, {scene.tokens.run(node.tokens, 20)}{locks}"


def _leaves(scene: Scene) -> str:
    """Recency is a tick: the smaller, the longer ago."""
    nodes = scene.view.nodes
    if not nodes:
        return "The tree is empty."
    parents = {node.parent for node in nodes.values()}
    leaves = [id for id, node in nodes.items() if id not in parents and not node.locks]
    if not leaves:
        return "No leaf of the tree can be evicted: requests lock them all."
    leaves.sort(key=lambda id: nodes[id].tick)
    which = f"{'node' if len(leaves) == 1 else 'nodes'} {listed(map(str, leaves))}"
    return f"Leaves that can be evicted, the least recently used first: {which}."


def _found(found: Sequence[tuple[str, int, int]]) -> Iterator[str]:
    """`blocks 0–3 of r0 in b1–b4`, for each publisher."""
    for publisher, group in groupby(found, key=lambda item: item[0]):
        items = list(group)
        which = f"{'block' if len(items) == 1 else 'blocks'} {ranges([number for _, number, _ in items])}"
        yield f"{which} of {publisher} in {block_ranges([block for _, _, block in items], MANY)}"


# How a run ends

CUT = "The last line of the log is incomplete: the program that wrote it stopped there."


def closing_words(index: RunIndex) -> str:
    """`In all: 5 requests, and 0 of 3,360 prompt tokens found in the cache (0.0%). …`"""
    totals, rate = index.totals, index.hit_rates["tokens of all"]
    return (
        f"In all: {plural(len(index.requests), 'request')}, and {index.cached_tokens:,} of "
        f"{plural(index.prompt_tokens, 'prompt token')} found in the cache ({rate:.1%}). "
        f"{plural(totals['computed_tokens'], 'token')} computed, answers included, in "
        f"{plural(totals['steps'], 'step')}; {plural(totals['evicted_blocks'], 'block')} evicted."
    )


def end_of_log_words(waiting: int, running: int, cut: bool = False) -> str:
    """`The log ends here: 12 requests wait, 1 runs.`, and whether its last line is `cut`; empty if the log is whole and
    every request that arrived is over."""
    wait = requests_do(waiting, "wait") if waiting else ""
    run = requests_do(running, "run") if running else ""
    unfinished = ", ".join(filter(None, (wait, run)))
    ending = f"The log ends here: {unfinished}." if unfinished else ""
    return " ".join(filter(None, (ending, CUT if cut else "")))
