"""Whatever ends a call of the engine, the engine goes on, or says that it is broken and can be reset.

While one program uses every call of the engine, SIGINT and errors come at lines chosen at random, and errors come from
the callback of events. Afterwards the cache is checked, no block stays held, and answers are those of an undisturbed
engine.
"""

import itertools
import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache as cached
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import minicache
from minicache.core import EventStream, HashChainCache, RadixCache, Scheduler, SchedulerConfig
from minicache.core.errors import MinicacheError
from minicache.core.events import Event, RequestArrived
from minicache.core.views import EngineView
from minicache.engine import Engine, RequestOutput, SamplingParams
from minicache.engine.backends import make_backend
from minicache.engine.build import Parts
from minicache.engine.errors import EngineBroken
from minicache.engine.kv_cache import KVCache
from minicache.engine.model_runner import ModelRunner
from minicache.text.byte_tokenizer import ByteTokenizer
from tests.properties.serving import tiny_model

GREEDY = SamplingParams(max_tokens=5, temperature=0.0)
PAIR = SamplingParams(max_tokens=4, temperature=1e-4, n=2)  # as good as greedy
PROMPTS = ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 9], [1, 2, 7, 7, 7, 7, 7, 8], [5, 1, 2, 3])
SETTINGS = {
    "hash": (lambda events: HashChainCache(14, 2, events=events), SchedulerConfig.vllm),
    "radix": (lambda events: RadixCache(28, events=events), SchedulerConfig.sglang),
}
PRODUCT = Path(minicache.__file__).parent
Sink = Callable[[Event], None]


def make_engine(kind: str, sink: Sink | None = None) -> Engine:
    make_cache, make_config = SETTINGS[kind]

    def make_scheduler() -> Scheduler:
        events = EventStream(sink) if sink else EventStream()
        return Scheduler(make_cache(events), make_config(max_num_batched_tokens=8), events=events)

    attention, model, scheduler = make_backend("fast_cpu").attention, tiny_model(), make_scheduler()
    cache = scheduler.cache
    kv_cache = KVCache(model.config, cache.capacity + 1, cache.block_size, model.dtype, kv_order=attention.kv_order)
    runner = ModelRunner(model, kv_cache, attention)
    return Engine.from_parts(Parts(runner, scheduler, make_scheduler, ByteTokenizer(), frozenset(), 64))


def use_everything(engine: Engine, outputs: list[RequestOutput]) -> None:
    """Every call of the engine; `outputs` collects what the requests of this program got."""
    stream = engine.stream(PROMPTS[0], GREEDY)
    outputs.append(next(stream))
    engine.submit(PROMPTS[1], GREEDY, request_id="aborted")
    engine.submit(PROMPTS[2], PAIR, request_id="pair")
    outputs += engine._samples["pair"].output.choices
    engine.step()
    engine.abort("aborted")
    outputs += engine.generate(PROMPTS[2:], GREEDY)
    engine.reset_prefix_cache(preempt_running=True)
    outputs += stream
    while engine.has_unfinished:
        engine.step()


@cached
def expected(kind: str) -> dict[tuple[int, ...], list[int]]:
    """The greedy answer to each prompt, alone in an engine."""
    engine = make_engine(kind)
    return {tuple(prompt): engine.generate([prompt], GREEDY)[0].token_ids for prompt in PROMPTS}


def assert_whole(engine: Engine, outputs: list[RequestOutput], kind: str) -> None:
    """The engine serves what it still has, holds no block then, and answers as one that nothing has disturbed."""
    while engine.has_unfinished:
        engine.cache.check()
        engine.step()
    engine.cache.check()
    assert engine.cache.num_free == engine.cache.capacity, "blocks leaked"
    assert not engine._answers
    assert not engine._params
    answers = expected(kind)
    for output in outputs:
        answer = next(answers[tuple(p)] for p in PROMPTS if len(p) == output.prompt_tokens)
        assert output.token_ids == answer[: len(output.token_ids)]
        assert output.finished
    assert [output.token_ids for output in engine.generate(PROMPTS, GREEDY)] == list(answers.values())


class Stop:
    """A trace that calls `act` at the line with number `at`, counted over the core and the engine."""

    def __init__(self, at: int, act: Callable[[], object], spare: tuple[str, ...] = ()) -> None:
        self.at, self.act, self.spare, self.lines = at, act, spare, 0

    def __call__(self, frame: FrameType, kind: str, argument: object) -> object:
        file = Path(frame.f_code.co_filename)
        ours = file.is_relative_to(PRODUCT / "core") or file.is_relative_to(PRODUCT / "engine")
        return self._line if ours and file.name not in self.spare else None

    def _line(self, frame: FrameType, kind: str, argument: object) -> object:
        if kind == "line":
            self.lines += 1
            if self.lines == self.at:
                self.act()
        return self._line


