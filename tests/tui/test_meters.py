"""The meters: as many figures as there is room for, before the history of any."""

import pytest

from .shell_app import Shell, drive


@pytest.mark.parametrize(("width", "figures"), [(80, ["hit", "in use"]), (160, ["hit rate", "in use", "waiting"])])
def test_a_figure_goes_before_the_history_of_another_one(width: int, figures: list[str]) -> None:
    async def play(shell: Shell) -> None:
        for _ in range(30):
            await shell.press("right")
            line = shell.lines[-1]
            assert all(f" {name} " in line for name in figures), line
            assert width > 80 or not set("▁▂▃▄▅▆▇█") & set(line)

    drive(play, "timestamp-end", size=(width, 24 if width == 80 else 48))


@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("width", [*range(60, 82), 104])
def test_the_hit_rate_and_the_first_and_last_keys_are_seen_at_every_width(width: int, ascii: bool) -> None:
    async def play(shell: Shell) -> None:
        await shell.press("end")
        await shell.pilot.pause()
        rate = shell.player.meters()[0].value.split(" %")[0]
        assert len(rate) == 4
        line = shell.lines[-1]
        assert line.startswith((f" hit {rate}% ", f" hit rate {rate} % ")), line
        assert ("right next" if ascii else "→ next") in line
        assert "? help" in line

    drive(play, "timestamp-end", size=(width, 20), ascii=ascii)
