"""The player's screen with its keys. What moves is in `moving.py`; what asks, in `dialogs.py` and `what_if.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding
from textual.events import Resize
from textual.widgets._toast import ToastRack

from minicache.core.errors import MinicacheError

from ..comparison import Comparison
from ..keys import bindings, key_of
from ..panels.pool import Pool
from ..panels.ribbon import Ribbon
from ..player import NOTHING, Player
from . import dialogs, what_if
from .moving import Moving

if TYPE_CHECKING:
    from ..app import MinicacheApp
    from ..live import LiveEngine

SIDES = Binding.Group("sides")
TITLES = 2  # lines: of the run, and of the panels below it
LOOK = 1 / 20  # seconds between two looks at a live engine


class Stage(Moving):
    """A run on the stage. `live` is the engine behind it, if it is a live one; it goes on when the screen is left."""

    BINDINGS: ClassVar = [
        *bindings(),
        *(Binding(str(number), f"show_tab({number})", f"Panel {number}", show=False) for number in range(1, 5)),
    ]
    app: MinicacheApp

    def __init__(self, playable: Player | Comparison, live: LiveEngine | None = None) -> None:
        super().__init__(playable)
        self.live = live

    def on_mount(self) -> None:
        if self.live is not None:
            self.set_interval(LOOK, self._poll)

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self.place_notes)

    def place_notes(self) -> None:
        """Notes come in at the foot of the panels above the tokens, where there is the least to see. They leave the
        titles of these panels as they are."""
        shown = [ribbon for ribbon in self.query(Ribbon) if ribbon.region]
        for rack in self.query(ToastRack) if shown else ():
            rack.styles.height = max(1, shown[0].region.y - TITLES)
            rack.styles.margin = (0, 0, self.size.height - shown[0].region.y, 0)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.sync)

    def on_screen_suspend(self) -> None:
        """Nothing plays on behind a dialog, the help or another run."""
        if self.playable.playing:
            self.pause()
            self.sync()

    def _poll(self) -> None:
        if self.live is None:
            return
        try:
            if self.live.poll():
                self.sync()
        except MinicacheError as error:
            ended, self.live = self.live, None
            if self.app.live is ended:
                self.app.keep_engine(None)
            self.say_error(error)

    # Asking

    @work
    async def _ask(self, dialog: Callable[[Stage], Awaitable[None]]) -> None:
        """Open the dialog; what cannot be is said in its own sentence."""
        try:
            await dialog(self)
        except MinicacheError as error:
            self.say_error(error)

    def action_go_to(self) -> None:
        self._ask(dialogs.go_to)

    def action_find(self) -> None:
        self._ask(dialogs.find)

    def action_add_breakpoint(self) -> None:
        self._ask(dialogs.breakpoints)

    def action_fork(self) -> None:
        self._ask(what_if.fork)

    def action_inject(self) -> None:
        self._ask(what_if.inject if self.live is None else what_if.prompt)

    def action_compare(self) -> None:
        self._ask(what_if.compare)

    # Looking

    def action_show_tab(self, number: int) -> None:
        self.show_tab(number)

    def action_zoom(self) -> None:
        """Every pool that is seen; one that stands behind another panel comes to the front."""
        shown = [pool for pool in self.query(Pool) if pool.region]
        if not shown:
            self.show_tab(1)
        elif not any(pool.can_zoom for pool in shown):
            self.say("All blocks are seen, one by one: there is nothing to enlarge.")
        else:
            for pool in shown:
                pool.action_zoom()

    def action_help(self) -> None:
        self.app.open_help()

    def action_picture(self) -> None:
        self.app.save_picture(self.playable)

    def action_theme(self) -> None:
        self.app.action_toggle_theme()

    def action_leave(self) -> None:
        if self.player.selection.kind != "nothing":
            for player in self.players:
                player.select(NOTHING)
            self.sync()
        else:
            self.app.leave_stage()

    def action_quit(self) -> None:
        self.app.exit()


class StageOfTwo(Stage):
    """Two runs in lock-step: `1` and `2` show either side where there is no room for both."""

    HELP = """\
# Two runs in lock-step

The same requests on both sides, and neither is ever a **step** of the scheduler ahead of the other. `{forward}` goes
forward in both to the next thing that happens in one of them, `{back}` goes back, `{play}` plays. In a narrow terminal
`1` shows the left side and `2` the right one; the line of **hit rates** has both. Below it stands how much each finds
in the whole run, and where the two first treat a request differently. A cell of either pool stands for as many tokens
as one of the other. Where there is the same to say of both, one **Explain** as wide as the two says it once. `{leave}`
leaves the comparison.
"""
    BINDINGS: ClassVar = [
        *bindings(hidden=("fork",)),
        Binding("1", "show_side(1)", "sides", group=SIDES),
        Binding("2", "show_side(2)", "sides", group=SIDES),
    ]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Where both sides are seen, there is none to show; and there are no panels behind others."""
        if action in ("show_side", "show_tab"):
            return action == "show_side" and self.has_class("-narrow")
        return super().check_action(action, parameters)

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self.refresh_bindings)

    def action_show_side(self, number: int) -> None:
        self.show_side(number)

    def action_compare(self) -> None:
        self.say(f"These are two already: {key_of(self.app, 'leave')} leaves the comparison.")
