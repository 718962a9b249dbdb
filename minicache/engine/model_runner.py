"""From a step plan to tokens: the one place where the scheduler's plan meets the model.

Shapes: T tokens of the whole step, R rows that get a new token, V vocabulary.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from minicache.core import StepPlan
from minicache.engine.attention import Attention
from minicache.engine.batch import Batch
from minicache.engine.kv_cache import KVCache
from minicache.engine.model import Model
from minicache.engine.sampler import Draw, SamplingParams, sample


class ModelRunner:
    """Runs plans. Keeps nothing of a request: the plan says which tokens to compute and where their KV lies."""

    def __init__(self, model: Model, kv_cache: KVCache, attention: Attention) -> None:
        self.model = model
        self.kv_cache = kv_cache
        self.attention = attention

    def run(self, plan: StepPlan, params: Mapping[str, SamplingParams]) -> dict[str, int]:
        """Compute all scheduled tokens in one batch; returns the new token of each request that reached its end.

        `params` holds the sampling parameters by request id. Writes the KV cache, changes nothing else.
        """
        sampling = [item for item in plan.scheduled if item.samples]
        if not plan.scheduled:
            return {}
        logits = self.logits(plan)
        draws = [Draw(params[item.request.id], item.request.num_tokens) for item in sampling]
        return dict(zip([item.request.id for item in sampling], sample(logits, draws), strict=True))

    def logits(self, plan: StepPlan) -> Tensor:
        """Compute all scheduled tokens; returns the logits `(R, V)` of the last row of each request that samples."""
        tokens: list[int] = []
        last_rows: list[int] = []
        for item in plan.scheduled:
            tokens.extend(item.request.tokens[item.start : item.start + item.num_tokens])
            if item.samples:
                last_rows.append(len(tokens) - 1)
        device = self.model.device
        chunks = [(item.start, item.num_tokens, item.block_table) for item in plan.scheduled]
        batch = Batch.build(chunks, self.kv_cache.block_size, device)
        hidden = self.model.forward(torch.tensor(tokens, device=device), self.kv_cache, batch, self.attention)
        return self.model.logits(hidden[last_rows])
