"""By which rule something happened, what would have made it different, and which function of the core decided.

One entry for each event type, and for a lookup one for each reason why it ended. Where the figures of the event say
more than the entry's own words, `_otherwise` makes the sentence.
"""

from dataclasses import dataclass, replace

from minicache.core import events as ev
from minicache.core.explain import Explanation
from minicache.sim.phrases import plural
from minicache.sim.scene import Scene


@dataclass(frozen=True, slots=True)
class Rule:
    """`name` is the rule in two to five words, `otherwise` a sentence or two, `decided_by` a function as
    `core/scheduler.py Scheduler.add`."""

    name: str
    otherwise: str
    decided_by: str


LOOKUP = {"hash": "core/hash_chain_cache.py HashChainCache.lookup", "radix": "core/radix_cache.py RadixCache.lookup"}

LOOKUPS: dict[str, tuple[str, str]] = {
    "difference": (
        "nothing after a difference",
        "If {request} continued as {other} does, it would find more: put the parts that differ after the parts that "
        "are shared.",
    ),
    "ends": (
        "full blocks only",
        "If {other} went on in the same way to the end of that block, the block could be found.",
    ),
    "evicted": (
        "least recently used first",
        "With more blocks in the pool, or if {request} had come before step {step}, it would still have been there.",
    ),
    "evicted_from_the_tree": (
        "leaves first, in the strategy's order",
        "With more blocks in the pool, or if {request} had come before step {step}, it would still have been there.",
    ),
    "evict_called": ("lost KV is computed again", "Without this eviction it would still have been there."),
    "given_up": (
        "lost KV is computed again",
        "If the request that gave it up had computed its KV first, it would still have been there.",
    ),
    "reset": ("lost KV is computed again", "Without the reset of the cache it would still have been there."),
    "not_computed": (
        "computed KV only",
        "If {request} had come after {other} had computed it, it would have found it.",
    ),
    "not_computed_in_the_tree": (
        "computed KV only",
        "If {request} had come after {other} had computed it, it would have found it; also if KV were published when "
        "it is scheduled, as the hash chain can do (publish_at).",
    ),
    "not_published": (
        "output is published late",
        "If output were published as each block fills (publish_outputs), or if {other} had ended, it would have been "
        "found.",
    ),
    "other_namespace": (
        "namespaces never share",
        "With the same adapter, salt and extra key as {other}, {request} would have found it.",
    ),
    "waiting": (
        "the first request must compute",
        "If an earlier request had {begun} with the same {unit}, its KV would have been found.",
    ),
    "unknown": (
        "the first request must compute",
        "If an earlier request had {begun} with the same {unit}, its KV would have been found.",
    ),
    "no_kv": (
        "the last generated token has no KV",
        "If {other} had generated one token more, the KV of this token would have been computed for it.",
    ),
    "whole": (
        "full blocks only",
        "With smaller blocks more of its end could be shared; with blocks of one token all but its last token.",
    ),
    "last_token": (
        "one token must be computed",
        "If the prompt had one token more, this block would have been reused too: the last token gives the logits.",
    ),
    "last_token_alone": (
        "one token must be computed",
        "No change would help: a lookup never finds the last token of a request.",
    ),
    "too_short": ("full blocks only", "With a longer prompt or smaller blocks there would be a block to reuse."),
    "skipped": (
        "only computed tokens have logits",
        "Without prompt log-probabilities, and with leave to read the cache, it would have looked further.",
    ),
}

SCHEDULER, PLANNER, DESK, PAGED = (
    "core/scheduler.py Scheduler",
    "core/planner.py plan_step",
    "core/queues.py Desk",
    "core/paged_cache.py PagedCache",
)
HASH, RADIX = "core/hash_chain_cache.py HashChainCache", "core/radix_cache.py RadixCache"
POOL, TREE = "core/block_pool.py BlockPool", "core/radix_tree.py RadixTree"