@contextmanager
def traced(stop: Stop) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(stop)
    try:
        yield
    finally:
        sys.settrace(before)


@cached
def num_lines(kind: str) -> int:
    """The lines of the program, once what the first run caches is there. Runs differ by a few, as their seeds do."""
    for _ in range(2):
        stop = Stop(0, lambda: None)
        with traced(stop):
            use_everything(make_engine(kind), [])
    return stop.lines


class Planted(Exception):
    """Raised on purpose."""


def fail() -> None:
    raise Planted


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def disturbed(engine: Engine, stop: Stop) -> tuple[BaseException | None, list[RequestOutput]]:
    """Run the program with this stop; returns the error that it ended with."""
    outputs: list[RequestOutput] = []
    try:
        with traced(stop):
            use_everything(engine, outputs)
    except (KeyboardInterrupt, Planted, EngineBroken) as error:
        return error, outputs
    return None, outputs


def interrupts(kind: str, count: int) -> None:
    """Ctrl-C at `count` lines: nothing is ever broken."""
    for at in random.Random(count).sample(range(1, num_lines(kind)), count):
        engine, stop = make_engine(kind), Stop(at, interrupt)
        error, outputs = disturbed(engine, stop)
        assert isinstance(error, KeyboardInterrupt) or stop.lines < at, "an interrupt was lost"
        assert engine.guard.broken is None, f"line {at}"
        assert_whole(engine, outputs, kind)


def errors(kind: str, count: int) -> None:
    """An error at `count` lines: the engine is whole, or it refuses every call until it is reset."""
    broken = 0
    for at in random.Random(count).sample(range(1, num_lines(kind)), count):
        engine = make_engine(kind)
        error, outputs = disturbed(engine, Stop(at, fail, spare=("guard.py",)))
        if engine.guard.broken is not None:
            broken += 1
            require_refusal(engine)
            engine.reset()
        if error is not None:
            assert_whole(engine, outputs, kind)
    assert broken, "no error came in the middle of a change"


def require_refusal(engine: Engine) -> None:
    calls: tuple[Callable[[], object], ...] = (
        engine.step,
        lambda: engine.submit([1]),
        lambda: engine.generate([[1]]),
        lambda: engine.stream([1]),
        lambda: engine.abort("pair"),
        engine.reset_prefix_cache,
        lambda: engine.update_weights("tiny"),
    )
    for call in calls:
        with pytest.raises(EngineBroken, match=r"^\w+\(\) is refused: .* Call reset\(\), which drops all requests"):
            call()


@pytest.mark.parametrize("kind", SETTINGS)
def test_ctrl_c_at_any_line_leaves_the_engine_whole(kind: str) -> None:
    interrupts(kind, 8)


NOT_THE_GUARD = tuple(
    path.name for part in ("core", "engine") for path in (PRODUCT / part).rglob("*.py") if path.name != "guard.py"
)


def test_ctrl_c_at_each_line_of_the_guard_leaves_the_engine_whole() -> None:
    """An interrupt can come at the line of a `with` statement, outside of what it guards."""
    for at in itertools.count(1):
        engine, stop = make_engine("hash"), Stop(at, interrupt, spare=NOT_THE_GUARD)
        with suppress(KeyboardInterrupt), traced(stop):
            engine.submit(PROMPTS[0], GREEDY)
        assert engine.guard.broken is None, f"line {at}"
        if stop.lines < at:
            break
    assert at > 20


@pytest.mark.parametrize("kind", SETTINGS)
def test_an_error_at_any_line_is_survived(kind: str) -> None:
    errors(kind, 8)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", SETTINGS)
