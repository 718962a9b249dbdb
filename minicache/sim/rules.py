"""By which rule something happened, what would have made it different, and which function of the core decided.

One entry for each event type; for a lookup, one for each reason why it ended. The words may name the request, the other
request and the token in question; where they need the figures of the event, they are in `otherwise.py`.
"""

from dataclasses import dataclass, replace

from minicache.core import events as ev
from minicache.sim.finding import Finding
from minicache.sim.lookup_words import differs_inside
from minicache.sim.narrator import Narrator
from minicache.sim.otherwise import otherwise
from minicache.sim.simulator import TAKEN_AWAY


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
        "Had {request} gone on as {other} does, it could have found more: put what differs after what is shared.",
    ),
    "ends": (
        "full blocks only",
        "Had {other} gone on in the same way to the end of that block, the block could have been found.",
    ),
    "evicted": (
        "least recently used first",
        "With more blocks in the pool, or had {request} come before step {step}, it would still have been there.",
    ),
    "evicted_from_the_tree": (
        "leaves first, in the strategy's order",
        "With more blocks in the pool, or had {request} come before step {step}, it would still have been there.",
    ),
    "lost": ("what is lost is computed again", "Had that not happened, the block would still have been there."),
    "not_computed": (
        "computed KV only",
        "Had {request} come when {other} had got so far, it would have found it.",
    ),
    "not_computed_in_the_tree": (
        "computed KV only",
        "Had {request} come when {other} had got so far, it would have found it; so it would if KV were published when "
        "it is scheduled, as the hash chain can (publish_at).",
    ),
    "not_published": (
        "output is published late",
        "Were output published as each block fills (publish_outputs), or were {other} done, it would be found.",
    ),
    "other_namespace": (
        "namespaces never share",
        "With the same adapter, salt and extra key as {other}, {request} would have found it.",
    ),
    "unknown": (
        "somebody must be first",
        "Had an earlier request {begun} with the same {unit}, it would have been found.",
    ),
    "last_generated": (
        "the last generated token has no KV",
        "Had {other} generated one token more, the KV of this one would have been computed for it.",
    ),
    "whole": (
        "full blocks only",
        "With smaller blocks more of the tail could be shared; at block size 1 all but one token.",
    ),
    "last_token": (
        "one token must be computed",
        "Had the prompt a token more, this block would have been reused as well: the last token gives the logits.",
    ),
    "too_short": ("full blocks only", "With a longer prompt or smaller blocks there would be a block to reuse."),
    "skipped": (
        "what is computed has logits",
        "Without prompt log-probabilities, and reading the cache, it would have looked further.",
    ),
}

SCHEDULER, PLANNER, PAGED = (
    "core/scheduler.py Scheduler",
    "core/step_plan.py StepPlanner",
    "core/paged_cache.py PagedCache",
)
HASH, RADIX = "core/hash_chain_cache.py HashChainCache", "core/radix_cache.py RadixCache"
POOL, TREE = "core/block_pool.py BlockPool", "core/radix_tree.py RadixTree"

