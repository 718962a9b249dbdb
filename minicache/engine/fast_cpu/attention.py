"""Paged attention with torch's fused kernel: gather whole blocks, then one call for a group of sequences.

    a batch:   | chunk of A (many rows) | chunk of B | row of C | row of D | row of E |
    groups:      tiles of A               tiles of B   C, D and E together

Reason: `TorchAttention` writes all scores to memory, and calls its kernels once for each sequence. The fused kernel
keeps a tile of scores in the CPU's caches. It reads one head after another, so the KV cache lies head by head.

Gain: a prompt of 2,999 tokens costs 8.0 s instead of 37.7, a step of 8 sequences 86 ms instead of 107
(conditions: `__init__.py`).

Shapes: T tokens of the batch, S sequences of a group, n rows of a tile, c longest context (keys) of a group,
        Hq query heads, Hkv key-value heads, G = Hq / Hkv, D head size, N blocks, B block size.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from minicache.engine.attention import BY_HEAD, Batch, SequenceRows, scatter

ROWS_PER_TILE = 256  # bounds the mask, and lets a tile skip the keys that come after its last row
READ_IN_PLACE = 512  # tokens of context from which on a single row is not worth a copy of its keys
PADDING = 1.5  # how much longer than the shortest the longest context of a group of single rows may be


@dataclass(frozen=True, slots=True)
class Context:
    """Where the keys and values of S sequences lie, in the order of their positions, as whole blocks.

    Masked keys have weight 0, but 0 times NaN is NaN, so they must be neither another sequence's nor uninitialised
    memory. A short table is filled up with the sequence's own first block; `tails` are the slots that may never have
    been written.
    """

    table: Tensor  # (S, M)
    length: int  # c
    first: int | None  # the first block of one sequence whose blocks are consecutive
    mask: Tensor | None  # (S, 1, 1, c): minus infinity after each context, else 0; None for one sequence
    tails: Tensor | None  # those of the S * M * B gathered slots to set to 0; None for one sequence

    @classmethod
    def of(cls, sequences: list[SequenceRows], block_size: int, like: Tensor) -> "Context":
        device = like.device
        longest = max(s.context for s in sequences)
        if len(sequences) == 1:
            return cls(sequences[0].block_table[None], longest, run_start(sequences[0].block_table), None, None)
        width = -(-longest // block_size)
        tables = [s.block_table for s in sequences]
        own = torch.tensor([len(table) for table in tables], device=device)[:, None] * block_size
        table = torch.stack([torch.cat((t, t[:1].expand(width - len(t)))) for t in tables])
        contexts = torch.tensor([s.context for s in sequences], device=device)[:, None]
        positions = torch.arange(width * block_size, device=device)
        hidden = positions >= contexts  # (S, M * B)
        mask = torch.zeros(hidden.shape, dtype=like.dtype, device=device).masked_fill_(hidden, -math.inf)
        unwritten = (positions < own) | (contexts < block_size)  # copies of a first block that is not full have tails
        tails = (hidden & unwritten).flatten().nonzero().flatten()
        return cls(table, longest, None, mask[:, None, None, :longest], tails)


class Reader:
    """Reads keys and values in the order of their positions.

    Copies lie in buffers that later calls reuse: the system would map and clear fresh memory of this size each time.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, Tensor] = {}

    def read(self, name: str, cache: Tensor, context: Context) -> Tensor:
        """`(S, Hkv, c, D)` of `cache (N, B, Hkv, D)`; a view of the cache where one sequence's blocks are consecutive.

        Valid until the next call with the same `name`.
        """
        heads = cache.permute(2, 0, 1, 3)  # (Hkv, N, B, D): as they lie in memory
        if context.first is not None:
            found = heads[:, context.first : context.first + context.table.numel()]
        else:
            found = self._buffer(name, cache, context.table.numel())
            torch.index_select(heads.flatten(2), 1, context.table.flatten(), out=found.flatten(2))
            if context.tails is not None:
                found.flatten(1, 2).index_fill_(1, context.tails, 0)
        sequences = found.unflatten(1, context.table.shape).flatten(2, 3)  # (Hkv, S, M * B, D)
        return sequences[:, :, : context.length].transpose(0, 1)

    def _buffer(self, name: str, cache: Tensor, num_blocks: int) -> Tensor:
        """`(Hkv, num_blocks, B, D)`, uninitialised."""
        _, block_size, kv_heads, head_dim = cache.shape
        size = num_blocks * block_size * kv_heads * head_dim
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < size or buffer.dtype != cache.dtype or buffer.device != cache.device:
            room = 1 << (size - 1).bit_length()
            buffer = self._buffers[name] = torch.empty(room, dtype=cache.dtype, device=cache.device)
        return buffer[:size].view(kv_heads, num_blocks, block_size, head_dim)


