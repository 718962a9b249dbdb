"""What drawing costs: the player's screen without a terminal, at 160 × 48, and the time of every line drawn."""

import asyncio
import time

from textual.app import App
from textual.strip import Strip

from minicache.sim.library import find_scenario
from minicache.sim.timeline import Timeline

from .panels.panel import Panel
from .player import Player
from .screens.main import MainScreen
from .theme import MINICACHE_DARK, variables

SIZE = (160, 48)


class Stage(App[None]):
    """The player's screen and nothing else: no keys, no palette, no motion."""

    def __init__(self, player: Player) -> None:
        super().__init__()
        self.animation_level = "none"
        self.register_theme(MINICACHE_DARK)
        self.theme = MINICACHE_DARK.name
        self.main = MainScreen(player)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(self.current_theme.dark)

    def on_mount(self) -> None:
        self.push_screen(self.main)


def draw_steps(player: Player, count: int) -> tuple[list[float], list[float]]:
    """Take `count` steps and draw each. Returns seconds of processor time a step: in reading the player and finding the
    lines that changed, and in the `render_line` of those."""
    syncs: list[float] = []
    lines: list[float] = []
    spent = 0.0
    render_line = Panel.render_line

    def timed(panel: Panel, y: int) -> Strip:
        nonlocal spent
        start = time.process_time()
        try:
            return render_line(panel, y)
        finally:
            spent += time.process_time() - start

    async def play() -> None:
        nonlocal spent
        stage = Stage(player)
        async with stage.run_test(size=SIZE) as pilot:
            await pilot.pause()
            stage.main.sync()
            await pilot.pause()
            for _ in range(count):
                player.step()
                spent = 0.0
                start = time.process_time()
                stage.main.sync()
                syncs.append(time.process_time() - start - spent)
                await pilot.pause()
                lines.append(spent)

    Panel.render_line = timed  # type: ignore[method-assign, assignment]
    try:
        asyncio.run(play())
    finally:
        Panel.render_line = render_line  # type: ignore[method-assign]
    return syncs, lines


def draw_first_frame(scenario: str = "timestamp-top") -> None:
    """Open a scenario and draw it once."""

    async def play() -> None:
        async with Stage(Player(Timeline.record(find_scenario(scenario)))).run_test(size=SIZE) as pilot:
            await pilot.pause()

    asyncio.run(play())
