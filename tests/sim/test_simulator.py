"""The simulator is the engine's loop: deterministic, truthful about its events, and equal to the engine's cache."""

from dataclasses import fields, replace
from itertools import groupby

import pytest

from minicache.core import EventStream, HashChainCache, Request, Scheduler
from minicache.core import events as ev
from minicache.core.errors import InvalidArgument
from minicache.core.views import EngineView
from minicache.sim.cost_model import DEVICES, MODELS, CostModel
from minicache.sim.errors import Stuck
from minicache.sim.figures import LAST_PREFILL, RECENT
from minicache.sim.fork import SetBlockSize
from minicache.sim.library import find_scenario
from minicache.sim.narrator import Narrator
from minicache.sim.redact import redacted
from minicache.sim.simulator import Simulator, build_cache
from minicache.sim.timeline import Timeline
from minicache.sim.tokens import RecordedSampler, Sampler
from tests.sim.goldens import cases

SMALL = ["two-equal-prompts", "tail-first", "preempt-and-resume", "vllm-design-page", "radix-split-and-prune"]


@pytest.mark.parametrize(("name", "kind"), [case for case in cases() if case[0] in SMALL])
def test_the_view_equals_the_state_after_every_step(name, kind):
    scenario = find_scenario(name)
    cache = scenario.caches[kind]
    view = EngineView(cache.num_blocks, cache.block_size)
    sim = Simulator.of(scenario, kind, view)
    while sim.step() is not None:
        sim.cache.check()
        assert view.snapshot() == sim.cache.snapshot()
        assert view.scheduler_snapshot() == sim.scheduler.snapshot()


@pytest.mark.parametrize(("name", "kind"), cases())
def test_the_summary_counts_as_the_scheduler_does(name, kind):
    scenario = find_scenario(name)
    timeline = Timeline.for_scenario(scenario, kind)
    sim = Simulator.of(scenario, kind, timeline)
    sim.run()
    rates = timeline.index.hit_rates
    assert rates[RECENT] == pytest.approx(sim.scheduler.recent_hit_rate.value)
    assert rates[LAST_PREFILL] == pytest.approx(sim.scheduler.last_prefill_hit_rate.value)
    assert timeline.index.totals["peak_blocks"] <= sim.cache.capacity


def test_the_same_scenario_gives_the_same_events_and_another_seed_others():
    first, second = (Timeline.record(find_scenario("multi-turn"), "hash") for _ in range(2))
    assert first.events == second.events
    assert Timeline.record(find_scenario("multi-turn", ["seed=1"]), "hash").events != first.events


def test_equal_prompts_get_equal_answers_and_an_adapter_is_another_model():
    sample = Sampler(0)
    one, two = Request("one", [1, 2, 3]), Request("two", [1, 2, 3])
    assert sample(one) == sample(two)
    assert Sampler(1)(one) != sample(one)
    base, legal = (find_scenario("adapters-and-salts").requests[index] for index in (0, 2))
    assert sample(Request("a", [1], namespace=base.namespace)) != sample(Request("b", [1], namespace=legal.namespace))


def test_requests_that_wait_for_ever_stop_the_run():
    scenario = find_scenario("tail-first")
    sim = Simulator.of(scenario, "hash")
    assert sim.cache.allocate(Request("of another user", [0]), None, 6 * sim.cache.block_size)
    with pytest.raises(Stuck, match="can never be admitted"):
        sim.run()


def test_parts_can_be_handed_in():
    scenario = find_scenario("tail-first")
    events = EventStream()
    cache = build_cache(scenario.caches["hash"], events)
    sim = Simulator(scenario, cache, Scheduler(cache, scenario.schedulers["hash"], events=events), CostModel())
    sim.run()
    assert sim.outputs["a"]
    radix = build_cache(scenario.caches["radix"], events)
    with pytest.raises(InvalidArgument, match="publish"):
        Scheduler(radix, scenario.schedulers["hash"], events=events)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hash", "radix"])
