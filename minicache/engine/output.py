"""What comes out of an engine: a request's tokens and text so far, and when each came."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from minicache.core.request import Request
from minicache.engine.answer_text import AnswerText
from minicache.engine.logprobs import TokenLogprobs
from minicache.engine.sampling_params import SamplingParams
from minicache.text.tokenizer import Tokenizer


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
    """One answer to a request. It grows in place from step to step; `new_token_ids` and `new_text` are the last step's.

    With n > 1 each answer is an output of its own, with its `index`; `choices` of the first are all of them, in order.

    `text` is None if the engine has no tokenizer. What ended the answer is not in it; `new_text` may come later than
    its tokens, while it might be half a character or the beginning of a stop string. `cached_tokens` is how many prompt
    tokens were found in the cache when the request was first admitted (None before that), and `match_end` why it were
    not more: "whole", "last_token", "too_short", "skipped" or "no_entry". `finish_reason` is None, "stop", "length" or
    "abort"; `stop_reason` the stop string or the id of the token that ended it.

    `logprobs` has an entry for each of `token_ids`. `prompt_logprobs` has one for each prompt position from
    `prompt_logprobs_start` on that has been computed. The first is always None: what the model thought of that token
    the position before it would tell, which may have been in the cache, or does not exist.
    """

    request_id: str
    prompt_tokens: int
    timings: Timings
    index: int = 0
    token_ids: list[int] = field(default_factory=list)
    text: str | None = None
    new_token_ids: list[int] = field(default_factory=list)
    new_text: str = ""
    cached_tokens: int | None = None
    match_end: str | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: list[TokenLogprobs] | None = None
    prompt_logprobs: list[TokenLogprobs | None] | None = None
    others: list["RequestOutput"] = field(default_factory=list)  # of the first output: those of index 1, 2, …

    @property
    def finished(self) -> bool:
        return self.finish_reason is not None

    @property
    def choices(self) -> list["RequestOutput"]:
        return [self, *self.others]


class OutputStream:
    """Follows one answer and keeps its `RequestOutput` up to date."""

    def __init__(
        self,
        request: Request,
        params: SamplingParams,
        tokenizer: Tokenizer | None,
        now: float,
        *,
        request_id: str | None = None,
        index: int = 0,
    ) -> None:
        self.request = request
        self.params = params
        self.output = RequestOutput(request_id or request.id, request.num_prompt_tokens, Timings(now), index)
        self._text = None if tokenizer is None else AnswerText(tokenizer, params)
        self.output.text = None if tokenizer is None else ""
        self.output.logprobs = None if params.logprobs is None else []
        self.output.prompt_logprobs = None if params.prompt_logprobs is None else [None]

    def update(self, now: float, logprobs: TokenLogprobs | None = None, ended: str | None = None) -> RequestOutput:
        """Take in what the request has gained since the last call: its tokens, and what was thought of the last one.

        `ended` is why the answer is over if the request does not say so itself.
        """
        request, output = self.request, self.output
        output.new_token_ids = list(request.output[len(output.token_ids) :])
        output.token_ids += output.new_token_ids
        output.cached_tokens, output.match_end = request.num_cached_tokens, request.match_end
        output.finish_reason = request.finish_reason or ended
        if output.finish_reason == "stop":
            output.stop_reason = output.token_ids[-1]
        if output.logprobs is not None and logprobs is not None:
            output.logprobs.append(self._named(logprobs))
        if self._text is not None:
            self._read(self._text)
        if output.new_token_ids:
            output.timings.first_token = output.timings.first_token or now
            output.timings.last_token = now
        if output.finished:
            output.timings.finished = now
        return output

    def tell_prompt(self, logprobs: Mapping[int, TokenLogprobs]) -> None:
        """Take in log-probabilities of prompt tokens, by position. A position told before is told anew."""
        told = self.output.prompt_logprobs
        assert told is not None
        for position, found in sorted(logprobs.items()):
            place = position - self.params.prompt_logprobs_start
            told[place : place + 1] = [self._named(found)]

    def _read(self, text: AnswerText) -> None:
        """The new tokens' text, without the token that ended the answer, and where a stop string ends it."""
        output = self.output
        tokens = output.new_token_ids[:-1] if output.finish_reason == "stop" else output.new_token_ids
        output.new_text = "".join(text.push(token) for token in tokens)
        if output.finished:
            output.new_text += text.finish()
        if text.stop is not None:
            output.finish_reason, output.stop_reason = "stop", text.stop
        output.text = (output.text or "") + output.new_text

    def _named(self, logprobs: TokenLogprobs) -> TokenLogprobs:
        return logprobs if self._text is None else logprobs.with_text(self._text.of)
