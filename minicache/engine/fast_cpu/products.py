"""Matrix products for a CPU: by oneDNN, and at most 1,024 rows at a time.

Gain: a step of 8 sequences costs 86 ms instead of 135, a prompt of 2,999 tokens 8.0 s instead of 8.4
(conditions: `__init__.py`).

Shapes: T rows, R rows as the model lays them out, F feed-forward size.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from minicache.engine.layers import Linear
from minicache.engine.model import Rows

FEW_ROWS = range(2, 17)
ROWS_AT_ONCE = 1024


class OneDnnLinear(Linear):
    """`Linear` in float32 by oneDNN, whose weight is also kept laid out for the few rows of a decode batch.

    Reason: F.linear calls the BLAS that torch was built with. MKL is slow for the few rows of a decode batch, and on
    AMD's cores for any number of rows. The first batch of 2 to 16 rows makes the second copy, which doubles the memory
    of the weight.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__(weight, bias)
        self._packed: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        weight = self._for_few_rows() if len(x) in FEW_ROWS else self.weight
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, self.bias, "none", [], "")
        return product

    def _for_few_rows(self) -> Tensor:
        if self._packed is None:
            self._packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, 8)  # laid out for about 8 rows
        return self._packed


def linear_for(device: torch.device, dtype: torch.dtype) -> type[Linear]:
    """`OneDnnLinear` where this build of torch has oneDNN and the model is float32 on a CPU, else `Linear`."""
    has_onednn = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return OneDnnLinear if has_onednn and device.type == "cpu" and dtype == torch.float32 else Linear


class SlicedRows(Rows):
    """Rows as they come, at most 1,024 of them in one product.

    Reason: the feed-forward network makes 2F numbers a row. For a long prompt that is more memory than the allocator
    keeps for reuse, so the system would map and clear fresh pages in each layer; for 1,024 rows the allocator keeps it.
    """

    def each(self, op: Callable[..., Tensor], *rows: Tensor) -> Tensor:
        if len(rows[0]) <= ROWS_AT_ONCE:
            return op(*rows)
        pieces = zip(*(part.split(ROWS_AT_ONCE) for part in rows), strict=True)
        return torch.cat([op(*piece) for piece in pieces])
