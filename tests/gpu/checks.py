"""What is checked on a real GPU, at the shapes of real models. Plain functions: `run.py` has no pytest.

The oracle is torch's scaled_dot_product_attention in float32, sequence by sequence, over keys and values that are
gathered into one piece.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from minicache.engine.attention import Attention, Batch
from minicache.engine.backends import make_backend
from minicache.engine.kernels.layout import Layout
from minicache.engine.kernels.paged_attention import paged_attention
from minicache.engine.kernels.paged_decode import paged_decode
from minicache.engine.kernels.store_kv import store_kv
from minicache.engine.kv_cache import KVCache
from minicache.engine.model import Model
from minicache.engine.models.loader import load_model

TINY = Path(__file__).resolve().parents[2] / "minicache/engine/tiny/model"
DEVICE = "cuda"
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 2e-5}
DTYPES = tuple(TOLERANCE)
HEADS = ((8, 4, 128), (2, 7, 64), (4, 1, 256), (3, 3, 80), (1, 16, 32))  # key-value heads, group, head size
BLOCK_SIZES = (1, 16, 24, 128)
MIXED = ((0, 700), (513, 129), (4095, 1), (0, 1), (2048, 300))  # start, rows
CHUNKS = (130, 130, 39, 1)  # of the model's sequence
DECODES = ((8191, 1), (0, 1), (777, 1), (3000, 1))


def batch_of(
    chunks: Sequence[tuple[int, int]], block_size: int, heads: tuple[int, int, int], dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Batch]:
    """Queries, and caches that are NaN wherever no sequence holds anything."""
    kv_heads, group, head_dim = heads
    needs = [-(-(start + rows) // block_size) for start, rows in chunks]
    order = (torch.randperm(sum(needs)) + 1).tolist()
    tables = [[order.pop() for _ in range(need)] for need in needs]
    batch = Batch.build([(*chunk, table) for chunk, table in zip(chunks, tables, strict=True)], block_size, DEVICE)
    q = torch.randn(len(batch.positions), kv_heads * group, head_dim, dtype=dtype, device=DEVICE)
    shape = (sum(needs) + 1, block_size, kv_heads, head_dim)
    k, v = (torch.full(shape, torch.nan, dtype=dtype, device=DEVICE) for _ in range(2))
    for sequence in batch.sequences:
        slots = slots_of(sequence.block_table, sequence.context, block_size)
        for cache in (k, v):
            rows = torch.randn(len(slots), kv_heads, head_dim, dtype=dtype, device=DEVICE)
            cache.flatten(0, 1).index_copy_(0, slots, rows)
    return q, k, v, batch


def slots_of(table: Tensor, context: int, block_size: int) -> Tensor:
    positions = torch.arange(context, device=table.device)
    return table[positions // block_size] * block_size + positions % block_size


def oracle(q: Tensor, k: Tensor, v: Tensor, batch: Batch) -> Tensor:
    out = torch.empty(q.shape, dtype=torch.float32, device=q.device)
    for sequence in batch.sequences:
        slots = slots_of(sequence.block_table, sequence.context, batch.block_size)
        keys, values = (cache.flatten(0, 1)[slots].float().transpose(0, 1) for cache in (k, v))  # (Hkv, c, D)
        rows = q[sequence.rows].float().transpose(0, 1)  # (Hq, n, D)
        mask = torch.ones(sequence.num_rows, sequence.context, dtype=torch.bool, device=q.device).tril(sequence.start)
        found = F.scaled_dot_product_attention(rows[None], keys[None], values[None], mask, enable_gqa=True)[0]
        out[sequence.rows] = found.transpose(0, 1)
    return out


def require_close(found: Tensor, expected: Tensor) -> None:
    tolerance = TOLERANCE[found.dtype]
    torch.testing.assert_close(found.float(), expected, rtol=tolerance, atol=tolerance)


def attention_equals_torch(dtype: torch.dtype) -> None:
    for heads in HEADS:
        for block_size in BLOCK_SIZES:
            q, k, v, batch = batch_of(MIXED, block_size, heads, dtype)
            require_close(paged_attention(q, k, v, Layout.of(batch)), oracle(q, k, v, batch))


def decode_equals_torch(dtype: torch.dtype) -> None:
    for heads in HEADS:
        for block_size in BLOCK_SIZES:
            q, k, v, batch = batch_of(DECODES, block_size, heads, dtype)
            expected = oracle(q, k, v, batch)
            for num_splits in (None, 1, 8, 32):
                require_close(paged_decode(q, k, v, Layout.of(batch), num_splits=num_splits), expected)
            require_close(paged_attention(q, k, v, Layout.of(batch)), expected)


def storing_equals_torch(dtype: torch.dtype) -> None:
    q, k, v, batch = batch_of(MIXED, 16, (8, 4, 128), dtype)
    new = torch.randn(len(q), 24, 128, dtype=dtype, device=DEVICE)
    expected = k.clone(), v.clone()
    store_kv(new[:, :8], new[:, 8:16], k, v, batch.slots)
    for cache, rows in zip(expected, (new[:, :8], new[:, 8:16]), strict=True):
        cache.flatten(0, 1).index_copy_(0, batch.slots, rows)
    torch.testing.assert_close((k, v), expected, rtol=0, atol=0, equal_nan=True)


def exact_attention_changes_no_bit(dtype: torch.dtype) -> None:
    """A prompt whole and in pieces, over blocks of several sizes, each piece stored as it comes: the same bits."""
    length = sum(CHUNKS)
    for kv_heads, group, head_dim in HEADS:
        q = torch.randn(length, kv_heads * group, head_dim, dtype=dtype, device=DEVICE)
        new = [torch.randn(length, kv_heads, head_dim, dtype=dtype, device=DEVICE) for _ in "kv"]
        found = []
        for block_size, chunks in ((16, (length,)), *((size, CHUNKS) for size in BLOCK_SIZES)):
            num_blocks = -(-length // block_size) + 1
            shape = (num_blocks, block_size, kv_heads, head_dim)
            caches = [torch.full(shape, torch.nan, dtype=dtype, device=DEVICE) for _ in "kv"]
            table = (torch.randperm(num_blocks - 1) + 1).tolist()
            pieces, start = [], 0
            for size in chunks:
                rows = slice(start, start + size)
                batch = Batch.build([(start, size, table)], block_size, DEVICE)
                store_kv(*(each[rows] for each in new), *caches, batch.slots)
                pieces.append(paged_attention(q[rows], *caches, Layout.of(batch), exact_tile=16))
                start += size
            found.append(torch.cat(pieces))
        for each in found[1:]:
            torch.testing.assert_close(each, found[0], rtol=0, atol=0)


def an_exact_model_changes_no_bit(dtype: torch.dtype) -> None:
    """The tiny model in exact mode: logits of a prompt whole, and in chunks."""
    model = load_model(TINY, dtype, DEVICE)
    backend = make_backend("triton", DEVICE, dtype, model.config.head_dim, exact_tile=16)
    model.rows = backend.rows(model)
    tokens = torch.randint(1, 250, (sum(CHUNKS),), device=DEVICE)
    whole = logits_of(model, tokens, (len(tokens),), backend.attention)
    torch.testing.assert_close(logits_of(model, tokens, CHUNKS, backend.attention), whole, rtol=0, atol=0)


def logits_of(model: Model, tokens: Tensor, chunks: Sequence[int], attention: Attention) -> Tensor:
    """`(len(tokens), V)` in float32, of one sequence in chunks of these sizes."""
    cache = KVCache(model.config, 32, 16, model.dtype, DEVICE, attention.kv_order)
    table = list(range(31, 0, -1))
    rows, start = [], 0
    for size in chunks:
        batch = Batch.build([(start, size, table)], 16, DEVICE)
        hidden = model.forward(tokens[start : start + size], cache, batch, attention)
        rows.append(model.logits(hidden).float())
        start += size
    return torch.cat(rows)


def a_model_equals_itself_on_torch(dtype: torch.dtype) -> None:
    """The tiny model in chunks: logits of both backends, in float32 to 1e-3."""
    model = load_model(TINY, dtype, DEVICE)
    tokens = torch.randint(1, 250, (sum(CHUNKS),), device=DEVICE)
    backends = (make_backend(name, DEVICE, dtype, model.config.head_dim) for name in ("torch", "triton"))
    logits = [logits_of(model, tokens, CHUNKS, backend.attention) for backend in backends]
    tolerance = {torch.float32: 1e-3, torch.float16: 5e-2, torch.bfloat16: 5e-1}[dtype]
    torch.testing.assert_close(logits[1], logits[0], rtol=tolerance, atol=tolerance)


CHECKS: tuple[Callable[[torch.dtype], None], ...] = (
    storing_equals_torch,
    attention_equals_torch,
    decode_equals_torch,
    exact_attention_changes_no_bit,
    an_exact_model_changes_no_bit,
    a_model_equals_itself_on_torch,
)
