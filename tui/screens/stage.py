"""The player's screen with its keys: what each key does with the player, and the dialogs that some of them open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding

from minicache.core.errors import MinicacheError
from minicache.sim.breakpoint import HOW, Breakpoint
from minicache.sim.errors import BadChange

from ..changes import ASKS, forked, injected, injection_defaults, read_policy
from ..comparison import Comparison
from ..keys import bindings
from ..player import NOTHING, Found, Player, Run
from .ask import Ask
from .main import MainScreen
from .menu import Menu

if TYPE_CHECKING:
    from ..app import MinicacheApp
    from ..live import LiveEngine

FRAME = 1 / 30  # seconds between two looks at the clock while it plays
LIVE = 1 / 20  # and between two looks at a live engine


class Stage(MainScreen):
    """A run on the stage. `live` is the engine behind it, if it is a live one; it is closed with the screen."""

    BINDINGS: ClassVar = [
        *bindings(),
        *(Binding(str(number), f"show_tab({number})", f"Panel {number}", show=False) for number in range(1, 5)),
    ]
    app: MinicacheApp

    def __init__(self, playable: Player | Comparison, live: LiveEngine | None = None) -> None:
        super().__init__(playable)
        self.live = live
        self._seen = 0.0

    @property
    def player(self) -> Player:
        """The player, the left one of two."""
        return self.players[0]

    def on_mount(self) -> None:
        self._clock = self.set_interval(FRAME, self._tick, pause=True)
        if self.live is not None:
            self.set_interval(LIVE, self._poll)

    def on_unmount(self) -> None:
        if self.live is not None:
            self.live.close()

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.sync)

    def _moved(self, moved: bool, otherwise: str) -> None:
        """Draw after a move; where nothing moved, say why."""
        self._pause()
        if moved:
            self.sync()
        else:
            self.notify(otherwise, timeout=2, markup=False)

    def _say(self, error: MinicacheError) -> None:
        self.notify(str(error), severity="error", markup=False)

    # Playing

    def _tick(self) -> None:
        now = self.app.clock()
        if self.playable.advance(now - self._seen):
            self.sync()
        self._seen = now
        if not self.playable.playing:
            self._pause()
            self.sync()

    def _pause(self) -> None:
        self._clock.pause()
        if self.playable.playing:
            self.playable.playing = False

    def action_play(self) -> None:
        if self.playable.playing:
            self._pause()
        elif self.playable.at_end:
            self.notify("This is the end: home goes back to the beginning.", timeout=2)
        else:
            self.playable.playing = True
            self._seen = self.app.clock()
            self._clock.resume()
        self.sync()

    def action_faster(self) -> None:
        self.playable.speed += 1
        self.sync()

    def action_slower(self) -> None:
        self.playable.speed -= 1
        self.sync()

    def _poll(self) -> None:
        assert self.live is not None
        try:
            if self.live.poll():
                self.sync()
        except MinicacheError as error:
            self.live.close()
            self.live = None
            self._say(error)

    # Moving

    def action_step(self) -> None:
        self._moved(self.playable.step(), "This is the end.")

    def action_back(self) -> None:
        self._moved(self.playable.back(), "This is the beginning.")

    def action_next_step(self) -> None:
        self._moved(self.playable.next_step(), "This is the end.")

    def action_previous_step(self) -> None:
        self._moved(self.playable.previous_step(), "This is the beginning.")

    def action_next_event(self) -> None:
        self._moved(self.playable.next_event(), "This is the end.")

    def action_previous_event(self) -> None:
        self._moved(self.playable.previous_event(), "This is the beginning.")

    def action_next_request(self) -> None:
        self._moved(self.playable.next_request(), "No other request arrives after this.")

    def action_previous_request(self) -> None:
        self._moved(self.playable.previous_request(), "No request arrived before this.")

    def action_next_alike(self) -> None:
        self._to_alike(self.playable.next_of, "There is no other {} after this.")

    def action_previous_alike(self) -> None:
        self._to_alike(self.playable.previous_of, "There is no {} before this.")

    def _to_alike(self, move: Callable[[str], bool], otherwise: str) -> None:
        current = self.player.current
        if current is None:
            self._moved(False, "Nothing has happened yet: take a step first.")
        else:
            kind = type(current).__name__
            self._moved(move(kind), otherwise.format(kind))

    def action_start(self) -> None:
        self._moved(self.playable.start(), "This is the beginning.")

    def action_end(self) -> None:
        self._moved(self.playable.end(), "This is the end.")

    def action_next_hit(self) -> None:
        self._moved(self.playable.run_to(Run.HIT), "There is no hit after this.")

    def action_next_miss(self) -> None:
        self._moved(self.playable.run_to(Run.MISS), "There is no miss after this.")

    def action_next_evict(self) -> None:
        self._moved(self.playable.run_to(Run.EVICT), "Nothing is evicted after this.")

    def action_next_preempt(self) -> None:
        self._moved(self.playable.run_to(Run.PREEMPT), "Nobody is preempted after this.")

    def action_resume(self) -> None:
        self._moved(self.playable.continue_(), "This is the end.")

    def action_reverse(self) -> None:
        self._moved(self.playable.reverse_continue(), "This is the beginning.")

    def action_run_to_cursor(self) -> None:
        selection = self.player.selection
        if selection.kind != "event" or not isinstance(selection.id, int):
            self.notify("Select an event first: tab to the event strip, move with the arrows, press enter.")
        else:
            self._moved(self.playable.seek(selection.id), "That event is this one.")

    def action_show_tab(self, number: int) -> None:
        if isinstance(self.playable, Comparison):
            self.show_side(number)
        else:
            self.show_tab(number)

    # Asking

    @work
    async def action_go_to(self) -> None:
        hint = "A scheduler step (42), an event (e1234) or a request (its id)."
        if await self.app.push_screen_wait(Ask("Go to", hint, self._go_to)):
            self.sync()

    def _go_to(self, line: str) -> bool:
        """Go where the line says; True. Raises `UnknownThing`."""
        player, line = self.player, line.strip()
        word = line.removeprefix("event").removeprefix("step").strip()
        if word.isdecimal() and not line.startswith("event"):
            place = player.timeline.place_of_step(int(word))
        elif word.removeprefix("e").isdecimal():
            place = int(word.removeprefix("e"))
            player.timeline.require(place)
        else:
            player.go_to_request(line)
            place = player.place
        self.playable.seek(place)
        return True

    @work
    async def action_find(self) -> None:
        found = await self.app.push_screen_wait(
            Ask("Find", "A block's number, the beginning of a hash, a request, or a piece of a prompt.", self._find)
        )
        if not found:
            return
        index = 0
        if len(found) > 1:
            chosen = await self.app.push_screen_wait(Menu("Found", "", [(item.label, "") for item in found]))
            if chosen is None:
                return
            index = chosen
        self.player.select(found[index].selection)
        place = found[index].place
        if place is not None:
            self.playable.seek(place)
        self.sync()

    def _find(self, line: str) -> list[Found]:
        line = line.strip()
        found = self.player.find(line)
        if not found:
            raise NothingFound(f"there is nothing here that is called, begins with or holds {line!r}")
        return found

    @work
    async def action_add_breakpoint(self) -> None:
        points = self.playable.breakpoints
        if points:
            choices = [("Another breakpoint", ""), *((f"Remove: {point.describe()}", "") for point in points)]
            chosen = await self.app.push_screen_wait(Menu("Breakpoints", "c runs to the next one.", choices))
            if chosen is None:
                return
            if chosen:
                self.playable.breakpoints = [point for i, point in enumerate(points, 1) if i != chosen]
                return
        asked = Ask(
            "Stop where",
            f"One condition, or several with spaces between: {HOW.removeprefix('write ')}.",
            Breakpoint.parse,
            self._suggestion(),
        )
        point = await self.app.push_screen_wait(asked)
        if point is not None:
            self.playable.breakpoints = [*points, point]
            self.notify(f"{point.describe()}: c runs to it.", markup=False)

    def _suggestion(self) -> str:
        selection = self.player.selection
        if selection.kind in ("block", "request"):
            return f"{selection.kind}={selection.id}"
        current = self.player.current
        return f"kind={type(current).__name__}" if current else "kind=BlocksEvicted"

    # What if

    @work
    async def action_fork(self) -> None:
        self._pause()
        player = self.player
        menu = Menu(
            "What if?",
            "The run is made again up to this step, and goes on with what you change. This one stays as it is.",
            [(ask.title, ask.hint) for ask in ASKS],
        )
        chosen = await self.app.push_screen_wait(menu)
        if chosen is None:
            return
        ask = ASKS[chosen]
        try:
            line = ask.suggest(player.timeline, player.place)
            if line is None:
                branch: Player | None = forked(player, ask, "")
            else:
                make: Callable[[str], Player] = lambda text: forked(player, ask, text)  # noqa: E731
                branch = await self.app.push_screen_wait(Ask(ask.title, ask.hint, make, line))
        except MinicacheError as error:
            self._say(error)
            return
        if branch is not None:
            self.app.open_fork(branch)

    @work
    async def action_inject(self) -> None:
        self._pause()
        if self.live is not None:
            await self._prompt(self.live)
            return
        player = self.player
        try:
            id, prompt, max_tokens = injection_defaults(player.timeline, player.place)
        except MinicacheError as error:
            self._say(error)
            return
        hint = "ID (TOKENS): PROMPT  It arrives at the next step. A prompt is text, [name COUNT], parts with | between."
        asked = Ask(
            "A request of your own", hint, lambda line: injected(player, line), f"{id} ({max_tokens}): {prompt}"
        )
        branch = await self.app.push_screen_wait(asked)
        if branch is not None:
            self.app.open_fork(branch)

    async def _prompt(self, live: LiveEngine) -> None:
        id = await self.app.push_screen_wait(Ask("A prompt for the engine", "It is served at once.", live.submit))
        if id is not None:
            live.player.end()
            self.sync()

    @work
    async def action_compare(self) -> None:
        self._pause()
        if isinstance(self.playable, Comparison):
            self.notify("These are two already: escape leaves the comparison.")
            return
        player = self.player
        choices: list[tuple[str, str]] = []
        made: list[Callable[[], Comparison]] = []
        if player.parent is not None:
            choices.append(("The original against this fork", "Both in lock-step, and where they part."))
            made.append(lambda: Comparison.of_fork(player))
        scenario = player.timeline.scenario
        if scenario is not None:
            choices.append(
                ("The hash chain against the radix tree", "The same requests over vLLM's and SGLang's cache.")
            )
            made.append(lambda: Comparison.of_kinds(scenario))
        choices.append(("This policy against another one", "From the beginning on."))
        chosen = await self.app.push_screen_wait(Menu("Compare", "Two runs, step by step on one clock.", choices))
        if chosen is None:
            return
        try:
            if chosen < len(made):
                comparison: Comparison | None = made[chosen]()
            else:
                hint = "name=value, one or several: queue_policy=lpm, publish_at=compute, max_num_seqs=2."
                asked = Ask(
                    "Another policy",
                    hint,
                    lambda line: Comparison.of_policies(player, read_policy(line)),
                    "max_num_seqs=2",
                )
                comparison = await self.app.push_screen_wait(asked)
        except MinicacheError as error:
            self._say(error)
            return
        if comparison is not None:
            self.app.push_screen(Stage(comparison))
            if self.has_class("-narrow"):
                left, right = comparison.labels
                self.notify(f"1 shows {left}, 2 shows {right}.", timeout=4, markup=False)

    # The rest

    def action_help(self) -> None:
        self.app.action_toggle_help()

    def action_picture(self) -> None:
        self.app.save_picture(self.player)

    def action_theme(self) -> None:
        self.app.action_toggle_theme()

    def action_leave(self) -> None:
        if self.query("HelpPanel"):
            self.app.action_hide_help_panel()
        elif self.player.selection.kind != "nothing":
            for player in self.players:
                player.select(NOTHING)
            self.sync()
        else:
            self.app.leave_stage()

    def action_quit(self) -> None:
        self.app.exit()


class NothingFound(BadChange):
    """Nothing in this run is as it was looked for."""
