"""The batch of one step: which rows belong to which sequence, and where their KV lies.

Shapes: S sequences, T tokens, M blocks of the longest table. For each sequence

    0 .............. start ............... context
    |  in the cache  |  rows of this step  |
                     |<---- num_rows ----->|
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class SequenceRows:
    """One sequence's part of a batch: rows `[row, row + num_rows)`, which are its positions `[start, context)`."""

    row: int
    num_rows: int
    start: int
    block_table: Tensor  # (blocks of the context,) int64
    first_block: int | None  # where the table is one run of consecutive blocks: the first of them

    @property
    def context(self) -> int:
        return self.start + self.num_rows

    @property
    def rows(self) -> slice:
        return slice(self.row, self.row + self.num_rows)


@dataclass(frozen=True)
class Batch:
    """What attention must know of a step. Tensors are int64 and on the model's device."""

    block_size: int
    positions: Tensor  # (T,)
    slots: Tensor  # (T,) where each row's KV is written: block * block_size + offset
    sequences: tuple[SequenceRows, ...]

    @classmethod
    def build(
        cls,
        chunks: Iterable[tuple[int, int, Sequence[int]]],
        block_size: int,
        device: torch.device | str = "cpu",
    ) -> "Batch":
        """Lay out `(start, num_rows, block_table)` of each sequence one after the other.

        A table may be longer than the context needs, never shorter.
        """
        sequences, positions, slots = [], [], []
        row = 0
        for start, num_rows, table in chunks:
            num_blocks = -(-(start + num_rows) // block_size)
            if num_rows < 1 or start < 0 or len(table) < num_blocks:
                raise ValueError(f"cannot lay out {num_rows} rows from {start} over {len(table)} blocks")
            blocks = torch.tensor(table[:num_blocks], dtype=torch.int64)
            at = torch.arange(start, start + num_rows)
            positions.append(at)
            slots.append(blocks[at // block_size] * block_size + at % block_size)
            sequences.append(SequenceRows(row, num_rows, start, blocks.to(device), run_start(blocks)))
            row += num_rows
        return cls(block_size, torch.cat(positions).to(device), torch.cat(slots).to(device), tuple(sequences))

    @cached_property
    def block_tables(self) -> Tensor:
        """All tables as one tensor `(S, M)`, short ones filled up with the null block 0."""
        return torch.nn.utils.rnn.pad_sequence([s.block_table for s in self.sequences], batch_first=True)


def run_start(blocks: Tensor) -> int | None:
    """The first block if `blocks` are consecutive, else None."""
    first = int(blocks[0])
    consecutive = torch.arange(first, first + len(blocks))
    return first if torch.equal(blocks, consecutive) else None
