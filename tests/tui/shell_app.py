"""The app as a person has it, without a terminal and with a clock that stands still until a test moves it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Footer, Input, OptionList, Static

from minicache_tui.app import MinicacheApp
from minicache_tui.player import Player
from minicache_tui.screens.ask import Ask
from minicache_tui.screens.stage import Stage
from minicache_tui.sources import open_run
from tests.tui import idle

idle.use()
PATIENCE = 120.0  # seconds; what is waited for comes in a fraction of one, on a machine that is not busy


class PatientApp(MinicacheApp):
    """Its notes stay until the next key, however slow the machine is."""

    def notify(self, message: str, *, timeout: float | None = None, **options: Any) -> None:
        super().notify(message, timeout=PATIENCE, **options)


class Shell:
    """Presses keys and tells what stands on the screen."""

    def __init__(self, app: MinicacheApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def answer(self, line: str) -> None:
        """Type into the dialog that is open, and send it."""
        assert isinstance(self.app.screen, Ask), self.app.screen
        self.app.screen.query_one(Input).value = line
        await self.press("enter")

    async def choose(self, what: int | str) -> None:
        """Take a choice of the menu: by its number, or by what its words begin with."""
        options = self.app.screen.query_one(OptionList)
        words = [str(option.prompt) for option in options.options]
        index = what if isinstance(what, int) else [word.startswith(what) for word in words].index(True)
        options.highlighted = index
        await self.press("enter")

    @property
    def footer(self) -> str:
        """The keys that the footer shows, with their words."""
        self.app.screen.query_one(Footer)
        active = list(self.app.screen.active_bindings.values())
        shown = {a.binding.action: a.binding for a in reversed(active) if a.binding.show}  # of an action the first key
        return " ".join(f"{binding.key} {binding.description}" for binding in reversed(list(shown.values())))

    @property
    def error(self) -> str:
        return str(self.app.screen.query_one(".dialog-error", Static).content)

    async def focus(self, name: str) -> None:
        """Go to a panel as a person does: with tab."""
        for _ in range(12):
            await self.press("tab")
            focused = self.app.screen.focused
            if focused is not None and focused.id == name:
                return
        raise AssertionError(f"tab never comes to {name}")

    @property
    def stage(self) -> Stage:
        assert isinstance(self.app.screen, Stage), self.app.screen
        return self.app.screen

    @property
    def player(self) -> Player:
        return self.stage.player

    @property
    def told(self) -> list[str]:
        """The notes that were shown."""
        return [note.message for note in self.app._notifications]

    @property
    def lines(self) -> list[str]:
        return ["".join(segment.text for segment in strip) for strip in self.app.screen._compositor.render_strips()]


async def until(shell: Shell, condition: Callable[[], bool]) -> None:
    """Let time pass until it holds."""
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit, shell.lines
        await shell.pilot.pause(0.01)


def drive(
    play: Callable[[Shell], Awaitable[None]],
    opened: object = "two-equal-prompts",
    size: tuple[int, int] = (120, 36),
    clock: Callable[[], float] = lambda: 0.0,
    notes: bool = False,
    **options: Any,
) -> None:
    """Open a run (its name, or a player, or None for the chooser) and do with it what `play` says. `notes` are
    shown too."""

    async def run() -> None:
        run = open_run(opened) if isinstance(opened, str) else opened
        app = PatientApp(run, reduced_motion=True, clock=clock, **options)  # type: ignore[arg-type]
        async with app.run_test(size=size, notifications=notes) as pilot:
            for _ in range(4):
                await pilot.pause()
            await play(Shell(app, pilot))

    asyncio.run(run())
