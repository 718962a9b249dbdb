"""The engine's benchmark on the small model: what is measured, what is compared, and what the report says of it."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from minicache.bench import engine
from minicache.bench.conditions import Conditions
from minicache.bench.engine import (
    BATCH_OF_8,
    BATCH_STEPS,
    ONE_TOKEN,
    OURS,
    PREFILL,
    SINGLE_STEPS,
    THEIRS,
    WARM,
    EngineBench,
    Found,
    Machine,
    Memory,
    Timing,
    Work,
)
from minicache.bench.engine_arms import MinicacheArm, TransformersArm
from minicache.cli import main as cli
from minicache.core.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="the engine needs torch: pip install 'minicache-llm[engine]'")


@pytest.fixture(scope="module")
def alone():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "PROMPT_TOKENS", 300)
        patch.setattr(engine, "COPIED", 1 << 12)
        return EngineBench("tiny", rounds=2).run()


def made_up(**changes):
    """A result in which ours takes 1 s for everything; theirs 2 s for a prefill, and 1.3 s for the rest."""
    timings = {name: Timing({OURS: [1.0], THEIRS: [1.3]}) for name in (ONE_TOKEN, BATCH_OF_8)}
    timings |= {PREFILL: Timing({OURS: [1.0], THEIRS: [2.0]}), WARM: Timing({OURS: [0.1]})}
    rest = {
        "work": Work(prefill_flops=50, one_token_bytes=20, batch_bytes=30),
        "machine": Machine((1, 2, 3), flops_per_s=100.0, bytes_per_s=40.0),
        "memory": Memory(peak=3_000_000, weights=2_000_000, kv_pool=1_000_000, kv_per_token=2),
    }
    facts = {
        "conditions": Conditions("smollm2", "float32", "cpu", 2, 3.25, 60.0),
        "block_size": 16,
        "prompt_tokens": 2999,
        "warm_tokens": 55,
        "batch_contexts": (65, 127),
    }
    return Found(**(facts | {"timings": timings} | rest | {"equal_tokens": 9, "compared_tokens": 10} | changes))


def report(result, width=80):
    text = io.StringIO()
    result.table(Console(file=text, width=width))
    return " ".join(text.getvalue().split())


def test_each_round_measures_everything(alone):
    counts = {name: len(timing.seconds[OURS]) for name, timing in alone.timings.items()}
    assert counts == {PREFILL: 2, WARM: 2, ONE_TOKEN: 2 * SINGLE_STEPS, BATCH_OF_8: 2 * BATCH_STEPS}
    assert all(seconds > 0 for timing in alone.timings.values() for seconds in timing.seconds[OURS])
    assert all(share > 0 for share in alone.shares.values())


def test_work_and_memory_are_those_of_the_model(alone):
    from minicache.engine import Engine

    model = Engine(model="tiny", num_blocks=2).runner.model
    config = model.config
    token = 2 * config.num_layers * config.num_kv_heads * config.head_dim * 4
    assert alone.memory.kv_per_token == token
    assert alone.work.one_token_bytes - alone.work.batch_bytes == token * (
        300 - sum(length + BATCH_STEPS // 2 for length in engine.BATCH)
    )
    assert alone.memory.weights <= alone.memory.peak
    assert alone.work.prefill_flops > 2 * 300 * (alone.memory.weights // 4 - model.embedding.numel())


def test_without_a_baseline_nothing_is_compared(alone):
    assert alone.timings[PREFILL].ratio is None
    assert alone.met(PREFILL) is None
    assert "transformers" not in report(alone)
    assert "tiny, float32, cpu, block size 16, 1 threads, load" in report(alone)


def test_the_object_can_be_written(alone):
    value = json.loads(json.dumps(alone.to_json()))
    assert value["benchmark"] == "engine"
    assert value["operations"][ONE_TOKEN]["ratio"] is None
    assert {"machine", "memory", "shares", "threads", "load"} <= value.keys()


def test_a_ratio_is_the_median_over_neighbours():
    slowing_down = Timing({OURS: [1.0, 10.0, 100.0], THEIRS: [2.0, 20.0, 200.0]})
    assert slowing_down.ratio == 2.0


def test_goals_are_held_against_ratios():
    result = made_up()
    assert [result.met(name) for name in (PREFILL, ONE_TOKEN, BATCH_OF_8, WARM)] == [True, True, False, None]
    text = report(result)
    assert "prefill 1,000.0 2,999.0 2,000.0 2.00 0.95 yes" in text
    assert "batch of 8 1,000.0 8.0 1,300.0 1.30 1.50 no" in text
    assert "Goals are for 2 quiet cores; the load of this machine was 3.2" in text
    assert "50% of the product's rate" in text


def test_another_model_or_block_size_has_no_goals():
    tiny = replace(made_up().conditions, model="tiny")
    for changes in ({"conditions": tiny}, {"block_size": 1}):
        assert made_up(**changes).met(BATCH_OF_8) is None


def test_both_arms_choose_the_same_tokens():
    pytest.importorskip("transformers")
    from minicache.engine.models import store as model_store

    prompts = [[ord(letter) for letter in "prefix " * times] for times in (9, 12, 10)]
    ours = MinicacheArm("tiny", block_size=16, room=1000, max_tokens=8)
    theirs = TransformersArm(model_store.resolve("tiny"))
    assert ours.start(prompts) == theirs.start(prompts)
    for _ in range(5):
        assert ours.step() == theirs.step()
    assert ours.start(prompts[:1]) == theirs.start(prompts[:1])


def test_starting_forgets_unless_told_otherwise():
    arm = MinicacheArm("tiny", block_size=16, room=1000, max_tokens=2)
    for forget, hits in ((True, 0), (True, 0), (False, 64)):
        arm.start([[1] * 64 + [2, 3]], forget)
        assert arm.engine.scheduler.running[0].num_cached_tokens == hits


@pytest.mark.parametrize(
    ("settings", "names"),
    [({"rounds": 0}, "rounds"), ({"block_size": 0}, "block_size"), ({"against": "vllm"}, "transformers")],
)
def test_wrong_settings_are_refused_by_name(settings, names):
    with pytest.raises(InvalidArgument, match=names):
        EngineBench("tiny", **settings)


def test_a_short_context_limits_the_prompt_or_is_refused():
    assert engine.prompt_length("large", 8192) == 2999
    assert engine.prompt_length("small", 2048) == 2048 - BATCH_STEPS - 1
    with pytest.raises(InvalidArgument, match="context of 64"):
        engine.prompt_length("none", 64)


def test_an_unknown_baseline_is_wrong_input(capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main(["bench", "engine", "--against", "guesswork"])
    assert exit.value.code == 2
    assert "transformers" in capsys.readouterr().err