@pytest.mark.parametrize("name", ["two-equal-prompts", "preempt-and-resume", "tail-first", "short-prompt"])
def test_simulator_and_engine_have_the_same_events(name, kind):
    """With `tiny`, the same requests, and the tokens that the engine sampled. Who comes later finds both idle."""
    from minicache.engine import Engine, EngineConfig, SamplingParams

    scenario = find_scenario(name)
    cache = scenario.caches[kind]
    theirs, ours, outputs = [], [], {}
    settings = EngineConfig(
        model="tiny", cache=kind, block_size=cache.block_size, num_blocks=cache.num_blocks, dtype="float32"
    )
    engine = Engine(settings, events=theirs.append)
    engine.scheduler.reconfigure(scenario.schedulers[kind])
    for _, specs in groupby(sorted(scenario.requests, key=lambda spec: spec.at), key=lambda spec: spec.at):
        for spec in specs:
            tokens = [token for part in spec.prompt for token in part.text.encode()]
            engine.submit(tokens, SamplingParams(max_tokens=spec.max_tokens, ignore_eos=True), request_id=spec.id)
        while engine.has_unfinished:
            outputs |= {output.request_id: list(output.token_ids) for output in engine.step()}
    Simulator.of(scenario, kind, ours.append, sampler=RecordedSampler(outputs)).run()
    assert list(map(facts, ours)) == list(map(facts, theirs))
    assert any(type(event).__name__ == "BlocksPublished" for event in theirs)


def facts(event):
    """All but the times, which no two clocks have in common."""
    names = (item.name for item in fields(event))
    return type(event).__name__, *(getattr(event, name) for name in names if name not in ("time", "arrival"))


def test_redaction_keeps_the_story_and_hides_the_text():
    timeline = Timeline.record(find_scenario("timestamp-top"), "hash")
    hidden = redacted(timeline, key=b"k" * 16)
    assert [type(e) for e in hidden.events] == [type(e) for e in timeline.events]
    before, after = timeline.index.to_json(), hidden.index.to_json()
    assert before == after
    seen = {token for event in hidden.events for token in getattr(event, "tokens", ())}
    assert min(seen) >= 1 << 40
    hashes = {h for event in timeline.events for h in getattr(event, "hashes", ())}
    assert not hashes & {h for event in hidden.events for h in getattr(event, "hashes", ())}
    lookups = [line.words for line in Narrator(hidden).lines() if "user2 looks up" in line.words]
    assert "Its block 0 differs from user1's at token 13: a redacted token" in lookups[0]
    assert hidden.events != redacted(timeline).events, "each time with another key"
    assert hidden.scenario is None


@pytest.mark.parametrize("change", [None, SetBlockSize(4)], ids=str)
def test_redaction_keeps_the_reason_of_every_lookup(change):
    timeline = Timeline.record(find_scenario("chunked-prefill"), "hash")
    if change is not None:
        timeline = timeline.fork(timeline.place_of_step(6), change)
    hidden = redacted(timeline)
    lookups = [place for place, event in enumerate(timeline.events) if isinstance(event, ev.PrefixMatched)]
    assert lookups
    for place in lookups:
        before, after = timeline.findings.at(place), hidden.findings.at(place)
        assert replace(after, here=before.here, there=before.there) == before
    view = hidden.at(len(hidden) - 1)
    for event in hidden.events:
        if isinstance(event, ev.BlocksPublished):
            tokens = view.ended[event.request].tokens
            assert list(event.tokens) == tokens[event.start : event.start + len(event.tokens)]


def test_redaction_hides_the_error_of_a_failed_step():
    events = EventStream()
    timeline = Timeline(9, 4)
    events.sinks.append(timeline)
    scheduler = Scheduler(HashChainCache(9, 4, events=events), events=events)
    scheduler.add(Request("r", list(b"secret"), 1))
    with pytest.raises(RuntimeError), scheduler.undo_on_error(scheduler.schedule()):
        raise RuntimeError("secret")
    lines = [line.words for line in Narrator(redacted(timeline)).lines()]
    assert any("the model run of step 1 failed (redacted)" in line for line in lines)
    assert not any("secret" in line for line in lines)