EVENTS: dict[type[ev.Event], Rule] = {
    ev.StepStarted: Rule(
        "one budget for a step",
        "With a larger max_num_batched_tokens the same work would take fewer steps.",
        f"{SCHEDULER}.schedule",
    ),
    ev.StepFinished: Rule(
        "one budget for a step", "With less to compute the step would have taken less time.", f"{SCHEDULER}.update"
    ),
    ev.RequestArrived: Rule(
        "a request must fit into the pool",
        "A request that needs more blocks than the pool has is refused.",
        f"{SCHEDULER}.add",
    ),
    ev.RequestRejected: Rule(
        "a request must fit into the pool",
        "With more blocks, a shorter prompt or a smaller max_tokens it would have been put into the queue.",
        f"{SCHEDULER}.add",
    ),
    ev.QueueReordered: Rule(
        "the queue policy",
        "With queue_policy fcfs the order of arrival would have stayed; lpm puts the longest prefix match first.",
        f"{DESK}.sort_waiting",
    ),
    ev.AdmissionFailed: Rule(
        "no request overtakes the head",
        "With more free blocks, or with more of its prompt cached, it would have been admitted.",
        PLANNER,
    ),
    ev.RequestAdmitted: Rule(
        "running first, then waiting",
        "Without budget, without free blocks or with max_num_seqs running requests it would have waited.",
        PLANNER,
    ),
    ev.TokensComputed: Rule(
        "cached tokens are not computed",
        "A longer match would have left fewer tokens to compute.",
        f"{SCHEDULER}.update",
    ),
    ev.TokensSampled: Rule(
        "the last position gives the next token",
        "A chunk that does not reach the end of its request samples nothing.",
        f"{SCHEDULER}.update",
    ),
    ev.RequestPreempted: Rule(
        "a running request makes room",
        "With more blocks, fewer running requests (max_num_seqs) or shorter outputs no request would have been "
        "preempted.",
        f"{DESK}.preempt",
    ),
    ev.RequestFinished: Rule(
        "done at max_tokens or a stop token", "With a larger max_tokens it would have gone on.", f"{SCHEDULER}.update"
    ),
    ev.RequestAborted: Rule(
        "an abort is final", "To get the answer its caller must send the request again.", f"{SCHEDULER}.abort"
    ),
    ev.BlocksAdopted: Rule(
        "adopt first, then take",
        "In the other order, making room could evict the very blocks that matched.",
        f"{PAGED}.allocate",
    ),
    ev.BlocksAllocated: Rule(
        "from the head of the free queue",
        "A longer match would have needed fewer fresh blocks.",
        f"{POOL}.allocate",
    ),
    ev.BlocksPublished: Rule(
        "full blocks only",
        "A block that is not full stays private: its hash would change with the next token.",
        f"{HASH}.publish",
    ),
    ev.BlocksReleased: Rule(
        "tail first",
        "In the other order, the beginning of a prompt, which other requests share, would be evicted first.",
        f"{PAGED}.release",
    ),
    ev.BlocksUnpublished: Rule(
        "computed KV only", "If the step had been computed, lookups could still find the blocks.", f"{HASH}._let_go"
    ),
    ev.BlocksEvicted: Rule(
        "least recently used first",
        "With a larger pool, or if a request had used these blocks in the meantime, they would have stayed.",
        f"{POOL}.allocate",
    ),
    ev.NodesEvicted: Rule(
        "leaves first, in the strategy's order",
        "A lock on a node or below it keeps the node. The strategy gives the order: lru evicts the least recently used "
        "leaf first, lfu the least frequently used.",
        f"{TREE}.evict",
    ),
    ev.CacheReset: Rule(
        "a reset forgets everything", "While a request holds blocks, a reset is refused.", f"{PAGED}.reset"
    ),
    ev.PoolReplaced: Rule(
        "KV lies in blocks of one pool",
        "If the pool had kept its shape, the running requests would have gone on, and hits would still be possible.",
        f"{SCHEDULER}.replace_cache",
    ),
    ev.PoolShrunk: Rule(
        "a pool with fewer blocks",
        "With these blocks in the pool, fewer requests would wait, and blocks would be evicted later.",
        f"{PAGED}.shrink",
    ),
    ev.NodeSplit: Rule(
        "a match ends at a node",
        "If both had gone on in the same way to the end of the node, the node would not have been split.",
        f"{TREE}.match",
    ),
    ev.PathInserted: Rule(
        "an inserted path is refreshed", "A path that is not used again is evicted earlier.", f"{TREE}.insert"
    ),
    ev.LockMoved: Rule(
        "lock the new, then unlock the old",
        "In the other order, the path could be evicted in between.",
        f"{TREE}.lock",
    ),
    ev.DuplicatesFreed: Rule(
        "one copy in the tree",
        "If it had come a step later, it would have found these tokens; a hash chain would keep both copies.",
        f"{RADIX}.publish",
    ),
    ev.BlockTableRewritten: Rule(
        "use the tree's blocks",
        "Without this the table would name freed blocks: a use after free.",
        f"{RADIX}.publish",
    ),
}
AHEAD = Rule(  # of its KV
    "published when scheduled",
    "This is safe: the step computes everything that it schedules, and each layer writes its KV before it reads any; "
    "a block that is given up before that can no longer be found. A radix tree publishes computed KV only.",
    f"{HASH}.publish",
)
IN_THE_TREE: dict[type[ev.Event], Rule] = {
    ev.BlocksPublished: Rule(
        "computed KV only",
        "Before it is published, no other request can find it. A hash chain publishes earlier: when the step is "
        "scheduled.",
        f"{RADIX}.publish",
    ),
    ev.BlocksReleased: Rule(
        "published blocks stay in the tree",
        "Blocks that were never published would have gone back to the free queue, and their KV would have been lost.",
        f"{RADIX}._let_go",
    ),
}
MODELLED = "Modelled times come from a formula, not from a clock."


