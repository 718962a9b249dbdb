"""Answers: what a submitted request gets back, kept up to date from step to step.

Samples            the n answers to one prompt, each a core request of its own
  Answer           one core request and its RequestOutput
    AnswerText     its tokens as text: whole characters only
      StopStrings  where the text ends
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from minicache.core import Request
from minicache.engine.sampling_params import SamplingParams
from minicache.text.tokenizer import StreamDecoder, Tokenizer


@dataclass(frozen=True, slots=True)
class Logprob:
    """One token and the natural logarithm of its probability; `text` is None if the engine has no tokenizer."""

    token_id: int
    logprob: float
    text: str | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Log-probabilities at one position: of the token that stands there, and of the likeliest tokens, best first.

    `chosen` may also be among `top`.
    """

    chosen: Logprob
    top: tuple[Logprob, ...] = ()

    def with_text(self, text_of: Callable[[int], str]) -> "TokenLogprobs":
        """A copy in which each token has its text."""
        chosen, *top = (replace(entry, text=text_of(entry.token_id)) for entry in (self.chosen, *self.top))
        return TokenLogprobs(chosen, tuple(top))


@dataclass(slots=True)
class Timings:
    """Moments of one request, in seconds of `time.perf_counter()`; each is None until it happens."""

    submitted: float
    first_token: float | None = None
    last_token: float | None = None
    finished: float | None = None

    @property
    def ttft(self) -> float | None:
        """Time to first token in seconds: from `submit` to the end of the step that sampled it, queueing included."""
        return None if self.first_token is None else self.first_token - self.submitted

    @property
    def total(self) -> float | None:
        """Seconds from `submit` to the end of the answer."""
        return None if self.finished is None else self.finished - self.submitted

    def decode_rate(self, num_output_tokens: int) -> float | None:
        """Tokens a second after the first token; None with fewer than two tokens."""
        if self.first_token is None or self.last_token is None or self.last_token <= self.first_token:
            return None
        return (num_output_tokens - 1) / (self.last_token - self.first_token)


@dataclass(slots=True)
class RequestOutput:
    """One answer to a request. It grows in place; `new_token_ids` and `new_text` are those of the last step.

    With n > 1 each answer is an output of its own, with its `index`; `choices` of the first lists them all in order.

    `text` is None if the engine has no tokenizer. It excludes the token or string that ended the answer. `new_text` may
    come later than its tokens: text is held back while it may be half a character or the start of a stop string.
    `cached_tokens` is the number of prompt tokens found in the cache when the request was first admitted (None before
    that), and `match_end` why no more matched: "whole", "last_token", "too_short", "skipped" or "no_entry".
    `finish_reason` is None, "stop", "length" or "abort"; `stop_reason` is the stop string, or the id of the token, that
    ended the answer.

    `logprobs` has one entry for each of `token_ids`. `prompt_logprobs` has one for each prompt position from
    `prompt_logprobs_start` on that has been computed. Its first entry is always None: that log-probability comes from
    the position before, which may be cached, or does not exist.
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


class Unseen:
    """What of one output its stream has not yielded yet."""

    def __init__(self, output: RequestOutput) -> None:
        self.output = output
        self._num_tokens = 0
        self._num_chars = 0
        self._finished = False

    def take(self) -> bool:
        """Whether the output gained a token or ended since the last call. `new_token_ids` and `new_text` become what it
        gained since then, which other callers' steps may have computed."""
        output = self.output
        if len(output.token_ids) == self._num_tokens and output.finished == self._finished:
            return False
        output.new_token_ids = output.token_ids[self._num_tokens :]
        output.new_text = (output.text or "")[self._num_chars :]
        self._num_tokens, self._num_chars = len(output.token_ids), len(output.text or "")
        self._finished = output.finished
        return True