def test_ctrl_c_and_errors_at_hundreds_of_lines(kind: str) -> None:
    interrupts(kind, 400)
    errors(kind, 400)


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_callback_that_raises_breaks_the_engine_until_it_is_reset(kind: str) -> None:
    seen: list[Event] = []
    engine = make_engine(kind, seen.append)
    use_everything(engine, [])
    total = len(seen)
    for bad in range(0, total, max(1, total // 12)):
        events: list[Event] = []

        def sink(event: Event, events: list[Event] = events, bad: int = bad) -> None:
            events.append(event)
            if len(events) == bad + 1:
                raise Planted

        engine, outputs = make_engine(kind, sink), []
        with pytest.raises(Planted):
            use_everything(engine, outputs)
        require_refusal(engine)
        engine.reset()
        begun = len(events)
        assert_whole(engine, outputs, kind)
        view = EngineView(engine.cache.capacity + 1, engine.cache.block_size)  # the events have begun again
        for event in events[begun:]:
            view.apply(event)
        assert events[begun].seq == 0
        assert view.snapshot() == engine.cache.snapshot()
        assert view.scheduler_snapshot() == engine.scheduler.snapshot()


def test_what_is_refused_breaks_nothing() -> None:
    engine = make_engine("hash")
    for refused in ([], [10_000], "x" * 200, [1] * 40):
        with pytest.raises(MinicacheError):
            engine.submit(refused)
    with pytest.raises(ZeroDivisionError):
        engine.submit(1 // zero for zero in [0])  # type: ignore[arg-type]
    assert engine.guard.broken is None
    assert engine.generate([PROMPTS[0]], GREEDY)


def test_a_step_between_two_answers_of_a_stream_loses_no_token() -> None:
    engine = make_engine("hash")
    stream = engine.stream(PROMPTS[0], PAIR)
    engine.step()
    engine.step()
    first = next(stream)
    got = {first.index: list(first.new_token_ids)}
    engine.step()
    for output in stream:
        got.setdefault(output.index, []).extend(output.new_token_ids)
    answer = expected("hash")[tuple(PROMPTS[0])][:4]
    assert got == {0: answer, 1: answer}


@given(
    st.sampled_from(list(SETTINGS)),
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=4),
    st.lists(st.sampled_from(["next", "step", "generate", "close"]), max_size=12),
    st.randoms(use_true_random=False),
)
def test_each_open_stream_yields_all_of_its_answer(
    kind: str, wanted: list[tuple[int, bool]], moves: list[str], chance: random.Random
) -> None:
    engine = make_engine(kind)
    streams = [engine.stream(PROMPTS[prompt], PAIR if pair else GREEDY) for prompt, pair in wanted]
    got: list[list[tuple[int, str, RequestOutput]]] = [[] for _ in streams]
    closed = set()

    def take(index: int) -> bool:
        output = next(streams[index], None)
        if output is not None:
            got[index] += [(output.index, token, output) for token in output.new_token_ids]
        return output is not None

    for move in moves:
        index = chance.randrange(len(streams))
        if move == "next":
            take(index)
        elif move == "step":
            engine.step()
        elif move == "generate":
            assert engine.generate([PROMPTS[0]], GREEDY)[0].token_ids == expected(kind)[tuple(PROMPTS[0])]
        else:
            streams[index].close()  # type: ignore[attr-defined]
            closed.add(index)
    for index, (prompt, pair) in enumerate(wanted):
        while take(index):
            pass
        if index not in closed:
            answer = expected(kind)[tuple(PROMPTS[prompt])][: 4 if pair else 5]
            for sample in range(2 if pair else 1):
                pieces = [(token, output) for one, token, output in got[index] if one == sample]
                assert [token for token, _ in pieces] == answer
                assert pieces[-1][1].finish_reason == "length"
    engine.cache.check()
    assert not engine.has_unfinished
    assert engine.cache.num_free == engine.cache.capacity


def test_a_handler_that_raises_nothing_costs_no_request() -> None:
    """A server notes Ctrl-C, and serves what it has taken: every submitted request is answered."""
    noted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        engine = make_engine("hash", lambda event: interrupt() if isinstance(event, RequestArrived) else None)
        request = engine.submit(PROMPTS[0], GREEDY)
        assert request in engine._samples
        stream = engine.stream(PROMPTS[1], GREEDY)
        [answer] = engine.generate([PROMPTS[2]], GREEDY)
    finally:
        signal.signal(signal.SIGINT, before)
    assert noted == [signal.SIGINT] * 3
    answers = expected("hash")
    assert answer.token_ids == answers[tuple(PROMPTS[2])]
    assert [*stream][-1].token_ids == answers[tuple(PROMPTS[1])]


def test_a_stream_collected_in_the_middle_of_a_call_is_ended_by_the_step() -> None:
    streams: list[object] = []
    engine = make_engine("hash", lambda event: streams.clear())
    kept = engine.stream(PROMPTS[1], GREEDY)
    streams.append(engine.stream(PROMPTS[0], GREEDY))
    assert len(engine._samples) == 2
    assert next(kept).new_token_ids
    assert len(engine._samples) == 1
    assert [*kept][-1].token_ids == expected("hash")[tuple(PROMPTS[1])]
    assert engine.cache.num_free == engine.cache.capacity


def test_a_stream_from_before_a_reset_ends_no_request_after_it() -> None:
    engine = make_engine("hash")
    old = engine.stream(PROMPTS[0], GREEDY, request_id="x")
    engine.reset()
    engine.submit(PROMPTS[1], GREEDY, request_id="x")
    assert [output.finish_reason for output in old] == ["abort"]
    assert engine.has_unfinished


def test_a_stream_whose_request_is_aborted_yields_its_last_output() -> None:
    engine = make_engine("hash")
    stream = engine.stream(PROMPTS[0], GREEDY)
    first = next(stream)
    engine.abort(first.request_id)
    assert [output.finish_reason for output in stream] == ["abort"]
