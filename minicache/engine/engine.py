"""The engine: requests in, tokens out.

    submit ──> scheduler ──plan──> model runner ──tokens──> scheduler ──> outputs
                   │                     │
              prefix cache           KV cache
          (who holds a block)      (its content)

One thread drives it: see `Engine`.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from minicache.core import Namespace, PrefixCache, Request, Scheduler
from minicache.core.errors import InvalidArgument
from minicache.core.events import Event
from minicache.core.request import DEFAULT_NAMESPACE
from minicache.engine.answers import Answer, RequestOutput, Samples, Unseen, sample_id
from minicache.engine.build import Parts, build_parts
from minicache.engine.engine_config import EngineConfig
from minicache.engine.errors import EngineBusy
from minicache.engine.guard import Guard, HeldInterrupts, guarded
from minicache.engine.intake import Intake, Prompt
from minicache.engine.model_runner import StepResult
from minicache.engine.models.loader import with_weights
from minicache.engine.sampling_params import SamplingParams
from minicache.text.tokenizer import Tokenizer


class Engine:
    """A model, a KV cache, a prefix cache and a scheduler that share one pool of blocks.

    Loading raises `UnknownModel`, `UnsupportedModel`, `BrokenModel`, `BackendUnavailable` or `PoolTooSmall`. `events`
    is called with each event of cache and scheduler.

    Ctrl-C is held back while something changes: a call that it ends has undone its step, or has done all its work. An
    error in the middle of a change, for example one that `events` raises, breaks the engine: from then on every call
    raises `EngineBroken` until `reset`.

    Threads: one at a time. While a call runs, another call (from another thread, or from `events`) does not wait: it
    raises `EngineBusy` and changes nothing; if `events` lets that pass, it is an error in the middle of a change. A
    server therefore has one thread that steps, and that takes requests and aborts from a queue. Outputs grow in place
    during `step`: hand copies to other threads.
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
        self.runner = parts.runner
        self.eos_tokens = parts.eos_tokens
        self.max_context = parts.max_context
        self.guard = Guard()
        self._make_scheduler = parts.make_scheduler
        self._numbers = itertools.count(1)
        self._begin(parts.scheduler)

    def _begin(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.cache: PrefixCache = scheduler.cache
        self._samples: dict[str, Samples] = {}  # by the id that was submitted
        self._answers: dict[str, Answer] = {}  # by core request; a submitted request has n of these
        self._params: dict[str, SamplingParams] = {}
        self._abandoned: list[Samples] = []  # their streams were collected as garbage while a call ran

    @guarded
    def step(self) -> list[RequestOutput]:
        """Run one batch; returns each answer that gained a token or ended. Empty when idle.

        If the model raises, undoes the step and lets the error through; the next step tries again.
        """
        plan = self.scheduler.schedule()
        with self.scheduler.undo_on_error(plan), self.guard.interruptible():
            result = self.runner.run(plan, self._params)
        finished = self.scheduler.update(plan, result.tokens)
        return self._collect(result, finished)

    @guarded
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
        with self.guard.interruptible():
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
                hold=not self.scheduler.config.shares_within_step,
                namespace=namespace,
                priority=priority,
                skip_cache_read=skip_cache_read,
            )
            if self._taken(request_id, params.n):
                raise InvalidArgument(f"request id {request_id!r} is in use")
            self.scheduler.require_possible(samples.answers[0].request)  # all are equally long
        for request in samples.queue():
            self.scheduler.add(request)
        self._samples[request_id] = samples
        for answer in samples.answers:
            self._answers[answer.request.id], self._params[answer.request.id] = answer, answer.params
        self.guard.deliver(undo=lambda: self._end(samples))  # the caller would not get the id
        return request_id

    @guarded
    def abort(self, request_id: str) -> RequestOutput | None:
        """End a request now; returns its output so far, or None if it is unknown or has ended."""
        samples = self._samples.get(request_id)
        if samples is not None:
            self._end(samples)
        return None if samples is None else samples.output

    @guarded
    def reset_prefix_cache(self, preempt_running: bool = False) -> bool:
        """Forget all cached KV. `False`, with nothing changed, while requests run: they hold blocks.

        With `preempt_running` they give up their blocks and compute everything again; their answers stay the same.
        """
        return self.scheduler.reset_cache(preempt_running)

    @guarded
    def update_weights(self, source: Mapping[str, Tensor] | str | Path) -> None:
        """Replace the weights by others of the same shape: a state dict under Hugging Face names, or those of another
        model, given by folder or name.

        Empties the cache: KV of the old weights is never used again. Running requests compute their prompt and their
        output so far again, then go on. Holds both sets of weights in memory meanwhile. Raises `BrokenModel`,
        `UnknownModel` or `InvalidArgument`; the old weights then stay.
        """
        with self.guard.interruptible():
            model = with_weights(self.runner.model, source)
        self.scheduler.reset_cache(preempt_running=True)
        self.runner.model = model

    @guarded
    def reset(self) -> None:
        """Make the engine as new, with the same model: drops all requests and all cached KV. The only call, apart from
        those that only read, that a broken engine accepts.

        Outputs of unfinished requests end with "abort". The events begin again with `seq` 0, so a view of them begins
        again too.
        """
        answers = list(self._answers.values())
        self._begin(self._make_scheduler())
        for output in [answer.output for answer in answers if not answer.output.finished]:
            output.finish_reason, output.timings.finished = "abort", time.perf_counter()
        self.guard.broken = None

    def stream(
        self, prompt: Prompt, params: SamplingParams | None = None, **options: object
    ) -> Iterator[RequestOutput]:
        """Submit one prompt and yield its output whenever it has changed; the last one that is yielded has finished.
        Leaving the loop early aborts the request.

        Streams may be open at the same time: each runs a step when it has nothing new to yield, and every step serves
        all of them. `new_token_ids` and `new_text` are what has come since the stream yielded last.

        With n > 1 yields the outputs of all answers, each with its `index`. `options` are those of `submit`. Bad input
        raises at once, not at the first iteration.
        """
        following = self._follow(prompt, params, **options)
        next(following)  # started: the request is queued, and is aborted even if the stream is never iterated
        return cast(Iterator[RequestOutput], following)

    def _follow(self, *submission: Any, **options: Any) -> Iterator[RequestOutput | None]:
        requests: list[Samples] = []
        try:
            self._note(requests, *submission, **options)
            yield None
            outputs = requests[0].output.choices
            unseen = [Unseen(output) for output in outputs]
            while True:
                has_changed = False
                for one in unseen:  # each is taken when it is yielded: between two yields others may run a step
                    if one.take():
                        has_changed = True
                        yield one.output
                if not has_changed:
                    if all(output.finished for output in outputs):
                        return
                    self.step()
        finally:
            self._withdraw(requests)

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
        requests: list[Samples] = []
        try:
            for prompt, chosen in zip(prompts, each, strict=True):
                self._note(requests, prompt, chosen)
            while not all(samples.finished for samples in requests):
                self.step()
        finally:
            self._withdraw(requests)
        return [samples.output for samples in requests]

    def _note(self, requests: list[Samples], *submission: Any, **options: Any) -> None:
        """Submit a prompt and append its samples to `requests`: if Ctrl-C comes, both have happened or neither has."""
        with HeldInterrupts():
            requests.append(self._samples[self.submit(*submission, **options)])

    def _withdraw(self, requests: Iterable[Samples]) -> None:
        """Abort what has not finished of these requests. A broken engine keeps them until `reset`."""
        with HeldInterrupts():
            for samples in requests:
                if self.guard.broken is None and self._is_live(samples):
                    try:
                        self.abort(samples.output.request_id)
                    except EngineBusy:
                        self._abandoned.append(samples)

    def _is_live(self, samples: Samples) -> bool:
        """Whether the request has not ended. A later one may have its id."""
        return self._samples.get(samples.output.request_id) is samples

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
        for samples in filter(self._is_live, self._abandoned):
            self._end(samples)
        self._abandoned.clear()
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

    def _end(self, samples: Samples) -> None:
        """Abort what has not finished of a request, and forget it."""
        del self._samples[samples.output.request_id]
        for answer in samples.answers:
            if answer.output.finished:
                continue
            if answer.request not in samples.held and not answer.request.status.is_final:
                self.scheduler.abort(answer.request.id)
            answer.update(time.perf_counter(), ended="abort")
            self._forget(answer)

    def _advance(self, request_id: str) -> None:
        """Queue the samples that waited for the prompt to be computed; forget a request whose answers all ended."""
        samples = self._samples[request_id]
        for request in samples.take_held():
            self.scheduler.add(request)
        if samples.finished:
            del self._samples[request_id]

    def _forget(self, answer: Answer) -> None:
        del self._answers[answer.request.id], self._params[answer.request.id]
