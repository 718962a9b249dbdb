"""A batch as the tensors that kernels read.

Shapes: S sequences, M blocks of the longest table, P tiles.

    rows of the batch   | . . . . . . . . . . . . | . . | . |
    sequences           |           A             |  B  | C |
    tiles of 5 queries  |  A, 0   |  A, 5   |A, 10|B, 0 |C,0|      P = 5, each (sequence, first query)

Aligned tiles begin at multiples of 5 of a sequence's positions, wherever the step's rows begin:

    positions of A      5 . . . . 10. . . . 15. . . . 20            A has rows for 8 … 19
    aligned tiles       |  A, -3  |  A, 2   |  A, 7   |            a negative first query: the step has no such rows
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from minicache.core.errors import InvalidArgument
from minicache.engine.attention import Batch


@dataclass(frozen=True)
class Layout:
    """Where the sequences of a batch lie. Made once a step, read by the kernels of every layer."""

    batch: Batch
    spans: Tensor  # (S, 3) int32: first row in the batch, number of rows, position of the first row
    tables: Tensor  # (S, M) int64, short ones filled up with block 0
    _tiles: dict[tuple[int, bool], Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: Batch) -> "Layout":
        spans = [(sequence.row, sequence.num_rows, sequence.start) for sequence in batch.sequences]
        tables = torch.nn.utils.rnn.pad_sequence([s.block_table for s in batch.sequences], batch_first=True)
        return cls(batch, torch.tensor(spans, dtype=torch.int32, device=tables.device), tables)

    @property
    def longest_context(self) -> int:
        return max(sequence.context for sequence in self.batch.sequences)

    @property
    def single_rows(self) -> bool:
        """Whether every sequence has one row: only decodes."""
        return len(self.batch.positions) == len(self.batch.sequences)

    def require_single_rows(self) -> None:
        if not self.single_rows:
            raise InvalidArgument("paged_decode takes one row of each sequence: use paged_attention for chunks")

    def tiles(self, num_queries: int, *, aligned: bool = False) -> Tensor:
        """`(P, 2)` int32: each sequence's rows in tiles of `num_queries`, as sequence and first query.

        The tile with the longest context comes first: if it started last, the whole GPU would wait for it.
        """
        kind = num_queries, aligned
        if kind not in self._tiles:
            found = [
                (sequence.start + first, index, first)
                for index, sequence in enumerate(self.batch.sequences)
                for first in range(-(sequence.start % num_queries) if aligned else 0, sequence.num_rows, num_queries)
            ]
            pairs = [(index, first) for _, index, first in sorted(found, reverse=True)]
            self._tiles[kind] = torch.tensor(pairs, dtype=torch.int32, device=self.tables.device)
        return self._tiles[kind]
