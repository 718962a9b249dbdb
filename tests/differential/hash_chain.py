"""Part `cache`: `HashChainCache` and `NoCache`, and vLLM's `KVCacheManager`.

After every operation the hit, the block tables, reference counts, the free queue in order, each block's hash, the
copies under each hash in order, usage, room and events are compared. One deviation is played by both sides: what was
published and never computed is unpublished at its release, so vLLM is told to evict these blocks just before it frees.
"""

import os
from random import Random
from typing import Any

import xxhash

from minicache.core import Adapter, EventStream, HashChainCache, Namespace, NoCache, Request, block_hash
from minicache.core import events as ev
from tests.differential import vllm
from tests.differential.histories import DONE, Operation, Pair, Part, same, token_runs


def weak(parts: Any) -> bytes:
    """Five hashes in all: blocks of different content share a key everywhere."""
    if isinstance(parts, str):
        return b"r"
    parent, tokens, keys = parts
    return bytes([(parent[0] * 7 + sum(tokens) * 3 + len(repr(keys))) % 5 + 1])


HASHES: dict[str, tuple[Any, Any]] = {  # ours, theirs
    "sha256_cbor": (block_hash.sha256_cbor, vllm.sha256_cbor),
    "xxhash_cbor": (block_hash.xxhash_cbor(xxhash.xxh3_128_digest), vllm.xxhash_cbor),
    "weak": (lambda parent, tokens, keys=None: weak((parent, tuple(tokens), keys)), weak),
}
READS: list[dict[str, Any]] = [{}, {"prompt_logprobs": 0}, {"skip_cache_read": True}, {"prompt_logprobs": 3}]


