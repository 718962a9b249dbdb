"""The keys that move: what each does with the player, and what is said where nothing moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from minicache.core.errors import MinicacheError

from ..comparison import Comparison
from ..keys import key_of
from ..panels.strip import Strip
from ..player import Playable, Player, Run
from ..stops import stops_ahead
from .main import MainScreen

if TYPE_CHECKING:
    from ..app import MinicacheApp

READ = 8  # seconds to read what went wrong, unless a key is pressed before
FRAME = 1 / 30  # seconds between two looks at the clock while it plays
BEGINNING, END = "This is the beginning.", "This is the end."


def move(how: Callable[[Playable], bool], otherwise: str) -> Callable[[Moving], None]:
    """The action of a key that does `how`; it says `otherwise` where nothing moved."""
    return lambda screen: screen.after_move(how(screen.playable), otherwise)


class Moving(MainScreen):
    """A run with its moves; it plays by the app's clock."""

    app: MinicacheApp

    def on_mount(self) -> None:
        self._seen = 0.0
        self._clock = self.set_interval(FRAME, self._tick, pause=True)

    @property
    def player(self) -> Player:
        """The player, the left one of two."""
        return self.players[0]

    def say(self, words: str) -> None:
        self.notify(words, markup=False)

    def say_error(self, error: MinicacheError) -> None:
        self.notify(str(error), severity="error", timeout=READ, markup=False)

    def after_move(self, moved: bool, otherwise: str) -> None:
        """Draw after a move; where nothing moved, say why."""
        self.pause()
        if moved:
            self.sync()
        else:
            self.say(otherwise)

    action_forward = move(lambda run: run.step(), END)
    action_back = move(lambda run: run.back(), BEGINNING)
    action_next_step = move(lambda run: run.next_step(), END)
    action_previous_step = move(lambda run: run.previous_step(), BEGINNING)
    action_next_event = move(lambda run: run.next_event(), END)
    action_previous_event = move(lambda run: run.previous_event(), BEGINNING)
    action_start = move(lambda run: run.start(), BEGINNING)
    action_end = move(lambda run: run.end(), END)
    action_next_request = move(lambda run: run.next_request(), "No other request arrives after this.")
    action_previous_request = move(lambda run: run.previous_request(), "No request arrived before this.")
    action_next_hit = move(lambda run: run.run_to(Run.HIT), "There is no hit after this.")
    action_next_miss = move(lambda run: run.run_to(Run.MISS), "There is no miss after this.")
    action_next_evict = move(lambda run: run.run_to(Run.EVICT), "Nothing is evicted after this.")
    action_next_preempt = move(lambda run: run.run_to(Run.PREEMPT), "Nobody is preempted after this.")

    def action_next_alike(self) -> None:
        self._to_alike(self.playable.next_of, "There is no other {} after this.")

    def action_previous_alike(self) -> None:
        self._to_alike(self.playable.previous_of, "There is no {} before this.")

    def _to_alike(self, how: Callable[[str], bool], otherwise: str) -> None:
        """By the kind of the event that is selected, else of the current one."""
        selected = self._event_selected
        event = selected[0].timeline.events[selected[1]] if selected else self.player.current
        if event is None:
            self.after_move(False, "Nothing has happened yet: go forward first, or select an event.")
        else:
            kind = type(event).__name__
            self.after_move(how(kind), otherwise.format(kind))

    @property
    def _event_selected(self) -> tuple[Player, int] | None:
        """Of which run an event is selected, and its place."""
        for player in self.players:
            if player.selection.kind == "event" and isinstance(player.selection.id, int):
                return player, player.selection.id
        return None

    def action_run_to_cursor(self) -> None:
        pointed, selected = self.query_one(Strip).pointed, self._event_selected
        here = "That event is this one."
        if pointed is not None:
            self.after_move(self.playable.scrub(pointed), here)
        elif selected is not None:
            (player, place), run = selected, self.playable
            if isinstance(run, Comparison) and player is run.right:
                self.after_move(run.seek_right(place), here)
            else:
                self.after_move(run.seek(place), here)
        else:
            self.say("Select an event first: tab to the event strip, down shows a cursor, left and right move it.")

    def moved(self, place: int) -> None:
        """Somebody scrubs."""
        self.pause()
        super().moved(place)

    # To breakpoints

    def action_resume(self) -> None:
        hit = any(stops_ahead(player, self.playable.breakpoints) for player in self.players)
        self.after_move(self.playable.continue_(), "")
        self._after_run(hit, END)

    def action_reverse(self) -> None:
        self.after_move(self.playable.reverse_continue(), "")
        self._after_run(any(player.place >= 0 for player in self.players), BEGINNING)

    def _after_run(self, hit: bool, where: str) -> None:
        """Where no breakpoint was hit, say so."""
        if not hit and self.playable.breakpoints:
            self.say(f"No breakpoint was hit. {where}")
        elif not hit:
            self.say(f"No breakpoint is set: {key_of(self.app, 'add_breakpoint')} sets one. {where}")

    # Playing

    def _tick(self) -> None:
        now = self.app.clock()
        if self.playable.advance(now - self._seen):
            self.sync()
        self._seen = now
        if not self.playable.playing:
            self.pause()
            self.sync()

    def pause(self) -> None:
        self._clock.pause()
        if self.playable.playing:
            self.playable.playing = False

    def action_play(self) -> None:
        if self.playable.playing:
            self.pause()
        elif self.playable.at_end:
            self.say(f"This is the end: {key_of(self.app, 'start')} goes back to the beginning.")
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