class StopStrings:
    """Finds the first stop string in a text that comes piece by piece, however the text is cut.

        stop = ["END"]     pieces  "the E" "N"  "x E" "ND." …
                           shown   "the "  ""   "ENx " ""          then END is found: the text is "the ENx "

    Holds back text that may still become a stop string, and releases it when a later character rules that out. `found`
    is the stop string that ended the text, None until one has.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.found: str | None = None
        self._stops = sorted(stops, key=len, reverse=True)  # of two that end together, the longer one is found
        self._held = ""  # the longest end of the text so far that a stop string begins with

    def push(self, piece: str, ends: bool = True) -> str:
        """Take the next piece; returns the text that may be shown now. Ignores everything after a stop string.

        With `ends=False` a stop string that is complete within this piece does not count, but one may begin in it.
        """
        if self.found is not None:
            return ""
        if not self._stops:
            return piece
        text = self._held + piece
        for end in range(len(self._held) + 1, len(text) + 1) if ends else ():
            for stop in self._stops:
                if text.endswith(stop, 0, end):
                    self.found, self._held = stop, ""
                    return text[: end - len(stop)]
        self._held = self._possible_start(text)
        return text[: len(text) - len(self._held)]

    def rest(self) -> str:
        """Release the text that is held back; for the end of the answer."""
        rest, self._held = self._held, ""
        return rest

    def _possible_start(self, text: str) -> str:
        """The longest end of `text` that a stop string begins with."""
        for length in range(min(len(text), len(self._stops[0]) - 1), 0, -1):
            end = text[-length:]
            if any(len(stop) > length and stop.startswith(end) for stop in self._stops):
                return end
        return ""


class AnswerText:
    """Turns one answer's tokens into text: whole characters only, up to the first stop string."""

    def __init__(self, tokenizer: Tokenizer, params: SamplingParams) -> None:
        self._tokenizer = tokenizer
        self._decoder = StreamDecoder(tokenizer)
        self._stops = StopStrings(tuple(params.stop))
        self._min_tokens = params.min_tokens
        self._num_tokens = 0

    @property
    def stop(self) -> str | None:
        """The stop string that ended the text, None until one has."""
        return self._stops.found

    def push(self, token: int) -> str:
        """Take the next token; returns the text that may be shown now."""
        self._num_tokens += 1
        piece = self._decoder.push(token) if self._has_text(token) else ""
        return self._stops.push(piece, ends=self._num_tokens > self._min_tokens)

    def finish(self) -> str:
        """The rest of the text: U+FFFD for a character that never became whole, and text held for a stop string."""
        rest = self._stops.push(self._decoder.finish(), ends=self._num_tokens > self._min_tokens)
        return rest + self._stops.rest()

    def of(self, token: int) -> str:
        """One token's text by itself."""
        return self._tokenizer.decode([token], keep_control=True) if self._has_text(token) else ""

    def _has_text(self, token: int) -> bool:
        """Models often have rows beyond their tokenizer's vocabulary; such a token has no text."""
        return token < self._tokenizer.vocab_size


class Answer:
    """One core request and the `RequestOutput` that follows it."""

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
        """Bring the output up to date with the request at time `now` (seconds).

        `logprobs` are those of the newest token. `ended` is the finish reason if the request itself has none.
        """
        request, output = self.request, self.output
        output.new_token_ids = list(request.output[len(output.token_ids) :])
        output.token_ids += output.new_token_ids
        output.cached_tokens, output.match_end = request.num_cached_tokens, request.match_end
        output.finish_reason = request.finish_reason or ended
        if output.finish_reason == "stop":
            output.stop_reason = output.token_ids[-1]
        if output.logprobs is not None and logprobs is not None:
            output.logprobs.append(self._with_text(logprobs))
        if self._text is not None:
            self._read(self._text)
        if output.new_token_ids:
            output.timings.first_token = output.timings.first_token or now
            output.timings.last_token = now
        if output.finished:
            output.timings.finished = now
        return output

    def add_prompt_logprobs(self, logprobs: Mapping[int, TokenLogprobs]) -> None:
        """Add log-probabilities of prompt tokens, by position; a position computed again replaces its entry."""
        entries = self.output.prompt_logprobs
        assert entries is not None
        for position, found in sorted(logprobs.items()):
            place = position - self.params.prompt_logprobs_start
            entries[place : place + 1] = [self._with_text(found)]

    def _read(self, text: AnswerText) -> None:
        """Add the new tokens' text, without the token that ended the answer; end the answer at a stop string."""
        output = self.output
        tokens = output.new_token_ids[:-1] if output.finish_reason == "stop" else output.new_token_ids
        output.new_text = "".join(text.push(token) for token in tokens)
        if output.finished:
            output.new_text += text.finish()
        if text.stop is not None:
            output.finish_reason, output.stop_reason = "stop", text.stop
        output.text = (output.text or "") + output.new_text

    def _with_text(self, logprobs: TokenLogprobs) -> TokenLogprobs:
        return logprobs if self._text is None else logprobs.with_text(self._text.of)


class Samples:
    """The n answers to one prompt. The first core request has the submitted id, the others `id/1`, `id/2`, …

        `hold` is false  all are queued at once: scheduling the first makes its blocks findable, and the others adopt
                         them in the same step (vLLM)
        `hold` is true   the first is queued alone, the others once it has computed the prompt: they cannot find it
                         earlier (SGLang sends the bare prompt ahead for the same reason)

    `held` are the requests not queued yet. Only the first sample computes the log-probabilities of the prompt; all
    samples share them. `options` are those of `Request`. Raises as `Request` does.
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
        self.answers: list[Answer] = []
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
            sample = params.of_sample(index)
            self.answers.append(Answer(request, sample, tokenizer, now, request_id=request_id, index=index))
        self.held = [answer.request for answer in self.answers[1:]] if hold else []
        self.output.others = [answer.output for answer in self.answers[1:]]
        for output in self.output.others:
            output.prompt_logprobs = self.output.prompt_logprobs

    @property
    def output(self) -> RequestOutput:
        """The first answer; its `choices` are all answers."""
        return self.answers[0].output

    @property
    def finished(self) -> bool:
        return all(answer.output.finished for answer in self.answers)

    def queue(self) -> list[Request]:
        """The requests to queue on submission."""
        return [answer.request for answer in self.answers if answer.request not in self.held]

    def take_held(self) -> list[Request]:
        """The requests to queue once the prompt is computed; later calls return none of them again."""
        held, self.held = self.held, []
        return held


def sample_id(request_id: str, index: int) -> str:
    """The core request's id of the answer with this index."""
    return request_id if index == 0 else f"{request_id}/{index}"
