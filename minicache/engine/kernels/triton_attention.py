"""Paged attention by the Triton kernels: on a GPU, and interpreted on a CPU for tests."""

from torch import Tensor

from minicache.engine.attention import BY_BLOCK, Batch
from minicache.engine.kernels.launch import Geometry
from minicache.engine.kernels.layout import Layout
from minicache.engine.kernels.paged_attention import paged_attention
from minicache.engine.kernels.paged_decode import paged_decode, processors, splits_of
from minicache.engine.kernels.store_kv import store_kv


class TritonAttention:
    """`minicache.engine.attention.Attention` by the kernels.

    With `exact_tile` a row has the same bits in every batch (see `minicache.engine.exact`): `paged_attention` computes
    every row, because `paged_decode` sums in another order.
    """

    kv_order = BY_BLOCK
    store = staticmethod(store_kv)

    def __init__(self, exact_tile: int | None = None) -> None:
        self.exact_tile = exact_tile
        self._layout: Layout | None = None

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, batch: Batch) -> Tensor:
        if self._layout is None or self._layout.batch is not batch:  # the same in every layer of a step
            self._layout = Layout.of(batch)
        if self._layout.single_rows and not self.exact_tile:
            splits = splits_of(Geometry.of(q, k, v), self._layout, processors(q.device))
            if splits > 1:
                return paged_decode(q, k, v, self._layout, num_splits=splits)
        return paged_attention(q, k, v, self._layout, exact_tile=self.exact_tile)
