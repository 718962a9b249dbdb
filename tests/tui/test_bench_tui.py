"""The benchmark of the terminal UI: it measures what it says, small."""

import json
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from minicache.cli.bench import app as benches
from minicache.sim.timeline import Timeline
from minicache_tui import bench, bench_drawing
from minicache_tui.bench import LIMITS, STATE, Row, TuiBench
from minicache_tui.bench_drawing import SCREENS, draw_moves, first_frame
from minicache_tui.model.tree import Tree
from minicache_tui.panels.pool import Pool
from minicache_tui.player import Player


def test_the_state_is_measured_over_both_caches():
    result = bench.run(1_000, drawing=False)
    assert [(row.cache, row.work) for row in result.rows] == [
        (cache, work + STATE) for cache in ("hash", "radix") for work in ("step", "back")
    ]
    assert all(0 < row.median_ms <= row.p95_ms <= row.worst_ms for row in result.rows)
    assert all(700 < count < 1_400 for count in result.events.values())
    assert result.first_frame is None


def test_a_step_over_ten_thousand_blocks_stays_far_below_its_limit():
    rows = [row for row in bench.run(10_000, drawing=False).rows if row.cache == "hash"]
    assert all(row.median_ms < LIMITS[row.work] for row in rows)


def test_model_panels_and_lines_are_told_apart_and_every_move_is_drawn():
    player = Player(Timeline.record(bench.workload(12), "radix"))
    times = draw_moves(player, 3, 2)
    counts = {"first sentences": 1, "step": 3, "back": 3, "seek": 2, "screen": SCREENS}
    assert {work: len(seconds) for work, seconds in times.items() if ":" not in work} == counts
    for work, count in counts.items():
        assert len(times[f"{work}: lines"]) == len(times[f"{work}: panels"]) == count
        assert all(seconds > 0 for seconds in times[work] + times[f"{work}: lines"] + times[f"{work}: panels"])


@pytest.mark.nightly
def test_what_a_panel_asks_the_player_counts_as_the_view_model():
    """Slow rows of the tree, slow sentences and a slow panel are found in the figures where they belong."""
    slow, slow_row = 0.04, 0.01

    def delayed(call, seconds=slow):
        def wait_and_call(*arguments):
            until = time.process_time() + seconds
            while time.process_time() < until:
                pass
            return call(*arguments)

        return wait_and_call

    def seconds(delay):
        player = Player(Timeline.record(bench.workload(12), "radix"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bench_drawing, "SCREENS", 1)
            delay(patch, player)
            times = draw_moves(player, 2, 1)
        return {what: min(times[f"step{what}"]) for what in ("", ": panels", ": lines")}

    def slow_sentences(patch, player):
        patch.setattr(player, "sentences", delayed(player.sentences))

    def slow_rows(patch, player):
        patch.setattr(Tree, "_row", delayed(Tree._row, slow_row))

    def slow_panel(patch, player):
        patch.setattr(Pool, "read", delayed(Pool.read))

    assert [what for what, took in seconds(slow_sentences).items() if took >= slow] == [""]
    assert seconds(slow_rows)[""] >= slow_row
    assert [what for what, took in seconds(slow_panel).items() if took >= slow] == [": panels"]


def test_the_first_frame_is_that_of_the_program():
    pytest.importorskip("pty", reason="no terminals of one's own on this system")
    assert 0.05 < first_frame() < 20


@pytest.mark.parametrize(
    ("worst", "which"), [(1.9, "all"), (2.5, "95 %"), (3.5, "the median"), (4.5, "none")], ids=lambda value: str(value)
)
def test_a_row_says_which_of_its_times_keep_the_limit(worst, which):
    assert Row("hash", "step", 3, worst - 2, worst - 1, worst).met_by(2.0) == which


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        ({}, []),
        ({"megabytes": None, "first_frame": None}, []),
        ({"megabytes": 320.0}, ["memory is at 320.00 MB, and its limit is 300 MB"]),
        ({"first_frame": 1.5}, ["the first frame is at 1.50 s, and its limit is 1 s"]),
        ({"rows": [Row("radix", "back", 3, 2.5, 3, 4)]}, ["back (radix cache) is at 2.50 ms, and its limit is 2 ms"]),
    ],
)
def test_a_limit_that_is_not_met_is_named_and_fails(change, missed, monkeypatch):
    result = replace(
        TuiBench([Row("hash", "step", 3, 0.5, 0.75, 2.25)], {"hash": 1234}, 0.75, 200.0, "3", 0.5), **change
    )
    assert result.missed == missed
    monkeypatch.setattr(bench, "run", lambda *_, **__: result)
    shown = CliRunner().invoke(benches, ["tui"])
    assert shown.exit_code == bool(missed)
    assert [line for line in shown.stderr.splitlines() if line] == [f"minicache: {sentence}" for sentence in missed]


def test_it_is_found_by_name_and_prints_figures_with_their_limits(monkeypatch):
    rows = [Row("hash", "step", 3, 0.5, 0.75, 2.25)]
    monkeypatch.setattr(bench, "run", lambda *_, **__: TuiBench(rows, {"hash": 1234}, 0.75, 320.0, "3.11", 0.5))
    shown = CliRunner().invoke(benches, ["tui"])
    assert shown.exit_code == 1, shown.output
    words = (
        "0.50",
        "2.25",
        "95 %",
        "First frame 0.75 s",
        "1 s: met",
        "320 MB",
        "300 MB: not met",
        "1,234 with the hash",
    )
    for word in words:
        assert word in shown.output
    told = CliRunner().invoke(benches, ["tui", "--json"])
    assert json.loads(told.stdout)["rows"][0]["median_ms"] == 0.5


def test_an_unknown_benchmark_is_named_with_the_nearest_one():
    failed = CliRunner().invoke(benches, ["tuy"])
    assert "did you mean 'tui'?" in str(failed.exception)
