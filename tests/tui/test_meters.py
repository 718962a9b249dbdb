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
