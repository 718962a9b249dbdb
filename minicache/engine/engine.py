"""The engine: requests in, tokens out.

    submit ──> scheduler ──plan──> model runner ──tokens──> scheduler ──> outputs
                   │                     │
              prefix cache           KV cache
          (who holds a block)      (its content)

One thread drives it: see `Engine`.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar, cast

from torch import Tensor

from minicache.core import Namespace, PrefixCache, Request, Scheduler
from minicache.core.errors import InvalidArgument
from minicache.core.events import Event
from minicache.core.request import DEFAULT_NAMESPACE
from minicache.engine.answers import Answer, RequestOutput, Samples, sample_id
from minicache.engine.build import Parts, build_parts
from minicache.engine.engine_config import EngineConfig
from minicache.engine.errors import EngineBusy
from minicache.engine.intake import Intake, Prompt
from minicache.engine.model_runner import StepResult
from minicache.engine.models.loader import with_weights
from minicache.engine.sampling_params import SamplingParams
from minicache.text.tokenizer import Tokenizer

P = ParamSpec("P")
R = TypeVar("R")


def one_call_at_a_time(method: "Callable[Concatenate[Engine, P], R]") -> "Callable[Concatenate[Engine, P], R]":
    """Make `method` raise `EngineBusy`, and change nothing, while another such call of the engine runs."""

    @wraps(method)
    def guarded(engine: "Engine", /, *args: P.args, **kwargs: P.kwargs) -> R:
        if not engine.busy.acquire(blocking=False):
            raise EngineBusy(
                f"{method.__name__}() was called while another call of the engine runs: one thread drives an engine, "
                "others hand it their requests, for example through a queue.Queue"
            )
        try:
            return method(engine, *args, **kwargs)
        finally:
            engine.busy.release()

    return guarded


class Engine:
    """A model, a KV cache, a prefix cache and a scheduler that share one pool of blocks.

    Loading raises `UnknownModel`, `UnsupportedModel`, `BrokenModel`, `BackendUnavailable` or `PoolTooSmall`. `events`
    is called with each event of cache and scheduler. It must not raise, because it is called in the middle of changes.

    Threads: one at a time. While a call runs, another call (from another thread, or from `events`) does not wait: it
    raises `EngineBusy` and changes nothing. A server therefore has one thread that steps, and that takes requests and
    aborts from a queue. Outputs grow in place during `step`: hand copies to other threads.
    """

    def __init__(
        self, config: EngineConfig | None = None, *, events: Callable[[Event], None] | None = None, **settings: object
    ) -> None:
        if config is not None and settings:
            raise InvalidArgument(f"give an EngineConfig or settings, not both: {', '.join(settings)}")
        if config is not None and not isinstance(config, EngineConfig):
            raise InvalidArgument(
                f"config must be an EngineConfig, not {config!r}: or give settings, as in model='tiny'"
            )
        if events is not None and not callable(events):
            raise InvalidArgument(f"events must be a function to call with each event, not {events!r}")
        self.config = config or EngineConfig(**settings)  # type: ignore[arg-type]
        self._start(build_parts(self.config, events))

    @classmethod
    def from_parts(cls, parts: Parts, config: EngineConfig | None = None) -> "Engine":
        """An engine of given parts: a model in memory, a learner's cache, another attention."""
        engine = cls.__new__(cls)
        engine.config = config or EngineConfig()
        engine._start(parts)
        return engine

    def _start(self, parts: Parts) -> None:
        self.tokenizer: Tokenizer | None = parts.tokenizer
        self.cache: PrefixCache = parts.cache
        self.scheduler: Scheduler = parts.scheduler
        self.runner = parts.runner
        self.eos_tokens = parts.eos_tokens
        self.max_context = parts.max_context
        self.busy = threading.Lock()
        self._samples: dict[str, Samples] = {}  # by the id that was submitted
        self._answers: dict[str, Answer] = {}  # by core request; a submitted request has n of these
        self._params: dict[str, SamplingParams] = {}
        self._numbers = itertools.count(1)

    @one_call_at_a_time
    def step(self) -> list[RequestOutput]:
        """Run one batch; returns each answer that gained a token or ended. Empty when idle.

        If the model raises, undoes the step and lets the error through; the next step tries again.
        """
        plan = self.scheduler.schedule()
        with self.scheduler.undo_on_error(plan):
            result = self.runner.run(plan, self._params)
        finished = self.scheduler.update(plan, result.tokens)
        return self._collect(result, finished)

    @one_call_at_a_time
    def submit(
        self,
        prompt: Prompt,
        params: SamplingParams | None = None,
        *,
        request_id: str | None = None,
        namespace: Namespace = DEFAULT_NAMESPACE,
        priority: int = 0,
        skip_cache_read: bool = False,
    ) -> str:
        """Queue a prompt (text or token ids) and return the request's id; nothing is computed before `step`.

        Raises `InvalidArgument` (empty prompt, unknown token, id in use, parameters that do not fit the model),
        `RequestTooLong` or `NoTokenizer`; the engine is then as it was before.
        """
        intake = self.intake
        params, tokens = intake.params(params), intake.encode(prompt)
        intake.check(params, len(tokens))
        if request_id is None:
            request_id = next(id for n in self._numbers if not self._taken(id := f"request-{n}", params.n))
        samples = Samples(
            request_id,
            tokens,
            params,
            intake.end_tokens(params),
            self.tokenizer,
            hold=self.scheduler.config.publish_at == "compute",
            namespace=namespace,
            priority=priority,
            skip_cache_read=skip_cache_read,
        )
        if self._taken(request_id, params.n):
            raise InvalidArgument(f"request id {request_id!r} is in use")
        for request in samples.queue():  # all are equally long: if one is refused, it is the first
            self.scheduler.add(request)
        self._samples[request_id] = samples
        for answer in samples.answers:
            self._answers[answer.request.id], self._params[answer.request.id] = answer, answer.params
        return request_id

    @one_call_at_a_time
    def abort(self, request_id: str) -> RequestOutput | None:
        """End a request now; returns its output so far, or None if it is unknown or has ended."""
        samples = self._samples.pop(request_id, None)
        if samples is None:
            return None
        for answer in samples.answers:
            if answer.output.finished:
                continue
            if answer.request not in samples.held and not answer.request.status.is_final:
                self.scheduler.abort(answer.request.id)
            answer.update(time.perf_counter(), ended="abort")
            self._forget(answer)
        return samples.output

    @one_call_at_a_time
    def reset_prefix_cache(self, preempt_running: bool = False) -> bool:
        """Forget all cached KV. `False`, with nothing changed, while requests run: they hold blocks.

        With `preempt_running` they give up their blocks and compute everything again; their answers stay the same.
        """
        return self.scheduler.reset_cache(preempt_running)

    @one_call_at_a_time
    def update_weights(self, source: Mapping[str, Tensor] | str | Path) -> None:
        """Replace the weights by others of the same shape: a state dict under Hugging Face names, or those of another
        model, given by folder or name.

        Empties the cache: KV of the old weights is never used again. Running requests compute their prompt and their
        output so far again, then go on. Holds both sets of weights in memory meanwhile. Raises `BrokenModel`,
        `UnknownModel` or `InvalidArgument`; the old weights then stay.
        """
        model = with_weights(self.runner.model, source)
        self.scheduler.reset_cache(preempt_running=True)
        self.runner.model = model

    def stream(
        self, prompt: Prompt, params: SamplingParams | None = None, **options: object
    ) -> Iterator[RequestOutput]:
        """Submit one prompt and yield its output after each step that changed it. Leaving the loop early aborts it.

        With n > 1 yields the outputs of all answers, each with its `index`. `options` are those of `submit`. Bad input
        raises at once, not at the first iteration.
        """
        following = self._follow(self.submit(prompt, params, **options))  # type: ignore[arg-type]
        next(following)  # started, so that it aborts its request even if it is never iterated
        return cast(Iterator[RequestOutput], following)

    def _follow(self, request_id: str) -> Iterator[RequestOutput | None]:
        try:
            yield None
            while request_id in self._samples:
                for output in self.step():
                    if output.request_id == request_id:
                        yield output
        finally:
            self.abort(request_id)

    def generate(
        self, prompts: Iterable[Prompt], params: SamplingParams | Sequence[SamplingParams] | None = None
    ) -> list[RequestOutput]:
        """Answer a batch of prompts; returns outputs in the order of the prompts. Also serves earlier requests.

        With n > 1 each output is the first answer, and its `choices` are all of them. If a prompt is refused, or the
        model raises, no request of this batch stays queued.
        """
        if not isinstance(prompts, Iterable):
            raise InvalidArgument(f"prompts must be a list of prompts, not {prompts!r}")
        prompts = [prompts] if isinstance(prompts, str | bytes) else list(prompts)
        each = list(params) if isinstance(params, Sequence) else [params] * len(prompts)
        if len(each) != len(prompts):
            raise InvalidArgument(f"{len(prompts)} prompts need {len(prompts)} SamplingParams, not {len(each)}")
        answers: dict[str, RequestOutput] = {}
        try:
            for prompt, chosen in zip(prompts, each, strict=True):
                request_id = self.submit(prompt, chosen)
                answers[request_id] = self._samples[request_id].output
            while not self._samples.keys().isdisjoint(answers):
                self.step()
        finally:
            for request_id in answers:
                self.abort(request_id)
        return list(answers.values())

    @property
    def has_unfinished(self) -> bool:
        return bool(self._samples)

    @property
    def intake(self) -> Intake:
        """The limits that requests are checked against."""
        return Intake(self.tokenizer, self.runner.model.config.vocab_size, self.max_context, self.eos_tokens)

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt, checked against the vocabulary."""
        return self.intake.encode(prompt)

    def _taken(self, request_id: str, n: int) -> bool:
        """Whether a request of this id with n samples would share an id with a live one."""
        return request_id in self._samples or any(sample_id(request_id, i) in self._answers for i in range(n))

    def _collect(self, result: StepResult, finished: Iterable[Request]) -> list[RequestOutput]:
        """Bring answers up to date, end those that reached a stop string, and forget those that ended."""
        now = time.perf_counter()
        for id, found in result.prompt_logprobs.items():
            if id in self._answers:
                self._answers[id].add_prompt_logprobs(found)
        changed = dict.fromkeys([*result.tokens, *(request.id for request in finished)])
        outputs = []
        for answer in [self._answers[id] for id in changed if id in self._answers]:
            output = answer.update(now, result.logprobs.get(answer.request.id))
            if output.finished:
                if not answer.request.status.is_final:
                    self.scheduler.finish(answer.request, "stop")
                self._forget(answer)
            outputs.append(output)
            self._advance(output.request_id)
        return outputs

    def _advance(self, request_id: str) -> None:
        """Queue the samples that waited for the prompt to be computed; forget a request whose answers all ended."""
        samples = self._samples[request_id]
        for request in samples.take_held():
            self.scheduler.add(request)
        if samples.finished:
            del self._samples[request_id]

    def _forget(self, answer: Answer) -> None:
        del self._answers[answer.request.id], self._params[answer.request.id]
