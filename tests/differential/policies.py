"""Part `policies`: `lpm` and `fcfs-retouch`, and SGLang's `SchedulePolicy`, over caches with the same content.

The order of the queue and the whole cache are compared after every pass. One deviation is played by both sides: our
policies look a request up without its last token, so SGLang is given the same limit.
"""

from random import Random
from typing import Any

from minicache.core.queue_policy import policy_named
from tests.differential.histories import DONE, Operation, Part, same
from tests.differential.radix_cache import RadixCaches


class Policies(RadixCaches):
    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.our_policy = policy_named(settings["policy"], self.ours)
        self.their_policy = self.both.queue_policy(settings["policy"], settings["strategy"])

    def order(self, *ids: str) -> Any:
        waiting = [id for id in ids if id in self.requests and not self.requests[id][0].block_table]
        if not waiting:
            return False
        ours, theirs = [self.requests[id][0] for id in waiting], [self.requests[id][1] for id in waiting]
        self.our_policy(ours, self.ours)
        self.both.order(self.their_policy, theirs)
        same("order", [request.id for request in ours], [request.rid for request in theirs])
        DONE["passes"] += 1
        DONE["reordered"] += [request.id for request in ours] != waiting
        return True

    def end(self) -> None:
        """The requests that wait are not admitted."""


def draw(random: Random) -> tuple[dict[str, Any], list[Operation]]:
    settings = {
        "block_size": random.choice([1, 1, 1, 3, 16, 64]),
        "num_blocks": 400,
        "strategy": random.choice(["lru", "lru", "lfu", "fifo"]),
        "policy": random.choice(["lpm", "lpm", "fcfs-retouch"]),
    }
    bases = [[random.randrange(9) for _ in range(random.randint(40, 120))] for _ in range(random.randint(1, 3))]
    waiting: list[str] = []
    operations: list[Operation] = []
    for number in range(random.randint(3, 14)):
        base, id = random.choice(bases), f"r{number}"
        is_cached = random.random() < 0.3
        shortest = random.choice([1, 34, len(base)]) if is_cached else 28
        tokens = base[: random.randint(min(shortest, len(base)), len(base))]
        tokens = tokens + [random.randrange(9) for _ in range(random.choice([0, 1, 3, 40]))]
        operations.append(("new", id, tokens, None, None, 0, None))
        if is_cached:
            operations += [("admit", id, 0), ("publish", id), ("finish", id)]
        else:
            waiting.append(id)
        if random.random() < 0.3:
            operations.append(("order", *waiting))
        if random.random() < 0.2:
            operations.append(("evict", random.randint(1, 30)))
    if random.random() < 0.04:  # more than lpm ranks
        for number in range(129 - len(waiting)):
            waiting.append(f"s{number}")
            operations.append(("new", waiting[-1], [*bases[0][:28], number], None, None, 0, None))
    passes = random.choice([1, 1, 3, 2 if settings["policy"] == "lpm" else 70])
    operations += [("order", *waiting)] * passes
    operations.append(("evict", random.randint(1, 100)))
    return settings, operations


PART = Part("policies", draw, Policies)
