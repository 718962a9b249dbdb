"""Breakpoints: what can be typed, where they stop, what is said where they never do."""

import pytest
from textual.widgets import Input

from minicache.sim.errors import BadBreakpoint
from minicache_tui.keys import KEYS
from minicache_tui.panels.strip import BREAKPOINT, Strip
from minicache_tui.player import Player
from minicache_tui.screens.ask import Ask
from minicache_tui.screens.menu import Menu
from minicache_tui.sources import open_both
from minicache_tui.stops import kinds_of, read_breakpoints

from .player_runs import TIMELINES
from .shell_app import Shell, drive

NAME = "preempt-and-resume"  # has hits, misses, evictions and a preemption
OF = {key.action: key.keys.split(",") for key in KEYS}


def test_breakpoints() -> None:
    async def play(shell: Shell) -> None:
        player = shell.player
        await shell.press(OF["add_breakpoint"][0])
        kinds = {type(event).__name__ for event in player.timeline.events}
        assert all(kind in " ".join(shell.lines).replace("\n", " ") for kind in kinds), "it says what there is"
        for line, words in (
            ("everything", "'everything' is not a condition"),
            ("colour=red", "'colour' is not a field of a condition"),
            ("kind=BlockEvicted", "did you mean 'BlocksEvicted'?"),
            ("request=secnd", "this run has no request 'secnd': did you mean 'second'?"),
            ("request=nobody", "it has first"),
            ("block=0", "this pool has no block b0: it has b1 to b"),
            ("block=12345", "this pool has no block b12345"),
        ):
            await shell.answer(line)
            assert words in shell.error
            assert isinstance(shell.app.screen, Ask), "it stays open"
        await shell.answer("evict")
        assert shell.told[-1].startswith("kind=BlocksEvicted stops at 6 events of this run.")
        evictions = [i for i, event in enumerate(player.timeline.events) if type(event).__name__ == "BlocksEvicted"]
        for place in evictions[:2]:
            await shell.press(OF["resume"][0])
            assert player.place == place
        await shell.press(OF["reverse"][0])
        assert player.place == evictions[0]
        await shell.press(OF["reverse"][0])
        assert player.place == -1
        assert shell.told[-1] == "No breakpoint was hit. This is the beginning."
        player.seek(evictions[-1])
        await shell.press(OF["resume"][0])
        assert player.at_end
        assert shell.told[-1] == "No breakpoint was hit. This is the end."
        await shell.press(OF["add_breakpoint"][0])
        assert isinstance(shell.app.screen, Menu)
        await shell.choose(1)
        assert player.breakpoints == []
        await shell.press(OF["resume"][0])
        assert player.at_end
        assert shell.told[-1] == "No breakpoint is set: b sets one. This is the end."

    drive(play, NAME)


def test_what_is_typed_of_a_breakpoint_is_completed() -> None:
    async def play(shell: Shell) -> None:
        await shell.press(OF["add_breakpoint"][0])
        field = shell.app.screen.query_one(Input)
        for begun, completed in (
            ("ki", "kind="),
            ("kind=blocksE", "kind=BlocksEvicted"),
            ("kind=BlocksEvicted req", "kind=BlocksEvicted request="),
            ("request=s", "request=second"),
        ):
            field.value = begun
            field.cursor_position = len(begun)
            await shell.pilot.pause()
            await shell.press("right")
            assert field.value == completed

    drive(play, NAME)


def test_where_a_breakpoint_stops_is_marked_on_the_strip() -> None:
    async def play(shell: Shell) -> None:
        strip = shell.stage.query_one(Strip)
        places = [i for i, event in enumerate(shell.player.timeline.events) if type(event).__name__ == "BlocksEvicted"]
        marks = [i for i, cell in enumerate(strip._cells) if any(cell.first <= place <= cell.last for place in places)]
        assert BREAKPOINT not in shell.lines[-2]
        await shell.press(OF["add_breakpoint"][0])
        await shell.answer("kind=BlocksEvicted")
        await shell.pilot.pause()
        line = "".join(text for text, _ in strip.line(0))
        assert [index for index, char in enumerate(line) if char == BREAKPOINT] == [1 + strip._column(i) for i in marks]
        assert BREAKPOINT in shell.lines[-2]
        assert "a breakpoint stops here" in strip.describe(1 + strip._column(marks[0]), 0)
        await shell.press(OF["add_breakpoint"][0])
        await shell.choose(1)
        assert BREAKPOINT not in shell.lines[-2]

    drive(play, NAME)


# Short words


@pytest.mark.parametrize("name", TIMELINES)
@pytest.mark.parametrize(
    ("word", "kinds"),
    [
        ("evict", {"hash": "BlocksEvicted", "radix": "NodesEvicted"}),
        ("kind=evict", {"hash": "BlocksEvicted", "radix": "NodesEvicted"}),
        ("Evicted", {"hash": "BlocksEvicted", "radix": "NodesEvicted"}),
        ("preempt", "RequestPreempted"),
        ("arrive", "RequestArrived"),
        ("requestarr", "RequestArrived"),
        ("publish", "BlocksPublished"),
        ("split", "NodeSplit"),
        ("finished", None),
    ],
)
def test_a_short_word_is_understood_in_every_run_whether_it_happens_there_or_not(name, word, kinds) -> None:
    player = Player(TIMELINES[name])
    if kinds is None:  # of a step or of a request: two things
        with pytest.raises(BadBreakpoint, match="did you mean kind="):
            read_breakpoints(word, player)
        return
    expected = kinds[player.timeline.kind] if isinstance(kinds, dict) else kinds
    assert [point.kind for point in read_breakpoints(word, player)] == [expected]
    assert [point.kind for point in read_breakpoints(f"{word} block=3", player)] == [expected]


@pytest.mark.parametrize("name", ["two-equal-prompts", "preempt-and-resume"])
def test_of_two_runs_both_kinds_of_eviction_are_meant(name) -> None:
    comparison = open_both(name)
    sides = (comparison.left, comparison.right)
    points = read_breakpoints("evict", *sides)
    expected = {"BlocksEvicted", "NodesEvicted"}
    here = expected & set(kinds_of(*(side.timeline for side in sides)))
    assert {point.kind for point in points} == (here or expected)


@pytest.mark.parametrize("name", ["two-equal-prompts", "both"])
def test_where_it_never_stops_that_is_said_and_what_the_dialog_offers_is_taken(name) -> None:
    async def play(shell: Shell) -> None:
        await shell.press(OF["add_breakpoint"][0])
        assert "(evict)" in " ".join(shell.lines)
        await shell.answer("evict")
        both = "kind=BlocksEvicted or kind=NodesEvicted never stops in these runs."
        assert shell.told[-1] == (both if name == "both" else "kind=BlocksEvicted never stops in this run.")

    drive(play, open_both("two-equal-prompts") if name == "both" else name)


@pytest.mark.parametrize("name", TIMELINES)
def test_an_example_names_a_request_of_this_run(name) -> None:
    player = Player(TIMELINES[name])
    for line in ("hello", "", "colour=red", "request<3"):
        with pytest.raises(BadBreakpoint) as caught:
            read_breakpoints(line, player)
        (request,) = {word.partition("=")[2].strip(",") for word in str(caught.value).split() if "request=" in word}
        assert request in player.index.requests