EVENTS: dict[type[ev.Event], Rule] = {
    ev.StepStarted: Rule(
        "one budget a step",
        "With a larger max_num_batched_tokens the same work would take fewer steps.",
        f"{SCHEDULER}.schedule",
    ),
    ev.StepFinished: Rule(
        "one budget a step", "With less to compute the step would have taken less time.", f"{SCHEDULER}.update"
    ),
    ev.RequestArrived: Rule(
        "what fits into the pool may wait",
        "A request that needs more blocks than the pool has is refused.",
        f"{SCHEDULER}.add",
    ),
    ev.RequestRejected: Rule(
        "what fits into the pool may wait",
        "With more blocks, or a shorter prompt, it would have waited.",
        f"{SCHEDULER}.add",
    ),
    ev.QueueReordered: Rule(
        "the queue policy",
        "With queue_policy fcfs the order of arrival would have stayed; lpm takes the longest prefix match first.",
        f"{PLANNER}._admit_waiting",
    ),
    ev.AdmissionFailed: Rule(
        "nobody overtakes the head",
        "With more free blocks, or with more of its prompt cached, it would have been admitted.",
        f"{PLANNER}._admit",
    ),
    ev.RequestAdmitted: Rule(
        "running first, then waiting",
        "Without budget, without room or with max_num_seqs running requests it would have waited.",
        f"{PLANNER}._admit",
    ),
    ev.TokensComputed: Rule(
        "what is found is not computed",
        "What a longer match had found would not have been computed.",
        f"{SCHEDULER}.update",
    ),
    ev.TokensSampled: Rule(
        "the last position gives the next token",
        "A chunk that does not reach the end of its request samples nothing.",
        f"{SCHEDULER}.update",
    ),
    ev.RequestPreempted: Rule(
        "somebody must make room",
        "With more blocks, fewer running requests (max_num_seqs) or shorter outputs nobody would have had to.",
        f"{SCHEDULER}._preempt",
    ),
    ev.RequestFinished: Rule(
        "done at max_tokens or a stop token", "With a larger max_tokens it would have gone on.", f"{SCHEDULER}.update"
    ),
    ev.RequestAborted: Rule("aborts wait for the step's end", "Nobody can undo an abort.", f"{SCHEDULER}.abort"),
    ev.BlocksAdopted: Rule(
        "adopt first, then take",
        "Taken in the other order, making room could evict the very blocks that matched.",
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
        "Freed in the other order, the beginning of a prompt, which others share, would be evicted first.",
        f"{PAGED}.release",
    ),
    ev.BlocksUnpublished: Rule(
        "computed KV only", "Had the step been computed, the blocks could still be found.", f"{HASH}._let_go"
    ),
    ev.BlocksEvicted: Rule(
        "least recently used first",
        "With a larger pool, or had somebody used these blocks meanwhile, others would have gone, or none.",
        f"{POOL}.allocate",
    ),
    ev.NodesEvicted: Rule(
        "leaves first, in the strategy's order",
        "A lock at or below a node keeps it. The strategy gives the order: lru the least recently used first, lfu the "
        "least frequently used.",
        f"{TREE}.evict",
    ),
    ev.CacheReset: Rule(
        "a reset forgets everything", "While a request holds blocks, a reset is refused.", f"{PAGED}.reset"
    ),
    ev.PoolReplaced: Rule(
        "KV lies in blocks of one pool",
        "Had the pool kept its shape, the running requests would have gone on and hits would still be possible.",
        f"{SCHEDULER}.replace_cache",
    ),
    ev.NodeSplit: Rule(
        "a match ends at a node",
        "Had both gone on alike to the end of the node, nothing would be cut.",
        f"{TREE}.match",
    ),
    ev.PathInserted: Rule(
        "what is inserted is refreshed", "Without being used again the path would be evicted earlier.", f"{TREE}.insert"
    ),
    ev.LockMoved: Rule(
        "lock the new, then unlock the old",
        "Unlocked first, the path could be evicted in between.",
        f"{TREE}.lock",
    ),
    ev.DuplicatesFreed: Rule(
        "one copy in the tree",
        "Had it come a step later, it would have found these tokens; a hash chain would keep both copies.",
        f"{RADIX}.publish",
    ),
    ev.BlockTableRewritten: Rule(
        "use the tree's blocks",
        "Left as it was, the table would name freed blocks: a use after free.",
        f"{RADIX}.publish",
    ),
}
AHEAD = Rule(  # of its KV
    "published when scheduled",
    "Safe: the step computes all that it schedules, each layer its KV before any of it is read; a block given up "
    "first can no longer be found. A radix tree waits: it publishes computed KV only.",
    f"{HASH}.publish",
)
IN_THE_TREE: dict[type[ev.Event], Rule] = {
    ev.BlocksPublished: Rule(
        "computed KV only",
        "Until it is published, nobody else can find it. A hash chain publishes earlier, what a step is to compute.",
        f"{RADIX}.publish",
    ),
    ev.BlocksReleased: Rule(
        "what the tree has stays",
        "Blocks that were never published would have gone back to the free queue, and what they held been lost.",
        f"{RADIX}._let_go",
    ),
}


TAKEN_OUT = Rule(  # by a fork; to the pool it is as if a request held them for ever
    "a pool with fewer blocks",
    "Nobody gives them back: they count as in use to the end, and what needs blocks waits or evicts sooner.",
    f"{POOL}.allocate",
)


def rule_of(event: ev.Event, narrator: Narrator) -> Rule:
    """The rule behind an event that the narrator has just taken."""
    if isinstance(event, ev.BlocksAllocated) and event.request == TAKEN_AWAY:
        return TAKEN_OUT
    if isinstance(event, ev.PrefixMatched):
        assert narrator.finding is not None
        return lookup_rule(narrator.finding, narrator.radix, narrator.block_size)
    if isinstance(event, ev.BlocksPublished) and narrator.is_ahead(event):
        return AHEAD
    rule = (narrator.radix and IN_THE_TREE.get(type(event))) or EVENTS[type(event)]
    words = otherwise(event, narrator)
    return rule if words is None else replace(rule, otherwise=words)


def lookup_rule(finding: Finding, radix: bool, block_size: int) -> Rule:
    """The rule by which a lookup found no more."""
    found = finding.explanation
    reason = _reason(finding, radix, block_size)
    if reason == "last_token" and block_size == 1:
        name, words = "one token must be computed", "Nothing: more than all but one token can never be found."
    else:
        name, text = LOOKUPS[reason]
        parts = {
            "request": found.request,
            "other": found.other or finding.ended,
            "step": found.step,
            "begun": "gone on" if found.num_tokens else "begun",
            "unit": "token" if block_size == 1 else "block",
        }
        words = text.format(**parts)
    return Rule(name, words, LOOKUP["radix" if radix else "hash"])


def _reason(finding: Finding, radix: bool, block_size: int) -> str:
    """The key of `LOOKUPS`."""
    reason = finding.explanation.reason
    if finding.ended is not None:
        return "last_generated"
    if finding.waits:
        return "unknown"
    if finding.lost:
        return "lost"
    if differs_inside(finding) and block_size > 1:
        return "ends"
    if radix:
        return {"evicted": "evicted_from_the_tree", "not_computed": "not_computed_in_the_tree"}.get(reason, reason)
    return reason
