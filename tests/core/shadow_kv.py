"""KV memory that stores numbers in place of KV: the oracle of most laws, without a model.

The KV of a position depends only on the weights (hence on the namespace) and on every token up to it. So does this
number: two positions have equal numbers only if their KV may be shared. A block that is handed out again is poisoned,
so that a request that still reads its old content is detected.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from zlib import crc32

from minicache.core import Request

POISON = -1
VOCABULARY = 3


def kv_of(request: Request, tokens: Iterable[int] | None = None) -> list[int]:
    """The right KV of each position of the request's tokens."""
    start = crc32(repr(request.namespace).encode())
    run = request.tokens if tokens is None else tokens
    return list(accumulate(run, lambda kv, token: hash((kv, token)), initial=start))[1:]


def next_token(attended: Sequence[int]) -> int:
    """The token that a model samples after attending to this KV. It depends on every value."""
    return hash(tuple(attended)) % VOCABULARY


def expected_output(request: Request) -> list[int]:
    """The answer that the request must get, with any hits, chunks, preemptions and evictions."""
    tokens = list(request.prompt)
    for _ in range(request.max_tokens):
        tokens.append(next_token(kv_of(request, tokens)))
        if tokens[-1] in request.stop_tokens:
            break
    return tokens[request.num_prompt_tokens :]


class ShadowKV:
    """Slot `(block, offset)` -> the KV in it."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.slots: dict[tuple[int, int], int] = {}

    def _slots(self, table: Sequence[int], start: int, end: int) -> list[tuple[int, int]]:
        return [(table[at // self.block_size], at % self.block_size) for at in range(start, end)]

    def write(self, request: Request, table: Sequence[int], start: int, end: int) -> None:
        self.slots.update(zip(self._slots(table, start, end), kv_of(request)[start:end], strict=True))

    def read(self, table: Sequence[int], end: int) -> list[int]:
        return [self.slots.get(slot, POISON) for slot in self._slots(table, 0, end)]

    def block(self, block: int) -> list[int]:
        """The KV in all slots of a block."""
        return self.read([block], self.block_size)

    def poison(self, blocks: Iterable[int]) -> None:
        for block in blocks:
            self.slots.update({(block, offset): POISON for offset in range(self.block_size)})
