"""A live engine as a source: it serves prompts in a thread of its own, and what it does becomes a timeline.

    screen            submit ──> prompts ──> thread: engine.submit, engine.step
    timeline <── poll <── events <───────────┘

Only `poll` touches the timeline, so whoever draws it needs no lock.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from queue import SimpleQueue
from typing import TYPE_CHECKING

from minicache.core.errors import InvalidArgument, MinicacheError
from minicache.core.events import Event
from minicache.sim.scenario import Kind
from minicache.sim.timeline import Timeline
from minicache.sim.tokens import EngineTokenWords

from .player import Player

if TYPE_CHECKING:
    from minicache.engine.engine import Engine
    from minicache.text.tokenizer import Tokenizer

CAPACITY = 1024  # tokens of KV: small enough for a few prompts to fill it
MAX_CONTEXT = 512
MAX_TOKENS = 24
MAX_EVENTS = 100_000  # of history; a request adds a few events a token, so it is never much more
SAMPLE = "Where is my parcel?"  # by which it is told what a token is
WAIT = 0.05  # seconds: how long an idle thread sleeps before it looks whether it is to end


class HistoryFull(MinicacheError):
    """There is no room for more events."""


class EngineFailed(MinicacheError):
    """The engine's thread came to an end."""


class LiveEngine:
    """Loads the model, which takes a second or more, and then serves. Raises as `Engine` does, `UnknownModel` first.

    `player` shows it. Close it, or use it in a `with` statement.
    """

    def __init__(self, model: str = "tiny", kind: Kind = "hash", max_events: int = MAX_EVENTS) -> None:
        self.model = model
        self.max_events = max_events
        self._prompts: SimpleQueue[tuple[str, list[int], int]] = SimpleQueue()
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._closing = threading.Event()
        self._wanted = threading.Event()
        self._failure: str | None = None
        self._count = 0
        self._watched: str | None = None
        self._engine = _load(model, kind, self._events.put)
        config = self._engine.config
        self.timeline = Timeline(
            self._engine.cache.capacity + 1,
            config.effective_block_size,
            {
                "title": f"A live engine: {model}",
                "cache": kind,
                "strategy": "lru",
                "clock": "measured",
                "scheduler": asdict(self._engine.scheduler.config),
            },
        )
        self.timeline.kind = kind
        self.timeline.token_words = self.token_words = EngineTokenWords(self._decode)
        self.token_words.unit = _unit(self._engine.tokenizer)
        self.player = Player(self.timeline, decode=self._decode)
        self.player.grows = True
        self._thread = threading.Thread(target=self._serve, name="live engine", daemon=True)
        self._thread.start()

    def __enter__(self) -> "LiveEngine":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def submit(self, prompt: str, max_tokens: int = MAX_TOKENS) -> str:
        """Queue a prompt; returns the id of its request. Raises `InvalidArgument` or `RequestTooLong` for one that
        cannot be served, `HistoryFull`, and `EngineFailed`."""
        from minicache.engine.sampling_params import SamplingParams

        self._require_running()
        if len(self.timeline) >= self.max_events:
            raise HistoryFull(
                f"the history is full: it keeps {self.max_events:,} events, and this run has {len(self.timeline):,}. "
                "You can still go back and forth in it; for more prompts start the engine anew"
            )
        if not prompt:
            raise InvalidArgument("the prompt is empty: type some text")
        intake = self._engine.intake
        tokens = intake.encode(prompt)
        intake.check(SamplingParams(max_tokens=max_tokens), len(tokens))
        self._count += 1
        request = f"prompt-{self._count}"
        self._prompts.put((request, tokens, max_tokens))
        self._wanted.set()
        return request

    def poll(self) -> bool:
        """Take in what happened since the last call; whether that was anything. A player that stood at the end goes on
        to the new end, or to the lookup that it watches for. Raises `EngineFailed` once all that happened before is
        taken in."""
        at_end = self.player.at_end
        grown = False
        while not self._events.empty():
            self.timeline.add(self._events.get())
            grown = True
        if grown:
            self.player.refresh()
            marks = None if self._watched is None else self.player.index.requests.get(self._watched)
            lookup = marks.lookups[0] if marks and marks.lookups else None
            if lookup is not None:
                self._watched = None
            if at_end:
                self.player.seek(len(self.timeline) if lookup is None else lookup)
        else:
            self._require_running()
        return grown

    def watch(self, request: str) -> None:
        """Go to the end, and on with it to where the lookup of a request that was submitted is told; stay there."""
        self._watched = request
        self.player.end()

    @property
    def busy(self) -> bool:
        """Whether there is something to serve or to take in."""
        return self._wanted.is_set() or not self._events.empty()

    def close(self) -> None:
        """End the thread, after the step that it is at, and wait for it. What it did can still be looked at."""
        if self._failure is None:
            self._failure = "this engine has ended. What it did until then is kept"
        self._closing.set()
        self._wanted.set()
        self.player.grows = False
        self._thread.join()

    def _require_running(self) -> None:
        if self._failure is not None:
            raise EngineFailed(self._failure)

    def _decode(self, tokens: Sequence[int]) -> str:
        tokenizer = self._engine.tokenizer
        return tokenizer.decode(tokens, keep_control=True) if tokenizer else " ".join(map(str, tokens))

    # The thread

    def _serve(self) -> None:
        try:
            while not self._closing.is_set():
                self._take_prompts()
                if self._engine.has_unfinished:
                    self._engine.step()
                elif self._prompts.empty():
                    self._wanted.clear()
                    self._wanted.wait(WAIT)
        except Exception as error:  # whatever it is, the screen must hear of it: the thread has nobody else to tell
            self._failure = f"the engine stopped: {type(error).__name__}: {error}. What it did until then is kept"

    def _take_prompts(self) -> None:
        from minicache.engine.sampling_params import SamplingParams

        while not self._prompts.empty():
            request, tokens, max_tokens = self._prompts.get()
            self._engine.submit(tokens, SamplingParams(max_tokens=max_tokens), request_id=request)


def _unit(tokenizer: "Tokenizer | None") -> str:
    """What a token is, in a sentence."""
    if tokenizer is None:
        return "A token is a number here: the model has no tokenizer."
    count = len(tokenizer.encode(SAMPLE))
    if count == len(SAMPLE.encode()):
        return "A token is one byte of text here."
    return f"A token is a piece of text here, as the model's tokenizer cuts it: “{SAMPLE}” is {count} of them."


def _load(model: str, kind: Kind, sink: Callable[[Event], None]) -> "Engine":
    """An engine whose whole pool can be seen at once."""
    from minicache.engine.engine import Engine
    from minicache.engine.engine_config import EngineConfig

    block_size = 16 if kind == "hash" else 1
    num_blocks = CAPACITY // block_size + 1
    config = EngineConfig(
        model=model, cache=kind, block_size=block_size, num_blocks=num_blocks, max_context=MAX_CONTEXT
    )
    return Engine(config, events=sink)