def rule_of(event: ev.Event, scene: Scene) -> Rule:
    """The rule for an event that the scene's view has just taken."""
    if scene.finding is not None:
        return _lookup_rule(scene.finding, scene)
    if isinstance(event, ev.BlocksPublished) and scene.is_ahead(event):
        return AHEAD
    rule = (scene.radix and IN_THE_TREE.get(type(event))) or EVENTS[type(event)]
    otherwise = _otherwise(event, scene)
    return rule if otherwise is None else replace(rule, otherwise=otherwise)


# Lookups


def _lookup_rule(finding: Explanation, scene: Scene) -> Rule:
    single = scene.view.block_size == 1
    name, text = LOOKUPS[_reason(finding, scene.radix, single)]
    otherwise = text.format(
        request=finding.request,
        other=finding.other,
        step=finding.loss.step if finding.loss else None,
        begun="gone on" if finding.num_tokens else "begun",
        unit="token" if single else "block",
    )
    return Rule(name, otherwise, LOOKUP["radix" if scene.radix else "hash"])


def _reason(finding: Explanation, radix: bool, single: bool) -> str:
    """The key of `LOOKUPS`."""
    match finding.reason:
        case "difference" if finding.there is None and not single:
            return "ends"
        case "evicted" if finding.loss is not None and finding.loss.cause != "needed":
            return "given_up" if finding.loss.cause == "not_computed" else finding.loss.cause
        case "evicted" if radix:
            return "evicted_from_the_tree"
        case "not_computed" if radix:
            return "not_computed_in_the_tree"
        case "last_token" if single:
            return "last_token_alone"
        case reason:
            return reason


# With the figures of the event


def _otherwise(event: ev.Event, scene: Scene) -> str | None:
    """What would have made the event different, by its figures; None where the rule's own words say it all."""
    match event:
        case ev.StepStarted() | ev.StepFinished() if scene.modelled:
            return f"{EVENTS[type(event)].otherwise} {MODELLED}"
        case ev.RequestArrived():
            return _arrived(event, scene)
        case ev.AdmissionFailed():
            return (
                f"With {plural(event.needed - event.free, 'block')} more available it would have been admitted. Blocks "
                "that it found would need no free blocks if a running request used them."
            )
        case ev.RequestAdmitted():
            return _admitted(event, scene)
        case ev.RequestPreempted():
            return (
                f"With more blocks, fewer running requests (max_num_seqs) or shorter outputs {event.request} would "
                "have gone on."
            )
        case ev.RequestFinished():
            return _finished(event, scene)
        case ev.BlocksEvicted():
            it, they = ("them", "they") if len(event.blocks) > 1 else ("it", "it")
            return (
                f"With {plural(len(event.blocks), 'block')} more in the pool, or if a request had used {it} in the "
                f"meantime, {they} would have stayed."
            )
        case _:
            return None


def _arrived(event: ev.RequestArrived, scene: Scene) -> str:
    needed = -(-(len(event.tokens) + event.max_tokens - 1) // scene.view.block_size)
    return (
        f"At its longest it needs {plural(needed, 'block')} of the pool's {scene.view.capacity:,}: with fewer "
        f"than {needed:,} it would have been refused."
    )


def _admitted(event: ev.RequestAdmitted, scene: Scene) -> str | None:
    rest = len(scene.view.requests[event.request].tokens) - event.num_cached_tokens - event.num_tokens
    if rest:
        return f"With {plural(rest, 'token')} more for it in this step all of it would have been computed at once."
    if event.num_cached_tokens:
        both = event.num_cached_tokens + event.num_tokens
        return f"Without the hit, {both:,} of its tokens would have been computed instead of {event.num_tokens:,}."
    return None


def _finished(event: ev.RequestFinished, scene: Scene) -> str | None:
    if event.reason == "length":
        return f"With a max_tokens above {scene.view.ended[event.request].max_tokens:,} it would have gone on."
    if event.reason == "stop":
        return "If the token it generated were not a stop token, it would have gone on."
    return None
