"""The same tokens carry the same label in a run, in the log of it, and in their forks."""

import pytest

from minicache.sim.library import scenario_names
from minicache.sim.recorded import write_recorded
from minicache_tui.asks import ASKS, forked
from minicache_tui.changes import injected
from minicache_tui.player import Player
from minicache_tui.sources import open_log, open_run
from tests.thinned import thinned


def labels(player: Player) -> dict[str, list[str]]:
    """Request -> the text of each of its blocks, when all is over."""
    place = player.place
    player.end()
    ribbons = {row.id: player.ribbon(row.id) for row in player.requests()}
    player.seek(place)
    return {id: [block.text for block in ribbon.blocks] for id, ribbon in ribbons.items() if ribbon}


@pytest.mark.parametrize(
    "name", thinned(scenario_names(), "timestamp-top", "thrashing", "sglang-article", "multi-turn")
)
@pytest.mark.parametrize("recorded", [False, True], ids=["scenario", "log"])
def test_a_fork_labels_what_it_has_in_common_with_its_original_alike(name, recorded, tmp_path) -> None:
    player = open_run(name)
    if recorded:
        write_recorded(player.timeline, tmp_path / "run.jsonl")
        player = open_log(tmp_path / "run.jsonl")
    original = labels(player)
    assert original
    prompt = ASKS[1].suggest(player.timeline, -1)
    for branch in (player.fork(None), injected(player, "mine1 (2): hello"), forked(player, ASKS[1], prompt)):
        theirs = labels(branch)
        assert {id: theirs[id] for id in original if id in theirs} == original
