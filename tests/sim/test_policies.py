"""A setting means the same wherever it is made: in the scenario, with `--set`, or by a fork from the start."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.sim.fork import SetBlockSize, SetNumBlocks, SetPolicy
from minicache.sim.library import find_scenario
from minicache.sim.policy import settings_of
from minicache.sim.timeline import Timeline

NUMBERS = {
    "max_num_batched_tokens": (8, 100),
    "max_num_seqs": (1, 2),
    "long_prefill_token_threshold": (4,),
    "watermark": (0.0, 0.4),
    "new_token_ratio": (0.0, 1.0),
}
LATER_ARRIVAL = str(Path(__file__).parent / "later_arrival.toml")
RUNS = {
    "hash": [
        ("preempt-and-resume", ()),
        ("preempt-and-resume", ("scheduler.admission=output_reserve",)),
        (LATER_ARRIVAL, ()),
        ("thrashing", ()),
    ],
    "radix": [
        ("preempt-and-resume", ()),
        ("preempt-and-resume", ("scheduler.admission=first_chunk",)),
        ("preempt-and-resume", ("scheduler.admission=full_sequence",)),
        (LATER_ARRIVAL, ()),
        ("in-batch-order", ()),
        ("sglang-article", ()),
    ],
}


def run(name, kind, settings):
    return Timeline.record(find_scenario(name, list(settings)), kind)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in RUNS for name in settings_of(kind)])
def test_a_fork_from_the_start_with_a_setting_is_the_run_with_that_setting(kind, name):
    changed = 0
    for scenario, settings in RUNS[kind]:
        timeline = run(scenario, kind, settings)
        for value in settings_of(kind)[name] or NUMBERS[name]:
            with_it = [*settings, f"{'cache' if name == 'strategy' else 'scheduler'}.{name}={value}"]
            if name == "queue_policy":  # a profile chooses the victim with it; a fork changes what it names
                with_it.append(f"scheduler.victim={timeline.policy_at(-1)['victim']}")
            fork = timeline.fork(-1, SetPolicy({name: value}))
            expected = run(scenario, kind, with_it)
            assert fork.events == expected.events, (scenario, settings, value)
            assert fork.settings == expected.settings
            assert fork.policy_at(-1)[name] == value
            changed += fork.events != timeline.events
    assert changed, "no run shows this setting"


@pytest.mark.parametrize("kind", RUNS)
def test_a_fork_from_the_start_with_another_pool_is_the_run_with_that_pool(kind):
    for scenario, settings in RUNS[kind]:
        timeline = run(scenario, kind, settings)
        num_blocks, block_size = timeline.settings["num_blocks"], timeline.settings["block_size"]
        tokens = (num_blocks - 1) * block_size
        for change, pool in (
            (SetNumBlocks(num_blocks + 7), {"num_blocks": num_blocks + 8}),
            (SetBlockSize(8), {"num_blocks": tokens // 8 + 1, "block_size": 8}),
        ):
            fork = timeline.fork(-1, change)
            with_it = run(
                scenario, kind, [*settings, *(f"cache.{kind}.{name}={value}" for name, value in pool.items())]
            )
            assert fork.events == with_it.events
            assert fork.settings == with_it.settings
            assert fork.fork(-1, change).events == with_it.events


@pytest.mark.parametrize("kind", RUNS)
@given(data=st.data())
def test_the_settings_in_use_change_nothing_anywhere(kind, data):
    timeline = run(*RUNS[kind][0][:1], kind, RUNS[kind][0][1])
    place = data.draw(st.integers(-1, len(timeline) - 1))
    assert timeline.fork(place, SetPolicy(timeline.policy_at(place))).events == timeline.events


def test_a_strategy_that_a_fork_has_set_outlives_the_pool():
    timeline = run("sglang-article", "radix", ())
    forks = [timeline.fork(-1, SetPolicy({"strategy": "mru"})), timeline]
    for change in (SetBlockSize(2), SetNumBlocks(timeline.settings["num_blocks"])):
        changed, plain = (fork.fork(-1, change) for fork in forks)
        assert changed.events != plain.events, "the new pool evicts in the order that was set"
        assert changed.policy_at(-1)["strategy"] == "mru"
