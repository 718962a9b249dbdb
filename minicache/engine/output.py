"""What comes out of an engine: a request's tokens and text so far, and when each came."""

from dataclasses import dataclass, field

from minicache.core.request import Request
from minicache.text.tokenizer import StreamDecoder


@dataclass(slots=True)
class Timings:
    """Moments of one request in seconds of `time.perf_counter()`; None as long as they have not come."""

    submitted: float
    first_token: float | None = None
    last_token: float | None = None
    finished: float | None = None

    @property
    def ttft(self) -> float | None:
        """Time to first token: from `submit` to the end of the step that sampled it, waiting included."""
        return None if self.first_token is None else self.first_token - self.submitted

    @property
    def total(self) -> float | None:
        return None if self.finished is None else self.finished - self.submitted

    def decode_rate(self, num_output_tokens: int) -> float | None:
        """Tokens a second after the first; None with fewer than two."""
        if self.first_token is None or self.last_token is None or self.last_token <= self.first_token:
            return None
        return (num_output_tokens - 1) / (self.last_token - self.first_token)


@dataclass(slots=True)
class RequestOutput:
    """One request's answer. It grows in place from step to step; `new_token_ids` and `new_text` are the last step's.

    `text` is None if the engine has no tokenizer. `cached_tokens` is how many prompt tokens were found in the cache
    when the request was first admitted (None before that), and `match_end` why it were not more: "whole",
    "last_token", "too_short", "skipped" or "no_entry". `finish_reason` is None, "stop", "length" or "abort".
    """

    request_id: str
    prompt_tokens: int
    timings: Timings
    token_ids: list[int] = field(default_factory=list)
    text: str | None = None
    new_token_ids: list[int] = field(default_factory=list)
    new_text: str = ""
    cached_tokens: int | None = None
    match_end: str | None = None
    finish_reason: str | None = None

    @property
    def finished(self) -> bool:
        return self.finish_reason is not None


class OutputStream:
    """Follows one request and keeps its `RequestOutput` up to date."""

    def __init__(self, request: Request, decoder: StreamDecoder | None, now: float) -> None:
        self.request = request
        self.output = RequestOutput(request.id, request.num_prompt_tokens, Timings(submitted=now))
        self.output.text = None if decoder is None else ""
        self._decoder = decoder

    def update(self, now: float) -> RequestOutput:
        """Take in what the request has gained since the last call."""
        request, output = self.request, self.output
        output.new_token_ids = list(request.output[len(output.token_ids) :])
        output.token_ids += output.new_token_ids
        output.cached_tokens, output.match_end = request.num_cached_tokens, request.match_end
        output.finish_reason = request.finish_reason
        if output.new_token_ids:
            output.timings.first_token = output.timings.first_token or now
            output.timings.last_token = now
        if output.finished:
            output.timings.finished = now
        if self._decoder is not None:
            pieces = [self._decoder.push(token) for token in output.new_token_ids]
            output.new_text = "".join(pieces) + (self._decoder.finish() if output.finished else "")
            output.text = (output.text or "") + output.new_text
        return output