class Caches(Pair):
    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings, self.size = settings, settings["block_size"]
        ours, self.their_hash = HASHES[settings["hash"]]
        seed, blocks = settings["seed"], settings["num_blocks"]
        if seed is None:
            os.environ.pop("PYTHONHASHSEED", None)
        else:
            os.environ["PYTHONHASHSEED"] = seed
        caching = settings["caching"]
        self.theirs = vllm.cache_manager(blocks, self.size, self.their_hash, caching, settings["watermark"])
        self.events: list[ev.Event] = []
        stream = EventStream(self.events.append)
        self.ours: Any
        if caching:
            self.ours = HashChainCache(blocks, self.size, block_hash=ours, root_seed=seed, events=stream)
            if settings["hash"] == "weak":
                self.ours.root_hash = bytes(vllm.utils.NONE_HASH)
            same("root of the chains", self.ours.root_hash, bytes(vllm.utils.NONE_HASH))
        else:
            self.ours = NoCache(blocks, self.size, events=stream)
        self.requests: dict[str, tuple[Request, vllm.CacheRequest]] = {}
        self.pinned: list[list[int]] = []
        self.late: dict[str, int] = {}  # tokens of a request that are scheduled and not computed yet
        self.in_order = True  # whether the events of this operation come in the same order on both sides

    # Both states

    def our_state(self) -> dict[str, Any]:
        pool = self.ours.pool
        return {
            "queue": list(pool.free_queue),
            "references": {block.id: block.ref_count for block in pool.blocks[1:]},
            "hashes": {block.id: block.hash for block in pool.blocks if block.hash is not None},
            "copies": {hash: list(blocks) for hash, blocks in pool.copies().items()},
            "tables": {id: list(ours.block_table) for id, (ours, _) in self.requests.items() if ours.block_table},
            "usage": pool.usage,
            "free": self.ours.num_free,
        }

    def their_state(self) -> dict[str, Any]:
        pool = self.theirs.block_pool
        copies = {}
        for key, blocks in pool.cached_block_hash_to_block._cache.items():
            copies[bytes(key[:-4])] = list(blocks) if isinstance(blocks, dict) else [blocks.block_id]
        return {
            "queue": vllm.free_queue(self.theirs),
            "references": {block.block_id: block.ref_cnt for block in pool.blocks[1:]},
            "hashes": {block.block_id: bytes(block.block_hash[:-4]) for block in pool.blocks if block.block_hash},
            "copies": copies,
            "tables": {id: table for id in self.requests if (table := self.theirs.get_block_ids(id)[0])},
            "usage": self.theirs.usage,
            "free": pool.get_num_free_blocks(),
        }

    def state(self) -> str:
        return f"minicache {self.our_state()}\nvLLM      {self.their_state()}"

    def our_events(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for event in self.events:
            if isinstance(event, ev.BlocksPublished):
                found.append(("stored", list(event.hashes), event.parent, list(event.tokens)))
            elif isinstance(event, ev.BlocksEvicted):
                found += [("removed", hash) for hash in event.hashes]
            elif isinstance(event, ev.CacheReset):
                found.append(("cleared",))
        self.events.clear()
        return found

    def their_events(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for event in self.theirs.take_events():
            if type(event).__name__ == "BlockStored":
                parent = event.parent_block_hash
                hashes = [bytes(hash) for hash in event.block_hashes]
                found.append(("stored", hashes, parent and bytes(parent), list(event.token_ids)))
                DONE["published blocks"] += len(hashes)
            elif type(event).__name__ == "BlockRemoved":
                found += [("removed", bytes(hash)) for hash in event.block_hashes]
                DONE["evicted blocks"] += len(event.block_hashes)
            else:
                found.append(("cleared",))
        return found

    def compare(self) -> None:
        ours, theirs = self.our_state(), self.their_state()
        for what, value in ours.items():
            same(what, value, theirs[what])
        our_events, their_events = self.our_events(), self.their_events()
        if self.in_order and self.settings["caching"]:
            same("events", our_events, their_events)
        self.in_order = True
        # A pinned block has no holder, and weak hashes put a block twice into a table: `check` knows neither.
        if self.settings["check"] and not self.pinned:
            self.ours.check()

    # Operations

    def new(self, id: str, tokens: list[int], salt: str | None, adapter: tuple[str, str] | None, reads: int) -> Any:
        if id in self.requests:
            return False
        namespace = Namespace(adapter=Adapter(*adapter) if adapter else None, salt=salt)
        ours = Request(id, tokens, 10**6, namespace=namespace, **READS[reads])
        lora = vllm.adapter(*adapter) if adapter else None
        theirs = vllm.CacheRequest(id, tokens, self.size, self.their_hash, salt=salt, adapter=lora, skips=reads > 0)
        self.requests[id] = ours, theirs
        if self.settings["caching"]:
            same("hashes of a prompt", self.ours.hashes(ours), [bytes(hash) for hash in theirs.block_hashes])
        return True

    def _lookup(self, id: str) -> tuple[Any, Any]:
        ours, theirs = self.requests[id]
        match = self.ours.lookup(ours)
        blocks, num_tokens, _ = self.theirs.get_computed_blocks(theirs)
        found = [block.block_id for block in blocks.blocks[0]]
        same("hit", (match.num_tokens, list(match.blocks)), (num_tokens, found))
        DONE["hits"] += num_tokens > 0
        DONE["hit tokens"] += num_tokens
        return match, blocks

    def probe(self, id: str) -> Any:
        if id not in self.requests:
            return False
        before = self.our_state()
        self._lookup(id)
        same("state after a lookup", self.our_state(), before)
        return True

    def admit(self, id: str, chunk: int, ahead: int, whole: bool, others: bool, late: bool) -> Any:
        """The first `chunk` missing tokens (0: all), and blocks for `ahead` tokens more. `others` run already, so that
        the watermark counts."""
        if id not in self.requests or id in self.late:
            return False
        ours, theirs = self.requests[id]
        if ours.block_table or ours.num_computed_tokens:
            return False
        match, blocks = self._lookup(id)
        missing = ours.num_tokens - match.num_tokens
        count = min(chunk, missing) if chunk else missing
        mark = int(self.settings["watermark"] * self.settings["num_blocks"]) if others else 0
        before = self.our_state()
        demands = {count + ahead} | ({missing} if whole else set())
        fits = all(self.ours.demand(ours, match, number) + mark <= self.ours.num_free for number in demands)
        fits = fits and self.ours.allocate(ours, match, count + ahead)
        taken = self.theirs.allocate_slots(
            theirs,
            count,
            match.num_tokens,
            blocks,
            num_lookahead_tokens=ahead,
            full_sequence_must_fit=whole,
            has_scheduled_reqs=others,
        )
        same("admission", fits, taken is not None)
        if not fits:
            DONE["refusals"] += 1
            same("state after a refusal", self.our_state(), before)
            return True
        theirs.num_computed_tokens, theirs.status = match.num_tokens, vllm.RequestStatus.RUNNING
        return self._publish(id, count, late)

    def _publish(self, id: str, count: int, late: bool) -> bool:
        ours, _ = self.requests[id]
        self.ours.publish(ours, ours.num_computed_tokens + count)
        if late:
            self.late[id] = count
        else:
            self._advance(id, count)
        return True

    def _advance(self, id: str, count: int) -> None:
        ours, theirs = self.requests[id]
        end = min(ours.num_computed_tokens + count, ours.num_tokens)  # drafts that were not accepted are taken back
        ours.num_computed_tokens = theirs.num_computed_tokens = end

    def compute(self, id: str) -> Any:
        if id not in self.late:
            return False
        self._advance(id, self.late.pop(id))
        return True

    def chunk(self, id: str, count: int, ahead: int, late: bool) -> Any:
        """The next `count` tokens of a running request; more than are missing are drafts."""
        if id not in self.requests or not self.requests[id][0].block_table or id in self.late:
            return False
        ours, theirs = self.requests[id]
        before = self.our_state()
        fits = self.ours.allocate(ours, None, count + ahead)
        same("chunk", fits, self.theirs.allocate_slots(theirs, count, num_lookahead_tokens=ahead) is not None)
        if not fits:
            DONE["refusals"] += 1
            same("state after a refusal", self.our_state(), before)
            return True
        return self._publish(id, count, late)

    def append(self, id: str, *tokens: int) -> Any:
        if id not in self.requests:
            return False
        ours, theirs = self.requests[id]
        for token in tokens:
            ours.append(token)
        theirs.append(*tokens)
        return True

    def _give_back(self, id: str) -> None:
        ours, theirs = self.requests[id]
        if self.late.pop(id, None):
            manager = self.theirs.coordinator.single_type_managers[0]
            table, end = manager.req_to_blocks[id], manager.num_cached_block.get(id, 0)
            uncomputed = table[ours.num_computed_tokens // self.size : end]
            if gone := {block.block_id for block in uncomputed if block.block_hash}:
                DONE["unpublished blocks"] += len(gone)
                self.theirs.evict_blocks(gone)
        self.in_order = False
        self.ours.release(ours)
        self.theirs.free(theirs)

    def free(self, id: str) -> Any:
        if id not in self.requests:
            return False
        self._give_back(id)
        del self.requests[id]
        return True

    def preempt(self, id: str) -> Any:
        if id not in self.requests or not self.requests[id][0].block_table:
            return False
        self._give_back(id)
        ours, theirs = self.requests[id]
        ours.num_computed_tokens = theirs.num_computed_tokens = 0
        theirs.status = vllm.RequestStatus.PREEMPTED
        theirs.num_preemptions += 1
        return True

    def reset(self) -> Any:
        if self.pinned:
            return False
        same("reset", self.ours.reset(), self.theirs.reset_prefix_cache())
        return True

    def evict(self, count: int) -> Any:
        """The first `count` findable blocks of the free queue."""
        pool = self.theirs.block_pool
        first = [block for block in vllm.free_queue(self.theirs) if pool.blocks[block].block_hash][:count]
        done = self.ours.evict(count)
        for block in first:  # one after the other: the events of a set come in the order of the set
            self.theirs.evict_blocks({block})
        if self.settings["caching"]:
            same("evicted", done, len(first))
        return True

    def unpublish(self, index: int) -> Any:
        """Make any findable block unfindable, even one that is held, as vLLM's connectors do."""
        findable = sorted(block.block_id for block in self.theirs.block_pool.blocks if block.block_hash)
        if not findable:
            return False
        block = findable[index % len(findable)]
        self.in_order = False
        self.ours.pool.unpublish(block)
        self.ours._end_matches()
        self.theirs.evict_blocks({block})
        return True

    def pin(self, id: str) -> Any:
        """Hold what a lookup finds, without a request."""
        if id not in self.requests or self.requests[id][0].block_table:
            return False
        match, blocks = self._lookup(id)
        if not match.num_tokens:
            return False
        self.ours.pool.touch(match.blocks)
        self.ours._end_matches()
        self.theirs.block_pool.touch(blocks.blocks[0])
        self.pinned.append(list(match.blocks))
        return True

    def unpin(self, index: int, order: int) -> Any:
        """Give pinned blocks back, in any order."""
        if not self.pinned:
            return False
        blocks = self.pinned.pop(index % len(self.pinned))
        Random(order).shuffle(blocks)
        self.ours.pool.free(blocks)
        self.ours._end_matches()
        self.theirs.block_pool.free_blocks([self.theirs.block_pool.blocks[block] for block in blocks])
        return True


WIDE = [23, 24, 255, 256, 65535, 65536, 151643, 2**32, 2**40, 2**63]
SALTS = [None, "", "a", "n1", "tenant-ü", "x" * 30]
ADAPTERS = [None, None, ("n1", "/p"), ("a", "/p"), ("n1", "/q" + "y" * 300)]


def _prompt(random: Random, bases: list[list[int]], settings: dict[str, Any]) -> list[int]:
    base = random.choice(bases)
    tail = [random.randrange(settings["alphabet"]) for _ in range(random.randint(0, 3 * settings["block_size"]))]
    tokens = (base[: random.randint(0, len(base))] + tail) or [0]
    if random.random() < 0.05:
        tokens[random.randrange(len(tokens))] = random.choice(WIDE)
    return tokens


def draw(random: Random) -> tuple[dict[str, Any], list[Operation]]:
    hash = random.choice(["sha256_cbor"] * 3 + ["xxhash_cbor", "weak"])
    is_weak = hash == "weak"
    seeded = not is_weak and (hash == "xxhash_cbor" or random.random() < 0.3)
    size, num_blocks = random.choice([1, 2, 3, 4, 16]), random.choice([2, 3, 4, 5, 6, 8, 11, 16, 24, 40])
    settings = {
        "block_size": size,
        "num_blocks": num_blocks,
        "hash": hash,
        "seed": random.choice(["0", "random", "42", "sé"]) if seeded else None,
        "caching": random.random() < 0.93,
        "watermark": random.choice([0.0, 0.0, 0.1, 0.2, 0.34]),
        "alphabet": random.choice([1, 2, 2, 3, 50]),
        "check": not is_weak and random.random() < 0.6,
    }
    late, spaces = random.random() < 0.5, random.random() < 0.3
    longest = max(1, min(num_blocks, 12)) * size + size
    alphabet = settings["alphabet"]
    bases = token_runs(random, alphabet, longest)
    weights = {"new": 14, "admit": 16, "chunk": 14, "append": 14, "free": 10, "preempt": 5, "reset": 1, "evict": 2}
    weights |= {"probe": 6, "compute": 12 * late}
    if settings["caching"]:
        weights |= {"pin": 2, "unpin": 3, "unpublish": 3 * (not settings["check"])}
    live: list[str] = []
    operations: list[Operation] = []
    for number in range(random.choice([15, 40, 80])):
        kind = random.choices(list(weights), list(weights.values()))[0]
        if kind == "new" or not live:
            id = f"r{number}"
            live.append(id)
            salt = random.choice(SALTS) if spaces else None
            adapter = random.choice(ADAPTERS) if spaces else None
            reads = random.choice([0] * 12 + [1, 2, 3])
            operations.append(("new", id, _prompt(random, bases, settings), salt, adapter, reads))
            if random.random() < 0.6:
                operations.append(("admit", id, 0, 0, False, False, False))
            continue
        id = random.choice(live)
        if kind == "admit":
            chunk, ahead = random.choice([0, 0, random.randint(1, 2 * size)]), random.choice([0] * 5 + [1, 2, size])
            flags = random.random() < 0.5, random.random() < 0.5, late and random.random() < 0.6
            operations.append(("admit", id, chunk, ahead, *flags))
        elif kind == "chunk":
            count = random.choice([1, 1, 1, random.randint(1, 3 * size)])
            operations.append(("chunk", id, count, random.choice([0] * 5 + [1, size]), late and random.random() < 0.5))
        elif kind == "append":
            tokens = [random.randrange(alphabet) for _ in range(random.choice([1, 1, 1, random.randint(1, 2 * size)]))]
            operations.append(("append", id, *tokens))
            if random.random() < 0.5:
                operations.append(("chunk", id, len(tokens), 0, False))
        elif kind == "free":
            live.remove(id)
            operations.append(("free", id))
        elif kind in ("preempt", "compute", "probe", "pin"):
            operations.append((kind, id))
        elif kind == "evict":
            operations.append(("evict", random.randint(0, num_blocks)))
        elif kind == "unpublish":
            operations.append(("unpublish", random.randrange(num_blocks)))
        elif kind == "unpin":
            operations.append(("unpin", random.randrange(5), random.randrange(1000)))
        else:
            operations.append((kind,))
    return settings, operations


PART = Part("cache", draw, Caches)
