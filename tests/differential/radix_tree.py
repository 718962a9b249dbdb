"""Part `tree`: `RadixTree`, and SGLang's tree.

After every operation lengths and slots found, the whole tree (tokens, slots, locks, hits, priorities, order of
children), sizes, the leaves that can be evicted and the order of accesses and creations are compared; in the end all
is evicted, node by node.
"""

from random import Random
from typing import Any

from minicache.core.eviction import STRATEGIES
from minicache.core.radix_tree import RadixTree
from minicache.core.request import token_array
from tests.differential import sglang
from tests.differential.histories import DONE, Operation, Pair, Part, same, token_runs


class Trees(Pair):
    def __init__(self, settings: dict[str, Any]) -> None:
        sglang.Clock.now = 0.0
        self.size = settings["block_size"]
        self.ours = RadixTree(self.size, settings["strategy"])
        self.slots = sglang.Slots(self.size)
        self.theirs = sglang.tree(self.size, settings["strategy"], self.slots)
        self.locks: list[tuple[Any, Any]] = []
        self.next_block = 1

    def state(self) -> str:
        theirs = sglang.their_nodes(self.theirs, self.size)
        return f"minicache {sglang.our_nodes(self.ours)}\nSGLang    {theirs}"

    def compare(self) -> None:
        sglang.compare_trees(self.ours, self.theirs, self.size)
        self.ours.check([ours for ours, _ in self.locks])

    def insert(self, tokens: list[int], extra: str | None, salt: str | None, priority: int, inserted: int) -> None:
        whole = len(tokens) - len(tokens) % self.size
        blocks = list(range(self.next_block, self.next_block + whole // self.size))
        self.next_block += len(blocks)
        inserted = min(inserted, whole) // self.size * self.size
        done = self.ours.insert(sglang.namespace(extra, salt), token_array(tokens[:whole]), blocks, priority, inserted)
        slots = sglang.slots_of(blocks, self.size) + [0] * (len(tokens) - whole)
        theirs = sglang.insert(self.theirs, tokens, slots, extra, salt, priority, inserted)
        same("tokens that were there", done.num_shared * self.size, theirs)
        DONE["splits"] += done.split is not None

    def match(self, tokens: list[int], extra: str | None, salt: str | None, limit: int | None) -> tuple[Any, Any]:
        ours = self.ours.match(sglang.namespace(extra, salt), token_array(tokens), limit)
        num_tokens, slots, node = sglang.match(self.theirs, tokens, extra, salt, limit)
        same("match", (len(ours.blocks) * self.size, sglang.slots_of(ours.blocks, self.size)), (num_tokens, slots))
        DONE["splits"] += ours.split is not None
        DONE["hit tokens"] += num_tokens
        return ours.node, node

    def lock(self, tokens: list[int], extra: str | None, salt: str | None, limit: int | None) -> None:
        ours, theirs = self.match(tokens, extra, salt, limit)
        before = self.ours.num_evictable
        self.ours.lock(ours)
        delta = self.theirs.inc_lock_ref(theirs).delta
        same("tokens that a lock protects", (self.ours.num_evictable - before) * self.size, delta)
        self.locks.append((ours, theirs))

    def unlock(self, index: int) -> Any:
        if not self.locks:
            return False
        ours, theirs = self.locks.pop(index % len(self.locks))
        self.ours.unlock(ours)
        self.theirs.dec_lock_ref(theirs)
        return True

    def evict(self, num_tokens: int) -> None:
        start = len(self.slots.freed)
        nodes = self.ours.evict(-(-num_tokens // self.size))
        freed = sglang.evict(self.theirs, num_tokens)
        same("evicted, in order", [block for node in nodes for block in node.blocks], self.slots.freed[start:])
        same("evicted tokens", sum(len(node.tokens) for node in nodes), freed)
        DONE["evicted nodes"] += len(nodes)

    def reset(self) -> Any:
        if self.locks:
            return False
        self.ours.clear()
        self.theirs.reset()
        return True

    def end(self) -> None:
        while self.locks:
            self.unlock(0)
        self.compare()
        while self.ours.num_evictable:
            self.evict(1)
            self.compare()


SPACES = [(None, None)] * 3 + [("k1", None), ("k2", None), (None, "s"), ("k1", "s"), (None, "k1"), ("k1", "k2")]
SPACES += [("", None)]


def prompt(random: Random, bases: list[list[int]], settings: dict[str, Any]) -> list[int]:
    base = random.choice(bases)
    length = random.randint(0, 3 * settings["block_size"] + 1)
    tail = [random.randrange(settings["alphabet"]) for _ in range(length)]
    return (base[: random.randint(0, len(base))] + tail) or [0]


def draw(random: Random) -> tuple[dict[str, Any], list[Operation]]:
    size = random.choice([1, 1, 2, 4])
    settings = {
        "block_size": size,
        "strategy": random.choice(list(STRATEGIES)),
        "alphabet": random.choice([1, 2, 2, 3]),
    }
    bases = token_runs(random, settings["alphabet"], 10 * size)
    spaces = SPACES if random.random() < 0.4 else SPACES[:1]
    operations: list[Operation] = []
    for _ in range(random.choice([10, 30, 60])):
        kinds = ["insert", "match", "lock", "unlock", "evict", "reset"]
        kind = random.choices(kinds, [30, 20, 10, 9, 14, 0.7])[0]
        if kind == "insert":
            inserted = random.choice([0, 0, random.randint(0, 8 * size)])
            priority = random.choice([0, 0, 0, 1, 5, -3])
            operations.append((kind, prompt(random, bases, settings), *random.choice(spaces), priority, inserted))
        elif kind in ("match", "lock"):
            tokens = prompt(random, bases, settings)
            limit = random.choice([None, len(tokens) - 1, random.randint(0, len(tokens))])
            operations.append((kind, tokens if random.random() < 0.95 else [], *random.choice(spaces), limit))
        elif kind == "unlock":
            operations.append((kind, random.randrange(100)))
        elif kind == "evict":
            operations.append((kind, random.choice([0, 1, 1, 2, size, random.randint(0, 12 * size), 10**6])))
        else:
            operations.append((kind,))
    return settings, operations


PART = Part("tree", draw, Trees)
