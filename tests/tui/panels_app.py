"""An app around the panels, for tests: the player's screen and nothing else, at a size, with what is drawn as text."""

import asyncio
from collections.abc import Awaitable, Callable

from textual.app import App
from textual.pilot import Pilot
from textual.types import AnimationLevel

from minicache.sim.library import find_scenario
from minicache.sim.scenario_file import read_scenario
from minicache.sim.timeline import Timeline
from minicache_tui.comparison import Comparison
from minicache_tui.panels.panel import Panel
from minicache_tui.player import Player
from minicache_tui.screens.main import MainScreen
from minicache_tui.theme import MINICACHE_DARK, MINICACHE_LIGHT, variables
from tests.tui import idle

idle.use()


class PanelsApp(App[None]):
    """Keys of the app itself are the shell's; here only the screen is tried."""

    BINDINGS = [("right", "step", "step"), ("n", "step", "step")]  # noqa: RUF012 (Textual's type)

    def __init__(self, playable: Player | Comparison, animation: AnimationLevel = "none", ascii: bool = False) -> None:
        super().__init__()
        self.animation_level = animation
        self.register_theme(MINICACHE_DARK)
        self.register_theme(MINICACHE_LIGHT)
        self.theme = "minicache-dark"
        self.main = MainScreen(playable)
        self.playable = playable
        self.set_class(ascii, "-ascii")

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(self.current_theme.dark)

    def on_mount(self) -> None:
        self.push_screen(self.main)

    def action_step(self) -> None:
        self.playable.step()
        self.main.sync()

    @property
    def player(self) -> Player:
        assert isinstance(self.playable, Player)
        return self.playable

    def shown(self) -> list[str]:
        """The lines of the screen."""
        return ["".join(segment.text for segment in strip) for strip in self.screen._compositor.render_strips()]

    def panel(self, id: str) -> Panel:
        return self.main.query_one(f"#{id}", Panel)

    def text_of(self, id: str) -> list[str]:
        """The lines within a panel's border."""
        panel = self.panel(id)
        return [panel.render_line(y).text.rstrip() for y in range(panel.height)]

    def ribbon_rows(self) -> list[tuple[str, str]]:
        """The marks and the text of each row of the ribbon."""
        lines = self.text_of("ribbon")
        high = 3 if len(lines) >= 3 else 2
        return list(zip(lines[::high], lines[1::high], strict=False))


def player_of(name: str, place: int = -1) -> Player:
    player = Player(Timeline.record(find_scenario(name)))
    player.seek(place)
    return player


def player_of_text(toml: str) -> Player:
    return Player(Timeline.record(read_scenario(toml, "test", "test.toml", {})))


def drive(app: PanelsApp, size: tuple[int, int], play: Callable[[Pilot[None]], Awaitable[None]]) -> None:
    """Run the app without a terminal and do with it what `play` says."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            app.main.sync()
            await pilot.pause()
            await play(pilot)

    asyncio.run(run())
