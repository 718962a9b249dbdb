"""Backends against the definition, over batches of any mix of prompts, chunks and decodes, with shared blocks."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minicache.core.errors import InvalidArgument
from minicache.engine.attention import BY_BLOCK, BY_HEAD, Batch
from minicache.engine.backends import BACKENDS, make_backend
from minicache.engine.fast_cpu import attention as fast_cpu

KV_HEADS, GROUP, HEAD_DIM = 2, 3, 4


@st.composite
def batches(draw: st.DrawFn) -> tuple[Batch, int]:
    """Sequences over one pool, their tables shuffled or in runs, some sharing first blocks; and the pool's size."""
    block_size = draw(st.sampled_from([1, 4, 16]))
    lengths = draw(
        st.lists(
            st.tuples(st.integers(0, 3 * block_size + 2), st.one_of(st.just(1), st.integers(1, 2 * block_size + 1))),
            min_size=1,
            max_size=6,
        )
    )
    needs = [-(-(start + rows) // block_size) for start, rows in lengths]
    num_blocks = sum(needs) + 1
    free = list(range(1, num_blocks))
    if draw(st.booleans()):
        free = draw(st.permutations(free))
    tables: list[list[int]] = []
    for (start, _), need in zip(lengths, needs, strict=True):
        donor = draw(st.sampled_from(tables)) if tables and draw(st.booleans()) else []
        shared = min(start // block_size, len(donor))  # only blocks that lie before what this sequence writes
        tables.append([*donor[:shared], *(free.pop(0) for _ in range(need - shared))])
    chunks = [(start, rows, table) for (start, rows), table in zip(lengths, tables, strict=True)]
    return Batch.build(chunks, block_size), num_blocks


def tensors(
    batch: Batch, num_blocks: int, dtype: torch.dtype = torch.float64, order: tuple[int, ...] = BY_HEAD
) -> tuple[torch.Tensor, ...]:
    """Queries, and a cache in which whatever no sequence holds is NaN. `order` of its dimensions in memory."""
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(len(batch.positions), KV_HEADS * GROUP, HEAD_DIM, generator=generator, dtype=dtype)
    shape = (num_blocks, batch.block_size, KV_HEADS, HEAD_DIM)
    k, v = (torch.empty_permuted(shape, order, dtype=dtype).fill_(torch.nan) for _ in range(2))
    for sequence in batch.sequences:
        for position in range(sequence.context):
            block, offset = int(sequence.block_table[position // batch.block_size]), position % batch.block_size
            for cache in (k, v):
                cache[block, offset] = torch.randn(KV_HEADS, HEAD_DIM, generator=generator, dtype=dtype)
    return q, k, v


@given(
    batches(),
    st.sampled_from(sorted(BACKENDS.keys() - {"reference", "triton"})),
    st.booleans(),
    st.sampled_from([BY_BLOCK, BY_HEAD]),
)
def test_backends_equal_the_definition(
    drawn: tuple[Batch, int], backend: str, tiny_limits: bool, order: tuple[int, ...]
) -> None:
    batch, num_blocks = drawn
    q, k, v = tensors(batch, num_blocks, order=order)
    expected = make_backend("reference").attention(q, k, v, batch)
    before = k.clone(), v.clone()
    with pytest.MonkeyPatch.context() as patch:
        if tiny_limits:  # reach every branch with small shapes
            patch.setattr(fast_cpu, "ROWS_PER_TILE", 3)
            patch.setattr(fast_cpu, "READ_IN_PLACE", 6)
            patch.setattr(fast_cpu, "PADDING", 9)  # a short sequence next to a long one
        found = make_backend(backend).attention(q, k, v, batch)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close((k, v), before, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("backend", ["torch", "fast_cpu"])
def test_smaller_types_differ_by_their_rounding(backend: str, dtype: torch.dtype) -> None:
    """The definition gets the same rounded inputs, and computes in float64."""
    batch = Batch.build([(199, 1, range(1, 14)), (1, 1, [14]), (40, 30, range(15, 20))], 16)
    q, k, v = tensors(batch, 21, dtype=dtype)
    wide = make_backend("reference").attention(q.double(), k.double(), v.double(), batch)
    found = make_backend(backend).attention(q, k, v, batch)
    assert found.dtype == dtype
    allowed = 4 * torch.finfo(dtype).eps * wide.abs().max().item()  # of scores, weights, values and the result
    torch.testing.assert_close(found.double(), wide, rtol=0, atol=allowed)


def test_one_backend_serves_batch_after_batch() -> None:
    """Its buffers are reused; what the last batch left in them must not show."""
    attention, oracle = make_backend("fast_cpu").attention, make_backend("reference").attention
    for table, start in (([3, 1, 4, 2], 12), ([2, 5], 3), ([5, 4, 3, 2, 1], 17), ([4, 1], 4)):
        batch = Batch.build([(start, 1, table), (start - 1, 2, [t + 5 for t in table])], 4)
        q, k, v = tensors(batch, 11)
        torch.testing.assert_close(attention(q, k, v, batch), oracle(q, k, v, batch), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shorter", range(11, 18))
def test_what_fills_up_a_short_sequence_is_never_unwritten_memory(shorter: int) -> None:
    """Also where its only block is not full: then every copy of that block has a tail."""
    batch = Batch.build([(shorter - 1, 1, [3, 5][: -(-shorter // 16)]), (31, 1, [1, 4])], 16)
    q, k, v = tensors(batch, 6)
    expected = make_backend("reference").attention(q, k, v, batch)
    torch.testing.assert_close(make_backend("fast_cpu").attention(q, k, v, batch), expected, rtol=0, atol=1e-12)


def test_the_definition_is_softmax_attention() -> None:
    """One head, one block: small enough to write down."""
    batch = Batch.build([(1, 1, [1])], 2)
    q = torch.tensor([[[2.0]]], dtype=torch.float64)
    k = torch.tensor([[[[9.0]], [[9.0]]], [[[0.0]], [[0.5]]]], dtype=torch.float64)
    v = torch.tensor([[[[9.0]], [[9.0]]], [[[1.0]], [[3.0]]]], dtype=torch.float64)
    e = torch.tensor(1.0, dtype=torch.float64).exp()
    torch.testing.assert_close(make_backend("reference").attention(q, k, v, batch)[0, 0, 0], (1 + 3 * e) / (1 + e))


def test_a_batch_knows_where_each_row_lies() -> None:
    batch = Batch.build([(0, 3, [7]), (5, 2, [2, 9, 8])], block_size=4)
    assert batch.positions.tolist() == [0, 1, 2, 5, 6]
    assert batch.slots.tolist() == [28, 29, 30, 37, 38]
    assert [s.block_table.tolist() for s in batch.sequences] == [[7], [2, 9]]  # blocks after the context are left out
    assert [fast_cpu.run_start(torch.tensor(table)) for table in ([7], [2, 9], [4, 5, 6])] == [7, None, 4]
    with pytest.raises(ValueError, match="cannot lay out 5 rows from 0 over 1 blocks"):
        Batch.build([(0, 5, [1])], block_size=4)


@pytest.mark.parametrize(
    ("name", "exact_tile"), [("torch", None), ("fast_cpu", None), ("reference", None), ("torch", 16)]
)
def test_a_backend_stores_in_the_order_that_it_declares(name: str, exact_tile: int | None) -> None:
    attention = make_backend(name, exact_tile=exact_tile).attention
    assert sorted(attention.kv_order) == [0, 1, 2, 3]
    k, v = (torch.randn(3, KV_HEADS, HEAD_DIM) for _ in range(2))
    caches = [torch.empty_permuted((4, 2, KV_HEADS, HEAD_DIM), attention.kv_order).zero_() for _ in range(2)]
    attention.store(k, v, *caches, torch.tensor([7, 2, 3]))
    for rows, cache in zip((k, v), caches, strict=True):
        assert torch.equal(cache[3, 1], rows[0])
        assert torch.equal(cache[1], rows[1:])
        assert torch.equal(cache[2], torch.zeros_like(cache[2])), "no other slot changes"


def test_a_backend_without_exact_mode_is_refused() -> None:
    assert {name for name, entry in BACKENDS.items() if entry.exact is None} == {"fast_cpu", "reference"}
    for name in ("fast_cpu", "reference"):
        with pytest.raises(InvalidArgument, match=f"exact mode runs on attention torch or triton, not '{name}'"):
            make_backend(name, exact_tile=16)


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="must be one of torch, fast_cpu, triton, reference, not 'flash'"):
        make_backend("flash")
