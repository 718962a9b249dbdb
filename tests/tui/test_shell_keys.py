"""Moving, playing and leaving by key: where the player is afterwards, what is told, what stays open."""

import pytest

from minicache_tui.keys import GROUPS, KEYS
from minicache_tui.panels.pool import Pool
from minicache_tui.panels.ribbon import Ribbon
from minicache_tui.playable import BEAT_SECONDS
from minicache_tui.player import NOTHING, Run, Selection
from minicache_tui.screens.chooser import Chooser
from minicache_tui.screens.help import Help
from minicache_tui.screens.stage import Stage
from minicache_tui.sources import open_run
from tests.thinned import thinned

from .shell_app import Shell, drive, until

NAME = "preempt-and-resume"  # has hits, misses, evictions and a preemption
OF = {key.action: key.keys.split(",") for key in KEYS}

# Action -> (where it starts, what a player does of itself): moves, which must come to the same place by key.
MOVES = {
    "forward": (0, lambda p: p.step()),
    "back": (40, lambda p: p.back()),
    "next_step": (10, lambda p: p.next_step()),
    "previous_step": (40, lambda p: p.previous_step()),
    "next_event": (20, lambda p: p.seek(21)),
    "previous_event": (20, lambda p: p.seek(19)),
    "next_request": (0, lambda p: p.next_request()),
    "previous_request": (40, lambda p: p.previous_request()),
    "next_alike": (43, lambda p: p.next_of("BlocksEvicted")),
    "previous_alike": (94, lambda p: p.previous_of("BlocksEvicted")),
    "start": (40, lambda p: p.seek(-1)),
    "end": (40, lambda p: p.seek(len(p.timeline) - 1)),
    "next_hit": (0, lambda p: p.run_to(Run.HIT)),
    "next_miss": (0, lambda p: p.run_to(Run.MISS)),
    "next_evict": (0, lambda p: p.run_to(Run.EVICT)),
    "next_preempt": (0, lambda p: p.run_to(Run.PREEMPT)),
}


def test_every_move_of_the_table_is_tried() -> None:
    moves = {key.action for group in ("Through the run", "To what happens") for key in GROUPS[group]}
    others = {"play", "faster", "slower", "go_to", "add_breakpoint", "resume", "reverse", "run_to_cursor"}
    assert set(MOVES) == moves - others


def test_every_move_by_each_of_its_keys() -> None:
    alone = open_run(NAME)

    async def play(shell: Shell) -> None:
        for action, (start, move) in MOVES.items():
            for key in OF[action]:
                alone.seek(start)
                move(alone)
                assert alone.place != start, f"{action} from {start} would test nothing"
                shell.player.seek(start)
                await shell.press(key)
                assert shell.player.place == alone.place, f"{action} by {key}"
        assert shell.told == []

    drive(play, NAME)


def test_a_move_that_is_not_possible_says_so() -> None:
    async def play(shell: Shell) -> None:
        for action, start, sentence in (
            ("back", "start", "This is the beginning."),
            ("previous_alike", "start", "Nothing has happened yet: go forward first, or select an event."),
            ("next_alike", "start", "Nothing has happened yet: go forward first, or select an event."),
            ("next_alike", "end", "There is no other StepFinished after this."),
            ("forward", "end", "This is the end."),
            ("next_request", "end", "No other request arrives after this."),
            ("next_evict", "start", "Nothing is evicted after this."),
            ("next_preempt", "start", "Nobody is preempted after this."),
            ("play", "end", "This is the end: home goes back to the beginning."),
        ):
            getattr(shell.player, start)()
            before = shell.player.place
            await shell.press(OF[action][0])
            assert shell.player.place == before
            assert sentence in shell.told

    drive(play)


def test_playing() -> None:
    now = [0.0]

    async def play(shell: Shell) -> None:
        player, stops = shell.player, list(shell.player.beats.stops)
        assert not player.playing, "it is paused at the start"
        await shell.press(*OF["faster"], OF["slower"][0])
        assert player.speed == 1
        assert player.place == -1
        await shell.press(OF["play"][0])
        assert player.playing
        now[0] += BEAT_SECONDS * 1.01  # two beats at this speed
        await until(shell, lambda: player.place >= stops[1])
        assert player.place == stops[1]
        await shell.press(OF["play"][0])
        assert not player.playing
        now[0] += 10
        await shell.pilot.pause(0.1)
        assert player.place == stops[1], "paused, it stays"
        await shell.press(OF["play"][0])
        now[0] += 100
        await until(shell, lambda: player.at_end)
        assert not player.playing

    drive(play, clock=lambda: now[0])


@pytest.mark.parametrize("tab", thinned(["1", "2", "3", "4"], "1", "4"))
def test_escape_in_a_panel_first_goes_back_to_what_happened(tab) -> None:
    """As the border of Explain says; then it lets go of the panel, and then it leaves the run."""

    async def play(shell: Shell) -> None:
        shell.player.end()
        await shell.press(tab, "down", "down", "enter")
        assert shell.player.selection != NOTHING
        focused = shell.app.screen.focused
        await shell.press("escape")
        assert (shell.player.selection, shell.app.screen.focused) == (NOTHING, focused)
        await shell.press("escape")
        assert shell.app.screen.focused is None
        await shell.press("escape")
        assert isinstance(shell.app.screen, Chooser)

    drive(play)