def test_redaction_hides_stop_tokens():
    scenario = find_scenario("tail-first")
    stop = (ord("x"), ord("y"))
    scenario = replace(scenario, requests=tuple(replace(spec, stop_tokens=stop) for spec in scenario.requests))
    arrived = redacted(Timeline.record(scenario)).events[0]
    assert len(arrived.stop_tokens) == 2
    assert min(arrived.stop_tokens) >= 1 << 40


def test_a_measured_clock_counts_from_the_first_event(monkeypatch):
    monkeypatch.setattr("minicache.sim.timeline.WORK", 10)
    timeline = Timeline.record(find_scenario("tail-first"))
    measured = Timeline(timeline.settings["num_blocks"], timeline.settings["block_size"])
    for event in timeline.events:
        measured.add(event)
        object.__setattr__(event, "time", event.time + 1000.0)
    assert next(line.words for line in Narrator(measured).lines() if "begins" in line.words).startswith(
        "Step 1 begins at 0.000 s:"
    )
    last = len(measured) - 1
    assert Narrator(measured).line(last).words == list(Narrator(measured).lines())[last].words
    figures = measured.index.to_json()
    assert figures["measured_seconds"] == pytest.approx(2.0, abs=0.2)
    assert "modelled_seconds" not in figures


def test_who_is_aborted_waits_no_more():
    scenario = find_scenario("tail-first")
    timeline = Timeline.for_scenario(scenario, "hash")
    sim = Simulator.of(scenario, "hash", timeline)
    for number in range(5):
        request = Request(f"gone{number}", [1, 2, 3])
        sim.scheduler.add(request)
        sim.scheduler.abort(request.id)
    sim.run()
    assert timeline.index.requests["gone4"].outcome == "aborted"
    assert timeline.index.totals["max_waiting"] <= 2


def test_redaction_hides_salts_and_keeps_prefixes():
    timeline = Timeline.record(find_scenario("adapters-and-salts"), "radix")
    hidden = redacted(timeline)
    salts = {e.namespace.salt for e in hidden.events if hasattr(e, "namespace")} - {None}
    assert len(salts) == 2
    assert not salts & {"tenant-a", "tenant-b"}
    assert hidden.index.cached_tokens == timeline.index.cached_tokens
    hidden.at(len(hidden) - 1)


def test_cost_models_name_their_sources_and_say_modelled():
    for item in (*MODELS.values(), *DEVICES.values()):
        assert len(item.source) > 40
    assert "modelled, not measured" in CostModel().describe()
    qwen = MODELS["qwen2.5-7b"]
    assert qwen.kv_bytes_per_token == 57_344
    with pytest.raises(InvalidArgument, match="device must be one of a100, h100, 2-cpu-cores, not 'h10': did you mean"):
        CostModel.named("qwen2.5-7b", "h10")


def test_the_roofline_by_hand():
    scenario = find_scenario("last-token")
    sim = Simulator.of(scenario, "hash")
    plan = sim.step()
    cost = CostModel().step(plan)
    qwen = MODELS["qwen2.5-7b"]
    attended = 64 * 65 / 2
    flops = 2 * 6.53e9 * 64 + 2 * 152_064 * 3584 + 4 * 28 * 28 * 128 * attended
    moved = (64 + 64) * 57_344 + qwen.weight_bytes
    assert cost.flops == pytest.approx(flops)
    assert cost.bytes == pytest.approx(moved)
    assert cost.seconds == pytest.approx(0.004 + flops / 156e12 + moved / 1.0195e12)
    faster = CostModel.named("qwen2.5-7b", "h100").step(plan)
    assert faster.seconds < cost.seconds
