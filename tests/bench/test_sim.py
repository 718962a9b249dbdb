"""The simulator's benchmark: it runs the stated workload, and its figures hang together."""

import pytest

from minicache.bench import sim
from minicache.sim.timeline import Timeline


def test_a_small_run_has_every_row(monkeypatch):
    for name, value in {"SCALES": (1, 2), "ROUNDS": 2, "LOOKS": 9}.items():
        monkeypatch.setattr(sim, name, value)
    result = sim.SimBench(requests=10, timeline_events=1000).run()
    assert [(row.cache, row.requests) for row in result.rows] == [
        (kind, 10 * scale) for kind in ("hash", "radix") for scale in sim.SCALES
    ]
    assert all(row.events > 50 * row.requests and row.seconds > 0 for row in result.rows)
    assert [look.cache for look in result.looks] == ["hash", "radix"]
    assert result.to_json()["rows"][0]["microseconds_per_event"] == result.rows[0].microseconds_per_event


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_the_workload_is_in_balance(kind):
    """The queue does not grow with the length of the run, the pool is full, and the system prompts are hit."""
    small, large = (Timeline.record(sim.workload(n), kind).index for n in (150, 600))
    assert large.totals["max_waiting"] == small.totals["max_waiting"]
    assert large.totals["evicted_blocks"] > 3 * small.totals["evicted_blocks"] > 0
    assert large.totals["events"] == pytest.approx(4 * small.totals["events"], rel=0.05)
    assert large.hit_rates["tokens of all"] > 0.85


def test_checkpoints_are_linear_in_the_events():
    """As many for each event, and none larger: so recording takes as long an event, however long the run."""
    small, large = (Timeline.record(sim.workload(n), "hash") for n in (150, 600))
    assert len(large._checkpoints) == pytest.approx(4 * len(small._checkpoints), rel=0.15)
    sizes = [len(point.tables) + len(point.hashes) + len(point.requests) for point in large._checkpoints]
    assert max(sizes) < 2 * max(sizes[: len(sizes) // 3])
