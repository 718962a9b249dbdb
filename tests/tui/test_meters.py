"""The meters: as many figures as there is room for, before the history of any, each in its place all through a run."""

import re

import pytest

from minicache_tui.panels.line import ascii_only
from minicache_tui.panels.meters import RAMP, sparkline
from tests.thinned import several, thinned

from .shell_app import Shell, drive

NAMES = r" (hit rate|hit|in use|use|waiting|wait|computed) "


@pytest.mark.parametrize("ascii", thinned([False, True]))
@pytest.mark.parametrize(
    ("width", "figures"),
    several(
        [
            (60, ["hit"]),
            (70, ["hit", "use"]),
            (80, ["hit", "use", "wait"]),
            (104, ["hit rate", "in use", "waiting"]),
            (160, ["hit rate", "in use", "waiting", "computed"]),
        ],
        *(0, 3),
    ),
)
def test_the_same_figures_stand_in_the_same_places_all_through_a_run(width, figures, ascii) -> None:
    """From no hit rate to two digits of it, from an empty pool to a full one, with nobody waiting and with many."""
    if ascii and width == 104:
        figures = ["hit", "use", "wait"]

    async def play(shell: Shell) -> None:
        places, values = set(), set()
        for _ in range(20):
            line = shell.lines[-1]
            names = list(re.finditer(NAMES, line.partition(" right next" if ascii else " → next")[0]))
            places.add(tuple((name[1], name.start()) for name in names))
            values.add(tuple(meter.value for meter in shell.player.meters()[:3]))
            for _ in range(8):
                shell.player.step()
            shell.stage.sync()
            await shell.pilot.pause()
        assert len(values) > 10
        assert {len(use) for _, use, _ in values} >= {len("0 %"), len("92 %")}
        (seen,) = places
        assert [name for name, _ in seen] == figures

    drive(play, "thrashing", size=(width, 48 if width == 160 else 24), ascii=ascii)


@pytest.mark.parametrize("width", [80, 120])
def test_a_figure_goes_before_the_history_of_another_one(width) -> None:
    async def play(shell: Shell) -> None:
        for _ in range(30):
            await shell.press("right")
            assert not set(RAMP) & set(shell.lines[-1])

    drive(play, "timestamp-end", size=(width, 24))


@pytest.mark.parametrize("ascii", thinned([False, True]))
def test_the_hit_rate_and_the_first_and_last_keys_are_seen_at_every_width(ascii) -> None:
    async def play(shell: Shell) -> None:
        await shell.press("end")
        rate = shell.player.meters()[0].value.split(" %")[0]
        assert len(rate) == 4
        for width in (*range(60, 100), 104, 140, 160):
            await shell.pilot.resize_terminal(width, 20)
            await shell.pilot.pause()
            line = shell.lines[-1]
            assert len(line) == width
            assert line.startswith((f" hit {rate}% ", f" hit rate {rate} % ")), line
            assert ("right next" if ascii else "→ next") in line
            assert "? help" in line

    drive(play, "timestamp-end", size=(60, 20), ascii=ascii)


def test_nothing_is_not_drawn_as_a_little() -> None:
    assert sparkline([0.0, 0.01, 0.08, 0.0], 6) == "   ▁▁ "
    drawn = [sparkline([value / 100], 1) for value in range(101)]
    assert drawn == sorted(drawn)
    assert set(drawn) == {" ", *RAMP}
    for clean in (str, ascii_only):
        assert len(set(map(clean, drawn))) == len(RAMP) + 1
