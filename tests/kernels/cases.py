"""Small batches over a pool in which whatever no sequence holds is NaN: a read of it shows in the result."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from minicache.engine.attention import Batch
from minicache.engine.kernels.layout import Layout
from minicache.engine.kernels.reference import ReferenceAttention

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}


@dataclass(frozen=True)
class Case:
    q: Tensor
    k_cache: Tensor
    v_cache: Tensor
    layout: Layout

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor, Layout]:
        return self.q, self.k_cache, self.v_cache, self.layout

    def expected(self) -> Tensor:
        """By the definition, in float64 and then rounded."""
        return ReferenceAttention()(self.q, self.k_cache, self.v_cache, self.layout.batch)

    def require_close(self, found: Tensor) -> None:
        assert found.dtype == self.q.dtype
        tolerance = TOLERANCE[found.dtype]
        torch.testing.assert_close(found.double(), self.expected().double(), rtol=tolerance, atol=tolerance)

    def with_unused_table_entries(self, block: int) -> "Case":
        """The same, with `block` where a short table is filled up, and in one column more for all."""
        contexts = torch.tensor([sequence.context for sequence in self.layout.batch.sequences])
        tables = torch.nn.functional.pad(self.layout.tables, (0, 1))
        unused = torch.arange(tables.shape[1]) * self.layout.batch.block_size >= contexts[:, None]
        assert unused.any(dim=1).all()
        return replace(self, layout=replace(self.layout, tables=tables.masked_fill(unused, block)))


def make(
    chunks: Sequence[tuple[int, int]],
    block_size: int,
    dtype: torch.dtype = torch.float32,
    *,
    kv_heads: int = 1,
    group: int = 2,
    head_dim: int = 32,
    shared_blocks: int = 0,
    seed: int = 0,
) -> Case:
    """`(start, rows)` of each sequence. The first `shared_blocks` blocks of all sequences are the same ones."""
    generator = torch.Generator().manual_seed(seed)

    def noise(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    needs = [-(-(start + rows) // block_size) for start, rows in chunks]
    num_blocks = sum(needs) + 2  # and one more that no request holds
    free = (torch.randperm(num_blocks - 1, generator=generator) + 1).tolist()
    shared = [free.pop() for _ in range(shared_blocks)]
    tables = [[*shared, *(free.pop() for _ in range(need - shared_blocks))] for need in needs]
    batch = Batch.build([(*chunk, table) for chunk, table in zip(chunks, tables, strict=True)], block_size)
    k_cache, v_cache = (torch.full((num_blocks, block_size, kv_heads, head_dim), torch.nan, dtype=dtype) for _ in "kv")
    for sequence in batch.sequences:
        positions = torch.arange(sequence.context)
        at = sequence.block_table[positions // block_size], positions % block_size
        for cache in (k_cache, v_cache):
            cache[at] = noise(sequence.context, kv_heads, head_dim)
    return Case(noise(len(batch.positions), kv_heads * group, head_dim), k_cache, v_cache, Layout.of(batch))


def lengths_around(block_size: int) -> list[int]:
    """1, a block less one, a block and one more."""
    return sorted({length for length in (1, block_size - 1, block_size, block_size + 1) if length > 0})
