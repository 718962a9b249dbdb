"""The app: our themes, the screens on top of each other, pictures, and the way out.

chooser ─enter─> stage ─f─> stage of the fork ─m─> stage of two
        <─escape─       <─escape─            <─escape─
"""

import gc
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.dom import DOMNode
from textual.driver import Driver
from textual.events import Resize
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widgets import Input

from .comparison import Comparison
from .guard import Guard
from .keys import INTERRUPT, KEYS, key_of, keys_in_use, typed
from .panels.line import ascii_only, printable
from .player import Player
from .theme import MINICACHE_DARK, MINICACHE_LIGHT, variables

if TYPE_CHECKING:
    from textual.actions import ActionParseResult

    from .live import LiveEngine

MIN_WIDTH, MIN_HEIGHT = 60, 20
THRESHOLDS = 20_000, 10, 1000  # of the garbage collector: screens collect when all is drawn, and not within a step
INTERRUPTED = 130  # exit status, as of a shell's
ARROWS = (("→", "right"), ("←", "left"), ("↑", "up"), ("↓", "down"))  # in plain ASCII


class MinicacheApp(App[None]):
    """Opens `opened` on the stage, or the chooser if there is nothing.

    `clock` is in seconds, for playing; tests hand in one that stands still. `keymap` is action -> keys. With
    `own_process` the app sets the garbage collector of the process, which then should run nothing else.
    """

    TITLE = "minicache"
    NOTIFICATION_TIMEOUT = 2.5
    BINDINGS = [INTERRUPT]  # noqa: RUF012 (Textual's type)
    CSS = """
    .dialog {
        width: 90%; max-width: 96; height: auto; max-height: 90%;
        background: $surface; border: round $mc-focus; padding: 0 2; scrollbar-size: 0 0;
    }
    Ask, Menu { align: center middle; background: $background 60%; }
    TooSmall { align: center middle; background: $background; }
    TooSmall Static { width: 100%; text-align: center; }
    .dialog-title { text-style: bold; color: $mc-text; }
    .dialog-hint { color: $mc-quiet; }
    .dialog-error { color: $mc-evicted; height: auto; }
    .dialog OptionList { border: none; height: auto; max-height: 60vh; background: $surface; padding: 0; }
    .dialog Input { border: none; background: $background; margin: 1 0; padding: 0 1; height: 1; }
    .-ascii .dialog, .-ascii #page { border: ascii $mc-focus; }
    .-ascii .dialog OptionList, .-ascii CommandList { scrollbar-size: 0 0; }
    .-ascii SearchIcon, .-ascii LoadingIndicator { display: none; }
    .-ascii CommandPalette #--input, .-ascii CommandList, .-ascii CommandList:focus { border: ascii $mc-focus; }
    .-ascii Toast { border-left: none; }
    .dialog { border-subtitle-color: $mc-quiet; }
    Footer FooterLabel { margin: 0 1 0 0; }
    ToastRack { dock: top; align: right top; margin: 1 0 0 0; }
    Stage ToastRack { dock: bottom; align: right bottom; }
    Stage.-wide Toast { max-width: 76; }
    Toast { background: $surface; width: auto; max-width: 90%; margin: 0 1; padding: 0 1; }
    """

    def __init__(
        self,
        opened: Player | Comparison | None = None,
        *,
        live: "LiveEngine | None" = None,
        ascii: bool = False,
        light: bool = False,
        reduced_motion: bool = False,
        keymap: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        own_process: bool = False,
    ) -> None:
        super().__init__()
        self._own_process = own_process
        self._filters.append(Guard(ascii))
        self.clock = clock
        self.register_theme(MINICACHE_DARK)
        self.register_theme(MINICACHE_LIGHT)
        if "TEXTUAL_THEME" not in os.environ or light:
            self.theme = "minicache-light" if light else "minicache-dark"
        if reduced_motion:
            self.animation_level = "none"
        self.set_class(ascii, "-ascii")
        self.set_keymap(dict(keymap or {}))
        self.keys_in_use = keys_in_use(keymap or {})
        self._opened = opened
        self.live = live  # the engine that serves; it does so behind other screens too, until another one or the end
        self.left: Player | Comparison | None = None  # the run that was left last for the chooser
        self.too_small = False

    def get_driver_class(self) -> type[Driver]:
        """On Linux and macOS our own, which knows what a paste is; elsewhere Textual's."""
        textuals = super().get_driver_class()
        if textuals.__name__ != "LinuxDriver":
            return textuals
        from .driver import Terminal

        return Terminal

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(self.current_theme.dark)

    def get_key_display(self, binding: Binding) -> str:
        return self.plain(typed(binding.key))

    @property
    def ascii(self) -> bool:
        return self.has_class("-ascii")

    def plain(self, text: str) -> str:
        """Text as this terminal can show it, in lines. Whatever a dialog or a note says has been through here."""
        text = "\n".join(map(printable, text.split("\n")))
        for sign, name in ARROWS if self.ascii else ():
            text = text.replace(sign, name)
        return ascii_only(text) if self.ascii else text

    def on_mount(self) -> None:
        from .screens.chooser import Chooser

        if self._opened is None:
            self.push_screen(Chooser())
            self._keep_what_is_loaded()
        else:
            self.open_stage(self._opened, self.live)

    def on_unmount(self) -> None:
        self.keep_engine(None)

    def keep_engine(self, live: "LiveEngine | None") -> None:
        """This engine is the one that serves; the one before ends."""
        if self.live is not None and self.live is not live:
            self.live.close()
        self.live = live

    def _keep_what_is_loaded(self) -> None:
        """A run is many small objects that stay: the garbage collector need not walk them again and again, which would
        make steps stumble. What was kept before and is gone since is collected first."""
        if not self._own_process:
            return
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """A note. Its words are text and never markup, whoever says them."""
        from .screens.stage import Stage

        super().notify(self.plain(message), title=self.plain(title), severity=severity, timeout=timeout, markup=False)
        if self.screen_stack and isinstance(self.screen, Stage):
            self.screen.call_after_refresh(self.screen.place_notes)

    # Screens

    def open_stage(self, playable: Player | Comparison, live: "LiveEngine | None" = None) -> None:
        from .screens.stage import Stage, StageOfTwo

        self.push_screen(StageOfTwo(playable) if isinstance(playable, Comparison) else Stage(playable, live))
        self._keep_what_is_loaded()

    def open_fork(self, branch: Player, words: str) -> None:
        """Show a fork on top of its original; say what it is, and how to compare the two."""
        self.open_stage(branch)
        compare, leave = key_of(self, "compare"), key_of(self, "leave")
        self.notify(f"{words}\n{compare} and enter: this fork beside its original. {leave}: back to the original.")

    async def run_action(
        self,
        action: "str | ActionParseResult",
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """A note has been read when somebody presses the next key."""
        self.clear_notifications()
        return await super().run_action(action, default_namespace, namespaces)

    def leave_stage(self) -> None:
        """Back to what is below: the original, or the chooser, from which one comes back to this place."""
        from .screens.chooser import Chooser
        from .screens.stage import Stage

        left, below = self.screen, self.screen_stack[-2]
        if not isinstance(below, Stage) and isinstance(left, Stage):
            self.left = left.playable
        if isinstance(below, Stage | Chooser):
            self.pop_screen()
        else:
            self.switch_screen(Chooser())

    def on_resize(self, event: Resize) -> None:
        """A terminal that has become too small gets a sentence in the place of a picture that nobody could read."""
        from .screens.too_small import TooSmall

        self.too_small = event.size.width < MIN_WIDTH or event.size.height < MIN_HEIGHT
        shown = isinstance(self.screen, TooSmall)
        if self.too_small and not shown:
            self.push_screen(TooSmall())
        elif shown and not self.too_small:
            self.pop_screen()

    def action_command_palette(self) -> None:
        """Nothing opens over that sentence."""
        if not self.too_small:
            super().action_command_palette()

    # What keys and the palette do everywhere

    def open_help(self) -> None:
        """About what has the focus, else about the screen."""
        from .screens.help import Help

        screen = self.screen
        self.push_screen(Help((screen.focused and screen.focused.HELP) or screen.HELP or ""))

    def action_toggle_theme(self) -> None:
        self.theme = "minicache-light" if self.current_theme.dark else "minicache-dark"

    def action_interrupt(self) -> None:
        self.exit(return_code=INTERRUPTED)

    def save_picture(self, playable: Player | Comparison) -> None:
        """An SVG of the screen into the current folder, beside those that are there."""
        from .picture import file_name, picture_of, write_new

        name = file_name(playable)
        try:
            path = write_new(Path(), name, picture_of(self, playable.title))
        except OSError as error:
            self.notify(f"{name}.svg cannot be written: {error.strerror}", severity="error")
        else:
            self.notify(f"Saved {path}\n{playable.reopening}")

    def on_command_palette_opened(self) -> None:
        """What Textual asks for in it, as this terminal can show it."""
        field = self.screen.query_one(Input)
        field.placeholder = self.plain(field.placeholder)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        from .screens.stage import Stage

        for command in super().get_system_commands(screen):
            if command.title not in ("Screenshot", "Maximize", "Minimize", "Keys"):
                yield command
        if isinstance(screen, Stage):
            for key in KEYS:
                names = self.plain(" ".join(self.keys_in_use[key.action]))
                yield SystemCommand(key.what, f"Key: {names}", getattr(screen, f"action_{key.action}"))
