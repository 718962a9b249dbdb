"""The engine: requests in, tokens out.

    submit ──> scheduler ──plan──> model runner ──tokens──> scheduler ──> outputs
                   │                     │
              prefix cache           KV cache
          (which block is whose)   (what is in it)

One thread drives an engine: none of its methods may be called while another runs.
"""

import itertools
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from minicache.core import Namespace, PrefixCache, Request, Scheduler
from minicache.core.errors import InvalidArgument, RequestTooLong
from minicache.core.events import Event
from minicache.core.request import DEFAULT_NAMESPACE
from minicache.engine.build import Parts, build_parts
from minicache.engine.engine_config import EngineConfig
from minicache.engine.errors import NoTokenizer
from minicache.engine.output import OutputStream, RequestOutput
from minicache.engine.sampler import SamplingParams
from minicache.text.tokenizer import StreamDecoder, Tokenizer

Prompt = str | Sequence[int]


class Engine:
    """A model, a KV cache, a prefix cache and a scheduler that share one pool of blocks.

    Loading raises `UnknownModel`, `UnsupportedModel`, `BrokenModel`, `BackendUnavailable` or `PoolTooSmall`. `events`
    is called with each event of cache and scheduler.
    """

    def __init__(
        self, config: EngineConfig | None = None, *, events: Callable[[Event], None] | None = None, **settings: object
    ) -> None:
        if config is not None and settings:
            raise InvalidArgument(f"give an EngineConfig or settings, not both: {', '.join(settings)}")
        self.config = config or EngineConfig(**settings)  # type: ignore[arg-type]
        self._start(build_parts(self.config, events))

    @classmethod
    def from_parts(cls, parts: Parts, config: EngineConfig | None = None) -> "Engine":
        """An engine of parts made by hand: a model in memory, a learner's cache, another attention."""
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
        self._streams: dict[str, OutputStream] = {}
        self._params: dict[str, SamplingParams] = {}
        self._numbers = itertools.count(1)

    def step(self) -> list[RequestOutput]:
        """Run one batch; returns the output of each request that gained a token or ended. Empty when idle.

        If the model raises, the step is undone, the error passes through, and the next step tries again.
        """
        plan = self.scheduler.schedule()
        with self.scheduler.undo_on_error(plan):
            sampled = self.runner.run(plan, self._params)
        finished = self.scheduler.update(plan, sampled)
        return self._collect(sampled, finished)

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

        Raises `InvalidArgument` (empty prompt, unknown token, id in use), `RequestTooLong` or `NoTokenizer`; the engine
        is then as it was before.
        """
        params = self._params_of(params)
        tokens = self.encode(prompt)
        if request_id is None:
            request_id = next(name for n in self._numbers if (name := f"request-{n}") not in self._streams)
        if request_id in self._streams:
            raise InvalidArgument(f"request id {request_id!r} is in use")
        request = Request(
            request_id,
            tokens,
            params.max_tokens,
            namespace=namespace,
            priority=priority,
            arrival=time.perf_counter(),
            skip_cache_read=skip_cache_read,
            stop_tokens={*params.stop_tokens, *(() if params.ignore_eos else self.eos_tokens)},
        )
        self._check_length(request)
        self.scheduler.add(request)
        decoder = StreamDecoder(self.tokenizer) if self.tokenizer else None
        self._streams[request_id] = OutputStream(request, decoder, request.arrival)
        self._params[request_id] = params
        return request_id

    def abort(self, request_id: str) -> RequestOutput | None:
        """End a request now; returns what it had, or None if there is no such request (any more)."""
        stream = self._streams.pop(request_id, None)
        if stream is None:
            return None
        self._params.pop(request_id)
        self.scheduler.abort(request_id)
        output = stream.update(time.perf_counter())
        output.finish_reason = output.finish_reason or "abort"
        return output

    def stream(
        self, prompt: Prompt, params: SamplingParams | None = None, **options: object
    ) -> Iterator[RequestOutput]:
        """Submit one prompt and yield its output after each step that changed it. Leaving the loop early aborts it.

        `options` are those of `submit`. Bad input raises at once, not at the first iteration.
        """
        return self._follow(self.submit(prompt, params, **options))  # type: ignore[arg-type]

    def _follow(self, request_id: str) -> Iterator[RequestOutput]:
        try:
            while request_id in self._streams:
                for output in self.step():
                    if output.request_id == request_id:
                        yield output
        finally:
            self.abort(request_id)

    def generate(
        self, prompts: Iterable[Prompt], params: SamplingParams | Sequence[SamplingParams] | None = None
    ) -> list[RequestOutput]:
        """Answer a batch of prompts; outputs in the order of the prompts. Requests submitted before are served too.

        If one prompt is refused, or the model raises, none of this batch stays queued.
        """
        prompts = list(prompts) if not isinstance(prompts, str) else [prompts]
        each = list(params) if isinstance(params, Sequence) else [params] * len(prompts)
        if len(each) != len(prompts):
            raise InvalidArgument(f"{len(prompts)} prompts need as many SamplingParams, not {len(each)}")
        ids: list[str] = []
        done: dict[str, RequestOutput] = {}
        try:
            for prompt, chosen in zip(prompts, each, strict=True):
                ids.append(self.submit(prompt, chosen))
            while len(done) < len(ids):
                done.update(
                    (output.request_id, output)
                    for output in self.step()
                    if output.finished and output.request_id in ids
                )
        finally:
            for request_id in ids:
                self.abort(request_id)
        return [done[request_id] for request_id in ids]

    @property
    def has_unfinished(self) -> bool:
        return self.scheduler.has_unfinished

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt, checked against the vocabulary."""
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise NoTokenizer("the model has no tokenizer: give the prompt as token ids")
            return self.tokenizer.encode(prompt)
        if not isinstance(prompt, Iterable):
            raise InvalidArgument(f"prompt must be text or token ids, not {prompt!r}")
        vocab_size = self.runner.model.config.vocab_size
        tokens = list(prompt)
        for position, token in enumerate(tokens):
            if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < vocab_size:
                raise InvalidArgument(
                    f"token {token!r} at position {position} is not in the vocabulary of {vocab_size:,}"
                )
        return tokens

    def _params_of(self, params: SamplingParams | None) -> SamplingParams:
        """The parameters with a seed of their own where they draw and name none."""
        params = params or SamplingParams()
        if not isinstance(params, SamplingParams):
            raise InvalidArgument(f"params must be SamplingParams, not {params!r}")
        return params if params.seed is not None else params.with_seed(secrets.randbits(63))

    def _check_length(self, request: Request) -> None:
        """Refuse what the model was not made for. What the pool cannot hold is refused by the scheduler."""
        needed = request.num_prompt_tokens + request.max_tokens
        what = f"a prompt of {request.num_prompt_tokens:,} tokens and max_tokens {request.max_tokens:,}"
        if needed > self.max_context:
            raise RequestTooLong(f"{what} exceed the context of {self.max_context:,}")

    def _collect(self, sampled: Iterable[str], finished: Iterable[Request]) -> list[RequestOutput]:
        """Bring outputs up to date and forget the requests that ended."""
        now = time.perf_counter()
        changed = dict.fromkeys([*sampled, *(request.id for request in finished)])
        outputs = [self._streams[id].update(now) for id in changed if id in self._streams]
        for output in outputs:
            if output.finished:
                del self._streams[output.request_id], self._params[output.request_id]
        return outputs
