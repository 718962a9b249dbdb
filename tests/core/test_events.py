"""An event stream stamps its events. Without a sink it is false, and no event is built."""

import pytest

from minicache.core import EventStream, HashChainCache, RadixCache, Request, Scheduler, SchedulerConfig, events
from minicache.core.errors import InvalidArgument
from minicache.core.event_log import TYPES
from minicache.core.events import Event, StepFinished, StepStarted
from minicache.core.views import EngineView
from tests.core.world import HASH, RADIX


def test_a_stream_is_false_until_somebody_listens():
    stream = EventStream()
    assert not stream
    stream.sinks.append(print)
    assert stream


def test_events_are_stamped_once_and_handed_to_every_sink_in_order():
    heard = []
    stream = EventStream(
        lambda event: heard.append(("first", event)), lambda event: heard.append(("second", event)), clock=lambda: 2.5
    )
    stream.emit(StepStarted())
    stream.step = 7
    stream.emit(StepFinished(3))
    assert [name for name, _ in heard] == ["first", "second"] * 2
    started, finished = heard[0][1], heard[2][1]
    assert (started.seq, started.step, started.time) == (0, 0, 2.5)
    assert (finished.seq, finished.step, finished.time) == (1, 7, 2.5)
    with pytest.raises(AttributeError):
        finished.num_tokens = 4


def test_an_error_in_a_sink_reaches_the_caller():
    def broken(event):
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        EventStream(broken).emit(StepStarted())


@pytest.mark.parametrize("subject", [HASH, RADIX], ids=lambda subject: subject.kind)
def test_without_a_sink_no_event_is_built(subject, monkeypatch):
    """The same run once with a sink, to show that it has many events, and once without."""
    built = []

    def run(*sinks):
        stream = EventStream(*sinks)
        cache = subject.cache(14, 2, events=stream)
        profile = SchedulerConfig.vllm if subject.kind == "hash" else SchedulerConfig.sglang
        scheduler = Scheduler(cache, profile(queue_policy="lpm"), events=stream)
        for number in range(6):
            scheduler.add(Request(f"r{number}", [1, 2, 3, 4, number % 2, 6], 5))
        while scheduler.has_unfinished:
            plan = scheduler.schedule()
            scheduler.update(plan, {item.request.id: 1 for item in plan.scheduled if item.samples})
        cache.evict(2)
        cache.reset()

    for kind in Event.__subclasses__():
        monkeypatch.setattr(kind, "__init__", _counting(kind.__init__, kind.__name__, built))
    run(lambda event: None)
    assert len(set(built)) > 10
    built.clear()
    run()
    assert built == []


def _counting(init, name, built):
    def counted(self, *args, **kwargs):
        built.append(name)
        init(self, *args, **kwargs)

    return counted


def test_every_event_type_says_what_it_means():
    plain = [name for name, kind in TYPES.items() if not kind.__doc__]
    assert plain == []
    assert all(getattr(events, name) is kind for name, kind in TYPES.items())


@pytest.mark.parametrize("new", [HashChainCache, RadixCache])
def test_a_cache_that_shrinks_says_which_blocks_go_and_never_hands_them_out(new):
    view = EngineView(11, 2)
    cache = new(11, 2, events=EventStream(view))
    stays, goes = Request("stays", [1, 2, 3, 4], 1), Request("goes", [5, 6, 7, 8], 1)
    for request in (stays, goes):
        assert cache.allocate(request, cache.lookup(request), 4)
        request.num_computed_tokens = 4
        cache.publish(request, 4)
    cache.release(goes)
    assert not cache.shrink(9), "two blocks are held, so eight are free"
    assert cache.shrink(7), "six are empty, and one is evicted"
    assert len(cache.snapshot().removed) == 7
    assert (cache.capacity, view.capacity, cache.num_free) == (3, 3, 1)
    later = Request("later", [9], 1)
    assert cache.allocate(later, cache.lookup(later), 1)
    assert not {*later.block_table, *stays.block_table} & {*view.removed}
    for request in (stays, later):
        cache.check()
        assert view.snapshot() == cache.snapshot()
        cache.release(request)
    assert cache.reset()
    cache.check()
    assert view.snapshot() == cache.snapshot()
    with pytest.raises(InvalidArgument, match="at least one must stay"):
        cache.shrink(3)
