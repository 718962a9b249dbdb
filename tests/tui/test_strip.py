"""The event strip by keys alone and by mouse: its cursor selects and leaves the run where it is, a click goes there."""

from itertools import pairwise

import pytest

from minicache_tui.model.strip import rank_of
from minicache_tui.panels.strip import Strip
from minicache_tui.playable import BEAT_SECONDS
from minicache_tui.player import NOTHING, Selection
from minicache_tui.sources import open_both, open_run
from tests.thinned import thinned

from .player_runs import TIMELINES
from .shell_app import Shell, drive, until

NAME = "preempt-and-resume"  # has hits, misses, evictions and a preemption
RIGHT = 9  # cells


def column(strip: Strip, cell: int) -> tuple[int, int]:
    """Where a cell is on the strip, as the mouse sees it."""
    return 2 + strip._column(cell), 0


@pytest.mark.parametrize("size", thinned([(60, 20), (160, 48)]))
@pytest.mark.parametrize("show", ["down", "up", "enter"])
def test_by_keys_alone_an_event_is_selected_explained_and_gone_to(size, show) -> None:
    async def play(shell: Shell) -> None:
        player, strip = shell.player, shell.stage.query_one(Strip)
        await shell.press("right", "right", "right")
        place = player.place
        here = strip._here
        await shell.focus("strip")
        await shell.press(show)
        assert "▼" in shell.lines[-2], "it shows a cursor"
        await shell.press(*["right"] * RIGHT, "left")
        assert player.place == place, "the run stays where it is"
        assert player.selection == NOTHING
        cell = strip._cells[here + RIGHT - 1]
        await shell.press("enter")
        assert player.place == place
        kind, event = player.selection
        assert kind == "event"
        assert cell.first <= event <= cell.last
        ranks = [rank_of(player.timeline.events[i]) for i in range(cell.first, cell.last + 1)]
        assert ranks[event - cell.first] == max(ranks), "it is the one that the sign stands for"
        assert f"Explain · event {event}" in " ".join(shell.lines)
        assert "▼" in shell.lines[-2]
        assert strip._cells[strip._pointed] == cell, "the cursor stays"
        await shell.press("t")
        assert player.place == event
        await shell.press("t")
        assert player.place == event
        assert shell.told[-1] == "That event is this one."

    drive(play, NAME, size=size)


def test_who_runs_to_the_cursor_need_not_select_first_and_what_is_selected_stays_a_target_elsewhere() -> None:
    async def play(shell: Shell) -> None:
        player = shell.player
        await shell.press("t")
        assert player.place == -1
        assert shell.told[-1].startswith("Select an event first: tab to the event strip, down shows a cursor")
        await shell.focus("strip")
        await shell.press("down", "right", "right", "t")
        assert player.place == 2
        await shell.press("down", "right", "right", "right", "enter")
        assert player.selection == Selection("event", 5)
        await shell.press("escape", "t")
        assert player.place == 5

    drive(play, "two-equal-prompts", size=(300, 36))


def test_a_cell_that_shows_a_breakpoint_stands_for_the_event_at_which_it_stops() -> None:
    async def play(shell: Shell) -> None:
        player, strip = shell.player, shell.stage.query_one(Strip)
        await shell.press("b")
        await shell.answer("kind=TokensSampled")
        stop = player.timeline.next(-1, "TokensSampled")
        cell = next(i for i, cell in enumerate(strip._cells) if cell.first <= stop <= cell.last)
        await shell.focus("strip")
        await shell.press("down", *["right"] * cell, "t")
        assert player.place == stop

    drive(play, NAME, size=(60, 20))


@pytest.mark.parametrize("kind", thinned(["BlocksEvicted", "TokensComputed"]))
def test_brackets_go_by_the_kind_of_the_event_that_is_selected(kind) -> None:
    run = TIMELINES[f"{NAME}, hash"]
    place = run.next(20, kind)

    async def play(shell: Shell) -> None:
        player, strip = shell.player, shell.stage.query_one(Strip)
        await shell.focus("strip")
        await shell.press("down", *["right"] * place, "enter")
        assert player.selection == Selection("event", place)
        assert strip._cells[place].first == strip._cells[place].last == place
        expected = []
        for key in ("]", "]", "["):
            following = run.next if key == "]" else run.previous
            expected.append(following(expected[-1] if expected else -1, kind))
            await shell.press({"]": "right_square_bracket", "[": "left_square_bracket"}[key])
            assert player.place == expected[-1], key

    drive(play, NAME, size=(300, 36))


def test_with_nothing_selected_brackets_go_by_the_kind_of_this_event() -> None:
    async def play(shell: Shell) -> None:
        player = shell.player
        for place in range(10, 40, 3):
            player.seek(place)
            kind = type(player.current).__name__
            following = player.timeline.next(place, kind)
            await shell.press("right_square_bracket")
            assert player.place == (place if following is None else following)

    drive(play, NAME)


# The mouse


@pytest.mark.parametrize("width", thinned([60, 100, 160, 300]))
@pytest.mark.parametrize("opened", [NAME, "two-equal-prompts", "both"])
def test_the_mouse_gets_from_the_beginning_to_the_end_of_a_run(width, opened) -> None:
    async def play(shell: Shell) -> None:
        strip, run = shell.stage.query_one(Strip), shell.stage.playable
        right = strip.region.width - 1
        places = []
        for x in (1, width // 3, width // 2, right):
            await shell.pilot.click(Strip, offset=(x, 0))
            await shell.pilot.pause()
            places.append(shell.player.place)
        assert all(before < after for before, after in pairwise(places))
        assert places[0] == 0
        assert shell.player.place == len(shell.player.timeline) - 1
        assert run.at_end, "of two runs that is the end of both"
        await shell.press("home")
        await shell.pilot.mouse_down(Strip, offset=(3, 0))
        await shell.pilot.hover(Strip, offset=(right, 0))
        await shell.pilot.mouse_up(Strip, offset=(right, 0))
        await shell.pilot.pause()
        assert run.at_end
        await shell.press("left")
        assert not run.at_end
        await shell.pilot.click(Strip, offset=(right, 0))
        await shell.pilot.pause()
        assert run.at_end, "also from within the last stretch"

    drive(play, open_both("timestamp-top") if opened == "both" else open_run(opened), size=(width, 36))


def test_whoever_scrubs_while_it_plays_pauses_it() -> None:
    now = [0.0]

    async def play(shell: Shell) -> None:
        player = shell.player
        for there in (20, 90):
            await shell.press("home", "space")
            assert player.playing
            await shell.pilot.click(Strip, offset=(there, 0))
            await shell.pilot.pause()
            assert not player.playing
            place = player.place
            now[0] += BEAT_SECONDS * 10
            await shell.pilot.pause(0.1)
            assert player.place == place
            await shell.press("space")
            now[0] += BEAT_SECONDS * 1.01
            await until(shell, lambda: player.place > place)  # noqa: B023 (it is called at once)

    drive(play, NAME, clock=lambda: now[0])
