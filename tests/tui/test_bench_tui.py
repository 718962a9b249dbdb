"""The benchmark of the terminal UI: it measures what it says, small."""

import json

from typer.testing import CliRunner

from minicache.cli.bench import app as benches
from minicache_tui import bench
from minicache_tui.bench import LIMITS, Row, TuiBench


def test_the_player_is_measured_over_both_caches():
    result = bench.run(1_000, drawing=False)
    assert [(row.cache, row.work) for row in result.rows] == [
        (cache, work) for cache in ("hash", "radix") for work in ("step", "back", "seek")
    ]
    assert all(0 < row.median_ms <= row.p95_ms <= row.worst_ms for row in result.rows)
    assert all(700 < count < 1_400 for count in result.events.values())
    assert result.first_frame is None


def test_a_step_over_ten_thousand_blocks_stays_far_below_its_limit():
    rows = {row.work: row for row in bench.run(10_000, drawing=False).rows if row.cache == "hash"}
    for work in ("step", "back", "seek"):
        assert rows[work].median_ms < LIMITS[work]


def test_it_is_found_by_name_and_prints_figures_with_their_limits(monkeypatch):
    rows = [Row("hash", "step", 3, 0.5, 0.75, 1.25)]
    monkeypatch.setattr(bench, "run", lambda *_, **__: TuiBench(rows, {"hash": 1234}, 0.75, 120.0, "3.11", 0.5))
    shown = CliRunner().invoke(benches, ["tui"])
    assert shown.exit_code == 0, shown.output
    for words in ("0.50", "1.25", "First frame after 0.75 s", "120 MB", "1,234 with the hash cache"):
        assert words in shown.output
    told = CliRunner().invoke(benches, ["tui", "--json"])
    assert json.loads(told.stdout)["rows"][0]["median_ms"] == 0.5


def test_an_unknown_benchmark_is_named_with_the_nearest_one():
    failed = CliRunner().invoke(benches, ["tuy"])
    assert "did you mean 'tui'?" in str(failed.exception)