def test_escape_leaves_one_thing_after_the_other() -> None:
    async def play(shell: Shell) -> None:
        original = shell.player
        await shell.press("right", OF["fork"][0])
        await shell.choose("Nothing")
        branch = shell.player
        assert branch is not original
        branch.select(Selection("request", "user1"))
        await shell.press(OF["help"][0])
        await shell.press(OF["leave"][0])
        assert branch.selection != NOTHING
        await shell.press(OF["leave"][0])
        assert branch.selection == NOTHING
        assert shell.player is branch
        await shell.press(OF["leave"][0])
        assert shell.player is original
        await shell.press(OF["leave"][0])
        assert isinstance(shell.app.screen, Chooser)
        await shell.press("enter")
        assert shell.player is original

    drive(play)


def test_help_theme_picture_and_quit(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def play(shell: Shell) -> None:
        for key in OF["help"]:
            await shell.press(key)
            assert isinstance(shell.app.screen, Help), key
            await shell.press(key)
            assert isinstance(shell.app.screen, Stage), key
        await shell.press(OF["theme"][0])
        assert not shell.app.current_theme.dark
        await shell.press(OF["theme"][0])
        assert shell.app.current_theme.dark
        await shell.press("right", "right", OF["picture"][0])
        (picture,) = tmp_path.iterdir()
        assert picture.name == f"minicache-two-equal-prompts-hash-event-{shell.player.place}.svg"
        assert picture.read_text(encoding="utf-8").startswith("<svg")
        assert shell.told[-1] == f"Saved {picture.name}\nThis place again: {shell.player.permalink}"
        await shell.press(OF["quit"][0])
        assert shell.app._exit
        assert not shell.app.return_code

    drive(play)


def test_too_small_says_so_until_it_is_larger() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right", "right")
        place = shell.player.place
        for size in ((40, 10), (20, 5), (59, 30)):
            await shell.pilot.resize_terminal(*size)
            await until(shell, lambda: "Too small" in " ".join(shell.lines))
        await shell.pilot.resize_terminal(80, 24)
        await until(shell, lambda: isinstance(shell.app.screen, Stage))
        assert shell.player.place == place

    drive(play)


def test_zoom_works_from_anywhere() -> None:
    async def play(shell: Shell) -> None:
        pool = shell.stage.query_one(Pool)
        assert pool._grid.overview
        assert "z: single blocks" in " ".join(shell.lines)
        await shell.press(OF["zoom"][0])
        assert not pool._grid.overview
        await shell.press("tab", "tab", OF["zoom"][0])
        assert pool._grid.overview
        await shell.press("2", OF["zoom"][0])
        await shell.pilot.pause()
        assert pool.region, "a pool that is hidden comes to the front"

    drive(play, "timestamp-top", size=(80, 24))


def test_where_every_block_is_seen_there_is_nothing_to_zoom() -> None:
    async def play(shell: Shell) -> None:
        await shell.press(OF["zoom"][0])
        assert "there is nothing to enlarge" in shell.told[-1]

    drive(play)


# What a dialog, a note and a panel with the focus leave alone


@pytest.mark.parametrize(
    "action", thinned(["add_breakpoint", "go_to", "find", "fork", "inject", "compare", "help"], "go_to", "help")
)
def test_nothing_plays_on_behind_a_dialog(action) -> None:
    now = [0.0]

    async def play(shell: Shell) -> None:
        stage, player = shell.stage, shell.player
        await shell.press(OF["play"][0])
        assert player.playing
        await shell.press(OF[action][0])
        await until(shell, lambda: shell.app.screen is not stage)
        assert not player.playing
        place = player.place
        now[0] += 100
        await shell.pilot.pause(0.1)
        assert player.place == place

    drive(play, clock=lambda: now[0])


@pytest.mark.parametrize(
    "key", thinned(["right", "tab", "2", "question_mark", "escape", "space"], "right", "question_mark")
)
def test_a_note_is_gone_at_the_next_key_and_never_stands_over_explain(key) -> None:
    async def play(shell: Shell) -> None:
        await shell.press(OF["fork"][0])
        await shell.choose("Nothing")
        above = shell.stage.query_one(Ribbon).region.y
        await until(shell, lambda: "A fork: " in "".join(shell.lines[1:]))
        assert "A fork: " in "".join(shell.lines[1:above])
        await shell.press(key)
        assert shell.told == []

    drive(play, size=(80, 24), notes=True)


def test_right_goes_forward_whatever_has_the_focus_until_a_cursor_is_shown() -> None:
    async def play(shell: Shell) -> None:
        for keys in ("1", "2", "3", "4", ["tab"], ["tab"] * 5, ["tab"] * 7):
            shell.stage.set_focus(None)
            await shell.press("home", *keys)
            assert "right next left back" in shell.footer, keys
            await shell.press("right")
            assert shell.player.place == shell.player.beats.stops[0], keys
        for name in ("pool", "ribbon", "strip", "belt"):
            panel = shell.stage.query_one(f"#{name}")
            panel.focus()
            await shell.press("down")
            assert panel.pointing, name
            assert "n next p back" in shell.footer, name
            place = shell.player.place
            await shell.press("right")
            assert shell.player.place == place, name
            await shell.press("escape")
            assert "right next left back" in shell.footer, name

    drive(play, "timestamp-top", size=(160, 48))
