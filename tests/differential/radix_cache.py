"""Part `radix`: `RadixCache`, and SGLang's requests over its tree: admission, chunks, checkpoints, release, eviction.

After every operation what `radix_tree.py` compares, and the blocks of each request, the free blocks and the room.
"""

from random import Random
from typing import Any

from minicache.core import Request
from minicache.core.eviction import STRATEGIES
from tests.differential import sglang
from tests.differential.histories import DONE, Operation, Pair, Part, same, token_runs
from tests.differential.radix_tree import SPACES, prompt

ENDLESS = 10**6  # max_tokens: no request ends by itself


class RadixCaches(Pair):
    def __init__(self, settings: dict[str, Any]) -> None:
        self.size, self.num_blocks = settings["block_size"], settings["num_blocks"]
        self.both = sglang.Caches(self.num_blocks, self.size, settings["strategy"])
        self.ours, self.requests = self.both.ours, self.both.requests

    def state(self) -> str:
        return self.both.state()

    def compare(self) -> None:
        self.both.compare()

    def new(
        self, id: str, tokens: list[int], extra: str | None, salt: str | None, priority: int, logprobs: int | None
    ) -> Any:
        if id in self.requests:
            return False
        space = sglang.namespace(extra, salt)
        ours = Request(id, tokens, ENDLESS, namespace=space, priority=priority, prompt_logprobs=logprobs)
        self.requests[id] = ours, sglang.request(id, tokens, extra, salt, priority, logprobs, ENDLESS)
        return True

    def _lookup(self, id: str) -> Any:
        ours, theirs = self.requests[id]
        match = self.ours.lookup(ours)
        theirs.init_next_round_input(self.both.theirs, cow_mamba=False)
        slots = self.both.theirs.path_device_indices(theirs.last_node).tolist()
        same("hit", (match.num_tokens, sglang.slots_of(match.blocks, self.size)), (theirs.prefix_len, slots))
        DONE["hit tokens"] += match.num_tokens
        return match

    def look(self, id: str) -> Any:
        if id not in self.requests or self.requests[id][0].block_table:
            return False
        self._lookup(id)
        return True

    def _fits(self, num_fresh: int) -> bool:
        """Whether SGLang can make room for that many blocks; if it can, it does."""
        both = self.both
        if both.slots.available_size() + both.theirs.evictable_size() < num_fresh * self.size:
            return False
        return both.make_room(num_fresh * self.size)

    def admit(self, id: str, chunk: int) -> Any:
        """The first `chunk` missing tokens (0: all)."""
        if id not in self.requests or self.requests[id][0].block_table or not self.both.rows.idle:
            return False
        ours, theirs = self.requests[id]
        match = self._lookup(id)
        missing = ours.num_tokens - match.num_tokens
        count = min(chunk, missing) if chunk else missing
        fits = self.ours.allocate(ours, match, count)
        lock = self.both.theirs.lock(theirs.last_node)
        end = match.num_tokens + count
        same("admission", fits, self._fits(-(-end // self.size) - len(match.blocks)))
        if not fits:
            DONE["refusals"] += 1
            self.both.theirs.unlock(lock)
            return True
        theirs.lock = lock
        self.both.start(id)
        self.both.take(id, ours.block_table[len(match.blocks) :], end)
        self._compute(id, count)
        return True

    def _compute(self, id: str, count: int) -> None:
        ours, theirs = self.requests[id]
        ours.num_computed_tokens += count
        theirs.kv.kv_committed_len = theirs.extend_end = ours.num_computed_tokens

    def chunk(self, id: str, count: int) -> Any:
        if id not in self.requests or not self.requests[id][0].block_table:
            return False
        ours, _ = self.requests[id]
        count = min(count, ours.num_tokens - ours.num_computed_tokens)
        if count < 1:
            return False
        held, end = len(ours.block_table), ours.num_computed_tokens + count
        fits = self.ours.allocate(ours, None, count)
        same("chunk", fits, self._fits(max(0, -(-end // self.size) - held)))
        if fits:
            self.both.take(id, ours.block_table[held:], end)
            self._compute(id, count)
        else:
            DONE["refusals"] += 1
        return True

    def publish(self, id: str) -> Any:
        if id not in self.requests or not self.requests[id][0].block_table:
            return False
        ours, _ = self.requests[id]
        empty = len(self.ours.pool.free_queue)
        self.ours.publish(ours, ours.num_computed_tokens)
        DONE["duplicates"] += len(self.ours.pool.free_queue) - empty
        self.both.publish(id)
        return True

    def append(self, id: str, *tokens: int) -> Any:
        if id not in self.requests:
            return False
        ours, theirs = self.requests[id]
        if not ours.block_table or ours.num_computed_tokens < ours.num_tokens:
            return False
        for token in tokens:
            ours.append(token)
            theirs.output_ids.append(token)
        return True

    def _give_back(self, id: str, publishes: bool) -> None:
        ours, _ = self.requests[id]
        if publishes:
            self.ours.publish(ours, ours.num_computed_tokens)
        self.ours.release(ours)
        self.both.release(id, publishes)

    def finish(self, id: str) -> Any:
        if id not in self.requests or not self.requests[id][0].block_table:
            return False
        self.requests[id][1].finished_reason = "length"
        self._give_back(id, publishes=True)
        del self.requests[id]
        return True

    def abort(self, id: str) -> Any:
        if id not in self.requests:
            return False
        self._give_back(id, publishes=False)
        del self.requests[id]
        return True

    def retract(self, id: str) -> Any:
        if id not in self.requests or not self.requests[id][0].block_table:
            return False
        self._give_back(id, publishes=False)
        ours, theirs = self.requests[id]
        ours.num_computed_tokens = 0
        theirs.reset_for_retract()
        theirs.kv.kv_committed_len = 0
        DONE["retractions"] += 1
        return True

    def evict(self, num_blocks: int) -> None:
        start, before = len(self.both.slots.freed), set(self.ours.pool.free_queue)
        done = self.ours.evict(num_blocks)
        same("evicted tokens", done * self.size, sglang.evict(self.both.theirs, num_blocks * self.size))
        same("evicted", set(self.ours.pool.free_queue) - before, set(self.both.slots.freed[start:]))
        DONE["evicted blocks"] += done

    def reset(self) -> None:
        holds = any(ours.block_table for ours, _ in self.requests.values())
        same("reset", self.ours.reset(), not holds)
        if not holds:
            self.both.theirs.reset()
            self.both.slots.free_pages = set(range(1, self.num_blocks))

    def end(self) -> None:
        for id in list(self.requests):
            if not self.finish(id):
                self.abort(id)
            self.compare()
        while self.ours.tree.num_evictable:
            self.evict(1)
            self.compare()


def draw(random: Random) -> tuple[dict[str, Any], list[Operation]]:
    size = random.choice([1, 1, 2, 4])
    settings = {
        "block_size": size,
        "num_blocks": random.choice([4, 6, 10, 16, 30, 60]),
        "strategy": random.choice(list(STRATEGIES)),
        "alphabet": random.choice([1, 2, 2, 3]),
    }
    longest = max(1, min(settings["num_blocks"], 12)) * size
    bases = token_runs(random, settings["alphabet"], longest)
    spaces = SPACES if random.random() < 0.4 else SPACES[:1]
    weights = {"new": 14, "admit": 16, "chunk": 12, "append": 12, "publish": 14, "finish": 8, "abort": 2, "retract": 3}
    weights |= {"evict": 4, "reset": 0.6, "look": 6}
    live: list[str] = []
    operations: list[Operation] = []
    for number in range(random.choice([15, 40, 80])):
        kind = random.choices(list(weights), list(weights.values()))[0]
        if kind == "new" or not live:
            id = f"r{number}"
            live.append(id)
            logprobs = random.choice([None] * 12 + [0, random.randint(0, 2 * size)])
            priority = random.choice([0, 0, 1, 5, -3])
            operations.append(("new", id, prompt(random, bases, settings), *random.choice(spaces), priority, logprobs))
            if random.random() < 0.6:
                operations.append(("admit", id, 0))
            continue
        id = random.choice(live)
        if kind == "admit":
            operations.append(("admit", id, random.choice([0, 0, random.randint(1, 2 * size)])))
        elif kind == "chunk":
            operations.append(("chunk", id, random.choice([1, 1, random.randint(1, 3 * size)])))
        elif kind == "append":
            tokens = [random.randrange(settings["alphabet"])]
            operations += [("append", id, *tokens), ("chunk", id, 1)][: random.choice([1, 2, 2])]
        elif kind in ("finish", "abort"):
            live.remove(id)
            operations.append((kind, id))
        elif kind == "evict":
            operations.append((kind, random.randint(0, settings["num_blocks"])))
        elif kind == "reset":
            operations.append((kind,))
        else:
            operations.append((kind, id))
    return settings, operations


PART = Part("radix", draw, RadixCaches)
