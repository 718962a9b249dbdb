"""The player's screen: where every panel stands, wide, narrow and between.

Wide enough, everything is seen at once. Where it is not, the panels that would have to be squeezed stand one behind the
other in the place of the pool, one key away.

    wide                         medium                    narrow, or short
    title                        title                     title
    requests | pool | chain      requests | pool           pool, or 2 3 4
             | belt |            chain    | belt           ribbon
    ribbon                       ribbon                    Explain
    Explain                      Explain                   strip
    strip                        strip                     meters, keys
    meters, keys                 meters, keys
"""

from __future__ import annotations

import gc
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Horizontal
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Footer

from ..comparison import Comparison
from ..motion import SECONDS, Motion
from ..panels.belt import Belt
from ..panels.chain import Chain
from ..panels.explain import Explain
from ..panels.line import width_of
from ..panels.meters import Meters
from ..panels.panel import Panel
from ..panels.parting import PartingLine
from ..panels.pool import Pool
from ..panels.rates import Rates
from ..panels.requests import Requests
from ..panels.ribbon import Ribbon
from ..panels.strip import Strip
from ..panels.title import Title
from ..panels.tree import Tree
from ..player import BEAT_SECONDS, Player

TABS = ("pool", "requests", "chain", "belt")
# In fewer columns three meters do not fit beside all keys of the footer, and two of one word give way: (Unicode, plain
# ASCII).
CRAMPED = 88, 95
LABEL = 26  # columns of what one of two runs is called, beside the figures of its pool
SHARE_OF_BEAT = 0.6  # of the time between two steps, a motion may take so much


