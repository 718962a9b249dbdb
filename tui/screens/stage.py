"""The player's screen with its keys. What moves is in `moving.py`; what asks, in `dialogs.py` and `what_if.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding

from minicache.core.errors import MinicacheError

from ..comparison import Comparison
from ..keys import bindings
from ..panels.pool import Pool
from ..player import NOTHING, Player
from . import dialogs, what_if
from .moving import Moving

if TYPE_CHECKING:
    from ..app import MinicacheApp
    from ..live import LiveEngine

LOOK = 1 / 20  # seconds between two looks at a live engine


class Stage(Moving):
    """A run on the stage. `live` is the engine behind it, if it is a live one; it is closed with the screen."""

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

    def on_unmount(self) -> None:
        if self.live is not None:
            self.live.close()

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.sync)

    def _poll(self) -> None:
        if self.live is None:
            return
        try:
            if self.live.poll():
                self.sync()
        except MinicacheError as error:
            self.live.close()
            self.live = None
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
        self.pause()
        self._ask(what_if.fork)

    def action_inject(self) -> None:
        self.pause()
        self._ask(what_if.inject if self.live is None else what_if.prompt)

    def action_compare(self) -> None:
        self.pause()
        if isinstance(self.playable, Comparison):
            self.say("These are two already: escape leaves the comparison.")
        else:
            self._ask(what_if.compare)

    # Looking

    def action_show_tab(self, number: int) -> None:
        if isinstance(self.playable, Comparison):
            self.show_side(number)
        else:
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
        self.app.save_picture(self.player)

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
