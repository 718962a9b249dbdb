"""From a step plan to tokens: the one place where the scheduler's plan meets the model.

Shapes: T tokens of the whole step, E hidden size, R rows that get a new token, V vocabulary.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from minicache.core import StepPlan
from minicache.core.step_plan import ScheduledRequest
from minicache.engine.answers import TokenLogprobs
from minicache.engine.attention import Attention, Batch
from minicache.engine.errors import BrokenModel
from minicache.engine.kv_cache import KVCache
from minicache.engine.model import Model
from minicache.engine.sampler import Draw, sample, token_logprobs
from minicache.engine.sampling_params import SamplingParams

ROWS_OF_LOGITS = 256  # prompt positions whose logits are in memory at once: each is as long as the vocabulary


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step computed, by request id; `prompt_logprobs` also by prompt position."""

    tokens: dict[str, int] = field(default_factory=dict)
    logprobs: dict[str, TokenLogprobs] = field(default_factory=dict)
    prompt_logprobs: dict[str, dict[int, TokenLogprobs]] = field(default_factory=dict)


class ModelRunner:
    """Runs plans. Keeps no state of a request: the plan says which tokens to compute and where their KV lies."""

    def __init__(self, model: Model, kv_cache: KVCache, attention: Attention) -> None:
        self.model = model
        self.kv_cache = kv_cache
        self.attention = attention

    def run(self, plan: StepPlan, params: Mapping[str, SamplingParams]) -> StepResult:
        """Compute all scheduled tokens in one batch; a request whose last known token was computed gets a new token.

        `params` are the sampling parameters by request id. Writes the KV cache and changes nothing else. Raises
        `BrokenModel` if the logits are NaN.
        """
        result = StepResult()
        if plan.scheduled:
            hidden = self.forward(plan)
            self._sample(plan, self.logits(plan, hidden), params, result)
            self._read_prompts(plan, hidden, params, result)
        return result

    def forward(self, plan: StepPlan) -> Tensor:
        """Compute all scheduled tokens; returns their last hidden states `(T, E)`."""
        tokens: list[int] = []
        for item in plan.scheduled:
            tokens.extend(item.request.tokens[item.start : item.start + item.num_tokens])
        device = self.model.device
        chunks = [(item.start, item.num_tokens, item.block_table) for item in plan.scheduled]
        batch = Batch.build(chunks, self.kv_cache.block_size, device)
        return self.model.forward(torch.tensor(tokens, device=device), self.kv_cache, batch, self.attention)

    def logits(self, plan: StepPlan, hidden: Tensor) -> Tensor:
        """The logits `(R, V)` of the last row of each request that samples."""
        return self.model.logits(hidden[[row + item.num_tokens - 1 for item, row in rows(plan) if item.samples]])

    def _sample(self, plan: StepPlan, logits: Tensor, params: Mapping[str, SamplingParams], result: StepResult) -> None:
        sampling = [item.request for item in plan.scheduled if item.samples]
        if logits.amax(-1).isnan().any():  # the maximum of a row is NaN if any of it is
            raise BrokenModel("the model's scores are not numbers: its weights are corrupt, fetch the model again")
        draws = []
        for request in sampling:
            wanted = params[request.id]
            banned = request.stop_tokens if request.num_output_tokens < wanted.min_tokens else ()
            draws.append(Draw(wanted, request.num_tokens, request.tokens, banned))
        result.tokens.update(zip([request.id for request in sampling], sample(logits, draws), strict=True))
        for row, request in enumerate(sampling):
            if (k := params[request.id].logprobs) is not None:
                [found] = token_logprobs(logits[row : row + 1], [result.tokens[request.id]], k)
                result.logprobs[request.id] = found

    def _read_prompts(
        self, plan: StepPlan, hidden: Tensor, params: Mapping[str, SamplingParams], result: StepResult
    ) -> None:
        """Add log-probabilities of prompt tokens: those of the token at p + 1 come from the row of position p.

        A request with output has got them all: its prompt is computed again only after a preemption.
        """
        for item, row in rows(plan):
            request, wanted = item.request, params[item.request.id]
            if request.prompt_logprobs is None or wanted.prompt_logprobs is None or request.num_output_tokens:
                continue
            entries = result.prompt_logprobs.setdefault(request.id, {})
            first = max(item.start, request.prompt_logprobs)
            last = min(item.start + item.num_tokens, request.num_prompt_tokens - 1)
            for start in range(first, last, ROWS_OF_LOGITS):
                end = min(last, start + ROWS_OF_LOGITS)
                logits = self.model.logits(hidden[row + start - item.start : row + end - item.start])
                found = token_logprobs(logits, request.tokens[start + 1 : end + 1], wanted.prompt_logprobs)
                entries.update(zip(range(start + 1, end + 1), found, strict=True))


def rows(plan: StepPlan) -> Iterator[tuple[ScheduledRequest, int]]:
    """Each scheduled request and the first of its rows in the batch."""
    row = 0
    for item in plan.scheduled:
        yield item, row
        row += item.num_tokens