class MainScreen(Screen[None]):
    """Draws a player, or two in lock-step. Call `sync` after every move of theirs."""

    AUTO_FOCUS = ""
    HELP = """\
# What you see

A run of an engine, one event after the other. `{forward}` goes forward to the next thing that happens, `{back}` goes
back; **Explain** says in whole sentences what happened and why. `{play}` plays. A **step** is the scheduler's: it
computes something for several requests at once, and much happens in it.

`tab` goes from panel to panel; this help is then about the one with the focus. In a panel `up` and `down` move,
and once there is a cursor that can go sideways `left` and `right` too; until then these still step. `enter` explains
what is under the cursor, `{leave}` lets go. `1` to `4` show the pool, the requests, the hash chain or
radix tree, and the eviction order.
"""
    BINDINGS: ClassVar = [
        Binding("up", "scroll_explain(-1)", "Scroll Explain up", show=False),
        Binding("down", "scroll_explain(1)", "Scroll Explain down", show=False),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (104, "-medium"), (140, "-wide")]  # noqa: RUF012 (Textual's type)
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-high"), (42, "-tall")]  # noqa: RUF012
    DEFAULT_CSS = """
    MainScreen {
        background: $background;
        color: $mc-text;
        layout: vertical;

        #top { height: 1fr; }
        #ribbon { height: 5; }
        #explain { height: 8; }
        #status { height: 1; }
        Footer { dock: none; width: auto; margin: 0 1; background: $background; }
        &.-cramped #meters { padding: 0 0 0 1; }
        &.-cramped .beside-meters { margin: 0 0 0 1; }
        &.-cramped .beside-meters KeyGroup, &.-cramped .beside-meters FooterLabel { display: none; }

        &.-wide #top { layout: grid; grid-size: 3 2; grid-columns: 54 1fr 46; grid-rows: 1fr 4; }
        &.-wide #requests, &.-wide #chain { row-span: 2; }
        &.-medium #top { layout: grid; grid-size: 2 3; grid-columns: 48 1fr; grid-rows: 8 1fr 4; }
        &.-medium #pool, &.-medium #chain { row-span: 2; }
        &.-tall #explain { height: 10; }
        &.-wide.-tall #ribbon { height: 11; }

        &.-narrow #top { layout: vertical; }
        &.-medium.-short #top, &.-wide.-short #top { layout: horizontal; }
        &.-short #top > Panel { width: 1fr; }
        &.-narrow #ribbon, &.-short #ribbon { height: 4; }
        &.-narrow.-high #ribbon { height: 5; }
        &.-narrow.-short #explain { height: 38%; min-height: 8; }
        &.-narrow.-tall #explain { height: 12; }

        .side { width: 1fr; height: 1fr; layout: vertical; }
        .side > .pool { height: 1fr; }
        .side > .ribbon { height: 5; }
        #words { height: 10; }
        #words > Explain { width: 1fr; height: 100%; }
        &.-short #words { height: 24%; }
        &.-same #words-right { display: none; }
        #rates { display: none; }
        &.-narrow #rates { display: block; }
        &.-narrow .side > .meters { display: none; }
        &.-short .side > .ribbon { height: 4; }
        &.-narrow #right, &.-narrow #words-right { display: none; }
        &.-narrow.-other #right, &.-narrow.-other #words-right { display: block; }
        &.-narrow.-other #left, &.-narrow.-other #words-left { display: none; }
    }
    """

    def __init__(self, playable: Player | Comparison) -> None:
        super().__init__()
        self._playable = playable
        self._drawn: tuple[tuple[Player, int, int], ...] = ()  # player, version and place, as they were drawn last
        self._panels: list[Panel] = []
        self.motion = Motion(self, self._on_frame)
        self.tab = 1

    @property
    def playable(self) -> Player | Comparison:
        return self._playable

    @playable.setter
    def playable(self, playable: Player | Comparison) -> None:
        """Draw another one, from where it is."""
        self._playable = playable
        self._drawn = ()
        self.refresh(recompose=True)
        self.call_after_refresh(self.sync)

    @property
    def players(self) -> tuple[Player, ...]:
        playable = self._playable
        return (playable.left, playable.right) if isinstance(playable, Comparison) else (playable,)

    def compose(self) -> ComposeResult:
        playable, self._panels = self._playable, []
        if isinstance(playable, Comparison):
            widgets = self._compose_comparison(playable)
        else:
            widgets = self._compose_player(playable)
        for widget in widgets:
            if isinstance(widget, Panel):
                self._panels.append(widget)
            yield widget

    def _compose_player(self, player: Player) -> ComposeResult:
        yield Title(player, id="title")
        with Container(id="top"):
            yield Requests(player, id="requests")
            yield Pool(player, id="pool")
            yield (Tree if player.timeline.kind == "radix" else Chain)(player, id="chain")
            yield Belt(player, id="belt")
        yield Ribbon(player, id="ribbon")
        yield Explain(player, id="explain")
        yield Strip(player, id="strip")
        with Horizontal(id="status"):
            yield Meters(player, id="meters")
            yield Footer(show_command_palette=False, compact=True, classes="beside-meters")

    def _compose_comparison(self, comparison: Comparison) -> ComposeResult:
        sides = (("left", comparison.left), ("right", comparison.right))
        yield Title(comparison.left, comparison, id="title")
        pools = [Pool(player, classes="pool") for _, player in sides]
        pools[0].twin, pools[1].twin = pools[1], pools[0]
        with Horizontal(id="sides"):
            for pool, (side, player), *names in zip(pools, sides, comparison.labels, comparison.brief, strict=True):
                with Container(id=side, classes="side"):
                    pool.label = next((name for name in names if width_of(name) <= LABEL), names[-1])
                    yield pool
                    yield Ribbon(player, classes="ribbon")
                    yield Meters(player, classes="meters")
        with Horizontal(id="words"):
            for side, player in sides:
                yield Explain(player, id=f"words-{side}")
        yield Rates(comparison, id="rates")
        yield PartingLine(comparison)
        strip = Strip(comparison.left, id="strip")
        strip.both = comparison
        yield strip
        with Horizontal(id="status"):
            yield Footer(show_command_palette=False, compact=True)

    # Drawing

    def sync(self) -> None:
        """Draw what the player says now. What a step forward changed moves there; all else is there at once."""
        stepped = any(
            drawn is player and version != player.version and player.beat.start - 1 <= place < player.place
            for (drawn, version, place), player in zip(self._drawn, self.players, strict=False)
        )
        changed = any(
            drawn is not player or version != player.version
            for (drawn, version, _), player in zip(self._drawn, self.players, strict=False)
        )
        self._drawn = tuple((player, player.version, player.place) for player in self.players)
        if stepped:
            self.motion.start(self._seconds())
        elif changed:
            self.motion.finish()
        self._show_tabs()
        self._tell_once()
        for panel in self._panels:
            panel.moving = self.motion.progress
            panel.sync()
        self.call_after_refresh(self._rest)

    def _rest(self) -> None:
        """All is drawn and nobody waits: get ready for what comes next, and collect what the last step left behind."""
        for player in self.players:
            player.prepare()
        gc.collect(1)

    def _tell_once(self) -> None:
        """Where there is the same to say of both sides, one panel says it, as wide as the two."""
        self.set_class(isinstance(self._playable, Comparison) and self._playable.says_the_same, "-same")

    def _show_tabs(self) -> None:
        """Where panels stand one behind the other, that of the tab is seen, or two: the pool and another one. Their
        titles say which others there are."""
        narrow, folded = self.has_class("-narrow"), self.has_class("-narrow") or self.has_class("-short")
        shown = {TABS[self.tab - 1]}
        if not narrow or self.has_class("-tall"):
            shown |= {"pool", "chain"} if self.tab == 1 else {"pool"}
        third = "tree" if self.players[0].timeline.kind == "radix" else "chain"
        names = ("pool", "requests", third, "order")
        for panel in self._panels:
            if panel.id in TABS:
                panel.display = not folded or panel.id in shown
                tabs = [(f"{i} {name}", TABS[i - 1] == panel.id) for i, name in enumerate(names, 1)]
                panel.tabs = tabs if folded else []

    def _seconds(self) -> float:
        """How long a motion may take: while it plays, less than a step does."""
        player = self.players[0]
        return SHARE_OF_BEAT * BEAT_SECONDS / 2**player.speed if player.playing else SECONDS

    def _on_frame(self) -> None:
        for panel in self._panels:
            panel.moving = self.motion.progress
            if panel.region and panel.in_motion:
                panel.redraw()

    def on_resize(self, event: Resize) -> None:
        ascii = self.app.has_class("-ascii")
        self.set_class(event.size.width < CRAMPED[ascii], "-cramped")
        self.call_next(self._show_tabs)  # by the classes of the new size, which come after this

    # What the panels ask for

    def on_panel_selected(self, message: Panel.Selected) -> None:
        message.stop()
        message.player.select(message.selection)
        self.sync()

    def on_panel_moved(self, message: Panel.Moved) -> None:
        message.stop()
        self.moved(message.place)

    def moved(self, place: int) -> None:
        """Somebody scrubs."""
        self._playable.scrub(place)
        self.sync()

    def action_scroll_explain(self, lines: int) -> None:
        for explain in self.query(Explain):
            explain.move(0, lines)

    # Tabs and sides

    def show_tab(self, number: int) -> None:
        """Show the pool (1), the requests (2), the chain or tree (3), the eviction order (4), and focus it."""
        self.tab = number
        self._show_tabs()
        self.query_one(f"#{TABS[number - 1]}", Panel).focus()
        self.call_after_refresh(self.sync)

    def show_side(self, number: int) -> None:
        """In a narrow comparison: show the left side (1) or the right one (2)."""
        self.set_class(number == 2, "-other")
        self.call_after_refresh(self.sync)
