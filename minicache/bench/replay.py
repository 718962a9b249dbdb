"""Requests through a cache and the scheduler, without a model. Hits depend only on tokens, so they are exact."""

from collections.abc import Mapping
from itertools import count

from minicache.bench.measure import BLOCK_SIZES, Tokens
from minicache.core import HashChainCache, RadixCache, Request, Scheduler, SchedulerConfig


class Replay:
    """A cache of `num_tokens` tokens with its engine's scheduler; the caller gives the answers.

    `cache` is "hash" (vLLM's profile) or "radix" (SGLang's); `block_size=None` is the default of this cache.
    """

    def __init__(self, cache: str, num_tokens: int, block_size: int | None = None) -> None:
        block_size = block_size or BLOCK_SIZES[cache]
        num_blocks = -(-num_tokens // block_size) + 1  # block 0 is the null block
        self.cache = (HashChainCache if cache == "hash" else RadixCache)(num_blocks, block_size)
        config = SchedulerConfig.vllm() if cache == "hash" else SchedulerConfig.sglang()
        self.scheduler = Scheduler(self.cache, config)
        self._numbers = count(1)
        self._answers: dict[str, Tokens] = {}

    def send(self, prompt: Tokens, answer: Tokens, *, finish: bool = True) -> Request:
        """Send one request, which gets the answer `answer`. Runs until no request is left, or only until the request's
        first token, so that it is still decoding when the next request comes."""
        request = Request(f"request-{next(self._numbers)}", prompt, len(answer))
        self._answers[request.id] = answer
        self.scheduler.add(request)
        while self.scheduler.has_unfinished and (finish or not request.num_output_tokens):
            self._step()
        return request

    def _step(self) -> None:
        plan = self.scheduler.schedule()
        self.scheduler.update(plan, self._sample([i.request for i in plan.scheduled if i.samples]))

    def _sample(self, requests: list[Request]) -> Mapping[str, int]:
        return {request.id: self._answers[request.id][request.num_output_tokens] for request in requests}

    def reusable_tokens(self, prompt: Tokens) -> int:
        """The number of tokens of a prompt that a lookup finds now."""
        return self.cache.lookup(Request("next", prompt)).num_tokens

    @property
    def hit_rate(self) -> float:
        """vLLM's hit rate, for either cache: hit tokens divided by looked-up tokens over the last 1,000 requests
        (`RecentHitRate`)."""
        return self.scheduler.recent_hit_rate.value
