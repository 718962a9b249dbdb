"""The n answers to one prompt.

    publish_at "schedule"   all are queued at once: the first makes its blocks findable as it is scheduled, and the
                            others adopt them in the very same step (vLLM)
    publish_at "compute"    the first is queued alone; the others as soon as it has computed the prompt, for only then
                            can they find it (SGLang sends the bare prompt ahead for the same reason)

What a sample found is in its `cached_tokens`, as for any request.
"""

import time
from collections.abc import Collection, Sequence
from typing import Any

from minicache.core import Request
from minicache.engine.output import OutputStream, RequestOutput
from minicache.engine.sampling_params import SamplingParams
from minicache.text.tokenizer import Tokenizer


class Samples:
    """The core requests of one submitted request. The first has its id, the others `id/1`, `id/2`, …

    `held` are those not queued yet. The log-probabilities of the prompt are computed once, by the first sample, and
    told by all. `options` are those of `Request`. Raises as `Request` does.
    """

    def __init__(
        self,
        request_id: str,
        tokens: Sequence[int],
        params: SamplingParams,
        end_tokens: Collection[int],
        tokenizer: Tokenizer | None,
        *,
        hold: bool,
        **options: Any,
    ) -> None:
        now = time.perf_counter()
        self.streams: list[OutputStream] = []
        for index in range(params.n):
            wants_prompt = index == 0 and params.prompt_logprobs is not None
            request = Request(
                sample_id(request_id, index),
                tokens,
                params.max_tokens,
                arrival=now,
                prompt_logprobs=params.prompt_logprobs_start if wants_prompt else None,
                stop_tokens=end_tokens,
                **options,
            )
            self.streams.append(
                OutputStream(request, params.of_sample(index), tokenizer, now, request_id=request_id, index=index)
            )
        self.held = [stream.request for stream in self.streams[1:]] if hold else []
        self.output.others = [stream.output for stream in self.streams[1:]]
        for output in self.output.others:
            output.prompt_logprobs = self.output.prompt_logprobs

    @property
    def output(self) -> RequestOutput:
        """The first answer, which leads to the others."""
        return self.streams[0].output

    @property
    def finished(self) -> bool:
        return all(stream.output.finished for stream in self.streams)

    def queue(self) -> list[Request]:
        """The requests to queue at first."""
        return [stream.request for stream in self.streams if stream.request not in self.held]

    def take_held(self) -> list[Request]:
        """The requests to queue now that the prompt has been computed."""
        held, self.held = self.held, []
        return held


def sample_id(request_id: str, index: int) -> str:
    return request_id if index == 0 else f"{request_id}/{index}"