class Chunk:
    """Many rows of one sequence, in tiles `(top, bottom, mask)`; without a mask a tile is the plain causal triangle."""

    def __init__(self, sequence: SequenceRows, like: Tensor, block_size: int) -> None:
        self.sequence = sequence
        self.context = Context.of([sequence], block_size, like)
        self.tiles: list[tuple[int, int, Tensor | None]] = [(0, sequence.num_rows, None)]
        if sequence.start > 0:
            tops = range(0, sequence.num_rows, ROWS_PER_TILE)
            ends = [(top, min(sequence.num_rows, top + ROWS_PER_TILE)) for top in tops]
            self.tiles = [(top, bottom, causal_mask(sequence.start, top, bottom, like)) for top, bottom in ends]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, reader: Reader, out: Tensor) -> None:
        keys, values = reader.read("k", k, self.context), reader.read("v", v, self.context)  # (1, Hkv, c, D)
        for top, bottom, mask in self.tiles:
            rows = slice(self.sequence.row + top, self.sequence.row + bottom)
            end = self.sequence.start + bottom
            # The G queries that share a key-value head are torch's batch, so that no key is copied G times.
            grouped = q[rows].unflatten(1, (keys.shape[1], -1)).permute(2, 1, 0, 3)  # (G, Hkv, n, D)
            shared = (len(grouped), -1, -1, -1)
            tile = F.scaled_dot_product_attention(
                grouped,
                keys[:, :, :end].expand(shared),
                values[:, :, :end].expand(shared),
                mask,
                is_causal=mask is None,
            )
            out[rows] = tile.permute(2, 1, 0, 3).flatten(1, 2)  # (n, Hq, D)


class SingleRows:
    """One row each of S sequences of similar length: decodes. Shorter contexts are padded and masked."""

    def __init__(self, sequences: list[SequenceRows], like: Tensor, block_size: int) -> None:
        sequences = sorted(sequences, key=lambda sequence: sequence.row)
        self.context = Context.of(sequences, block_size, like)
        rows = [sequence.row for sequence in sequences]
        side_by_side = rows[-1] - rows[0] == len(rows) - 1
        self.rows = slice(rows[0], rows[-1] + 1) if side_by_side else torch.tensor(rows, device=like.device)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, reader: Reader, out: Tensor) -> None:
        keys, values = reader.read("k", k, self.context), reader.read("v", v, self.context)  # (S, Hkv, c, D)
        grouped = q[self.rows].unflatten(1, (keys.shape[1], -1))  # (S, Hkv, G, D)
        attended = F.scaled_dot_product_attention(grouped, keys, values, self.context.mask)
        out[self.rows] = attended.flatten(1, 2)  # (S, Hq, D)


class FastCpuAttention:
    """`Attention`, fast on a CPU. Not reentrant: it reuses its buffers."""

    kv_order = BY_HEAD  # the fused kernel reads head after head; the keys of consecutive blocks are then one piece
    store = staticmethod(scatter)

    def __init__(self) -> None:
        self._reader = Reader()
        self._batch: Batch | None = None
        self._groups: list[Chunk | SingleRows] = []

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, batch: Batch) -> Tensor:
        if batch is not self._batch:  # the groups and masks of a step are the same in every layer
            self._groups = list(groups(batch, q))
            self._batch = batch
        out = torch.empty_like(q)
        for group in self._groups:
            group.attend(q, k, v, self._reader, out)
        return out


def groups(batch: Batch, like: Tensor) -> Iterator[Chunk | SingleRows]:
    """The sequences that one call attends to together; masks get the dtype and device of `like`."""
    together: list[SequenceRows] = []
    for sequence in sorted(batch.sequences, key=lambda sequence: sequence.context):
        if sequence.num_rows > 1:
            yield Chunk(sequence, like, batch.block_size)
        elif sequence.context >= READ_IN_PLACE and run_start(sequence.block_table) is not None:
            yield SingleRows([sequence], like, batch.block_size)
        else:
            if together and sequence.context > PADDING * together[0].context + batch.block_size:
                yield SingleRows(together, like, batch.block_size)
                together = []
            together.append(sequence)
    if together:
        yield SingleRows(together, like, batch.block_size)


def causal_mask(start: int, top: int, bottom: int, like: Tensor) -> Tensor:
    """`(bottom - top, start + bottom)`: 0 where row i sees key j <= start + i, minus infinity elsewhere."""
    shape = (bottom - top, start + bottom)
    return torch.full(shape, -math.inf, dtype=like.dtype, device=like.device).triu(start + top + 1)


def run_start(blocks: Tensor) -> int | None:
    """The first block if `blocks` are consecutive, else None."""
    first = int(blocks[0])
    consecutive = torch.arange(first, first + len(blocks), device=blocks.device)
    return first if torch.equal(blocks, consecutive) else None
