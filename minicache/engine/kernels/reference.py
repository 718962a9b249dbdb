"""Each kernel as its definition: one token, one head, one key at a time. Slow and obvious; tests compare against it.

Shapes: T tokens, S sequences, Hq query heads, Hkv key-value heads, D head size, N blocks, B block size, c context,
        K splits of a context.
"""

import math

import torch
from torch import Tensor

from minicache.engine.attention import BY_BLOCK, Batch, SequenceRows


def store_kv(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """Store `k` and `v (T, Hkv, D)` at `slots (T,)` of the caches `(N, B, Hkv, D)`."""
    for token, slot in enumerate(slots.tolist()):
        block, offset = divmod(slot, k_cache.shape[1])
        k_cache[block, offset] = k[token]
        v_cache[block, offset] = v[token]


class ReferenceAttention:
    """`minicache.engine.attention.Attention` as its definition. Computes in float64 whatever the tensors' type."""

    kv_order = BY_BLOCK
    store = staticmethod(store_kv)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, batch: Batch) -> Tensor:
        out = torch.empty_like(q)
        queries_per_kv_head = q.shape[1] // k.shape[2]
        for sequence in batch.sequences:
            for i in range(sequence.num_rows):
                for head in range(q.shape[1]):
                    kv_head = head // queries_per_kv_head
                    visible = range(sequence.start + i + 1)  # positions 0 … the row's own
                    keys = torch.stack([at(k, sequence, batch.block_size, p)[kv_head] for p in visible])
                    values = torch.stack([at(v, sequence, batch.block_size, p)[kv_head] for p in visible])
                    out[sequence.row + i, head] = attend_one(q[sequence.row + i, head], keys, values)
        return out


def at(cache: Tensor, sequence: SequenceRows, block_size: int, position: int) -> Tensor:
    """The keys or values `(Hkv, D)` of one position: which block of the table, and where in it."""
    return cache[int(sequence.block_table[position // block_size]), position % block_size]


def attend_one(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """softmax(q · K / sqrt(D)) · V for one `query (D,)` over `keys` and `values (c, D)`; returns `(D,)`."""
    scores = keys.double() @ query.double() / query.numel() ** 0.5  # (c,)
    weights = torch.exp(scores - scores.max())
    return (weights / weights.sum()) @ values.double()


def decode_split(query: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The result of one split: attention to its own keys, and log2 of the sum of their exponentials."""
    scores = keys.double() @ query.double() / query.numel() ** 0.5  # (keys of the split,)
    return attend_one(query, keys, values), torch.logsumexp(scores, 0) / math.log(2)


def merge_splits(partials: Tensor, lse: Tensor) -> Tensor:
    """Attention to all keys `(D,)` from the splits' `partials (K, D)` and `lse (K,)`."""
    weights = torch.exp2(lse.double() - lse.double().max())
    return (weights / weights.sum()) @ partials.double()


def paged_decode(query: Tensor, keys: Tensor, values: Tensor, split_length: int) -> Tensor:
    """Attention of one `query (D,)` over `keys` and `values (c, D)`, `split_length` keys at a time: `(D,)`."""
    parts = zip(keys.split(split_length), values.split(split_length), strict=True)
    partials, lse = zip(*(decode_split(query, *part) for part in parts), strict=True)
    return merge_splits(torch.stack(partials), torch.stack(lse))
