"""Every key of the player's screen: where the player is afterwards, what is selected, asked or told."""

import time

import pytest
from textual.widgets import Input

from minicache.core.errors import MinicacheError
from minicache.core.events import PrefixMatched
from minicache_tui.comparison import Comparison
from minicache_tui.keys import KEYS, BadKeys, read_keymap
from minicache_tui.panels.pool import Pool
from minicache_tui.panels.ribbon import Ribbon
from minicache_tui.panels.strip import BREAKPOINT, Strip
from minicache_tui.playable import BEAT_SECONDS
from minicache_tui.player import NOTHING, Run, Selection
from minicache_tui.screens.ask import Ask
from minicache_tui.screens.chooser import Chooser
from minicache_tui.screens.help import Help
from minicache_tui.screens.menu import Menu
from minicache_tui.screens.stage import Stage
from minicache_tui.sources import open_both, open_run

from .shell_app import Shell, drive

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
# What the other tests of this file press; each is named by the test that does.
ELSEWHERE = {
    "play": "test_playing",
    "faster": "test_playing",
    "slower": "test_playing",
    "add_breakpoint": "test_breakpoints",
    "resume": "test_breakpoints",
    "reverse": "test_breakpoints",
    "run_to_cursor": "test_going_to_what_is_selected_named_or_found",
    "go_to": "test_going_to_what_is_selected_named_or_found",
    "find": "test_going_to_what_is_selected_named_or_found",
    "fork": "test_the_fork_of_the_first_three_minutes_makes_the_second_user_hit",
    "inject": "test_a_request_of_ones_own",
    "compare": "test_comparing",
    "help": "test_help_theme_picture_and_quit",
    "theme": "test_help_theme_picture_and_quit",
    "picture": "test_help_theme_picture_and_quit",
    "quit": "test_help_theme_picture_and_quit",
    "leave": "test_escape_leaves_one_thing_after_the_other",
    "zoom": "test_zoom_works_from_anywhere",
}


def test_every_key_is_pressed_here() -> None:
    assert set(MOVES) | set(ELSEWHERE) == set(OF)
    assert not set(MOVES) & set(ELSEWHERE)
    for action, test in ELSEWHERE.items():
        source = globals()[test].__code__
        assert f'OF["{action}"]' in open(source.co_filename, encoding="utf-8").read(), action  # noqa: SIM115
    keys = [key for names in OF.values() for key in names]
    assert len(keys) == len(set(keys)), "two actions have the same key"
    assert len({key.footer for key in KEYS if key.footer}) <= 6


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
            ("previous_alike", "start", "Nothing has happened yet: go forward first."),
            ("next_alike", "start", "Nothing has happened yet: go forward first."),
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


async def until(shell: Shell, condition, seconds: float = 10) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, shell.lines
        await shell.pilot.pause(0.01)


def test_breakpoints() -> None:
    async def play(shell: Shell) -> None:
        player = shell.player
        await shell.press(OF["add_breakpoint"][0])
        kinds = {type(event).__name__ for event in player.timeline.events}
        assert all(kind in " ".join(shell.lines).replace("\n", " ") for kind in kinds), "it says what there is"
        for line, words in (
            ("everything", "'everything' is no condition"),
            ("colour=red", "there is no condition on 'colour'"),
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


def test_going_to_what_is_selected_named_or_found() -> None:
    async def play(shell: Shell) -> None:
        player = shell.player
        await shell.press(OF["run_to_cursor"][0])
        assert player.place == -1
        assert "Select an event first" in shell.told[-1]
        player.select(Selection("event", 30))
        await shell.press(OF["run_to_cursor"][0])
        assert player.place == 30
        for line, place in (
            ("3", player.timeline.place_of_step(3)),
            ("step 4", player.timeline.place_of_step(4)),
            ("e44", 44),
            (" event 45 ", 45),
            ("second", player.index.requests["second"].arrival),
        ):
            await shell.press(OF["go_to"][0])
            await shell.answer(line)
            assert player.place == place, line
        assert player.selection == Selection("request", "second")
        await shell.press(OF["go_to"][0])
        for line, words in (("secnd", "did you mean 'second'?"), ("e99999", "99999"), ("99999", "99999"), ("", "")):
            await shell.answer(line)
            assert isinstance(shell.app.screen, Ask)
            assert words in shell.error
            assert shell.error
        await shell.press("escape", OF["find"][0])
        await shell.answer("no such words")
        assert shell.error == "there is nothing here that is called, begins with or holds 'no such words'"
        await shell.answer("Sing me")
        assert player.selection == Selection("request", "second")
        await shell.press(OF["find"][0])
        await shell.answer("s")
        assert isinstance(shell.app.screen, Menu), "several were found"
        await shell.press("escape")
        assert isinstance(shell.app.screen, Stage)

    drive(play, NAME)


def hit(player, request: str) -> int:
    """Tokens that the request's lookup found, over the whole run."""
    place = player.place
    player.end()
    row = next(row for row in player.requests() if row.id == request)
    player.seek(place)
    return row.hit or 0


def test_the_fork_of_the_first_three_minutes_makes_the_second_user_hit() -> None:
    async def play(shell: Shell) -> None:
        original = shell.player
        await shell.press("home", *["right"] * 6, OF["fork"][0])
        await until(shell, lambda: "“It is 14:03:21. You are…”" in " ".join(shell.lines))  # it names the parts
        await shell.choose("Move what comes first")
        branch = shell.player
        assert branch.parent is original
        assert hit(branch, "user2") > hit(original, "user2")
        assert shell.told == ["m compares the two, esc goes back to the original."]
        await shell.press(OF["compare"][0])
        await shell.choose(0)
        comparison = shell.stage.playable
        assert isinstance(comparison, Comparison)
        assert (comparison.left.timeline, comparison.right.timeline) == (original.timeline, branch.timeline)
        assert comparison.parting is not None

    drive(play, "timestamp-top")


def test_a_fork_that_is_asked_for_wrongly_says_why_and_stays_open() -> None:
    async def play(shell: Shell) -> None:
        await shell.press(OF["fork"][0])
        await shell.choose("Another policy")
        for line, words in (
            ("queue_policy", "'queue_policy': write name=value"),
            ("queue_polic=lpm", "queue_polic"),
            ("", "write name=value"),
        ):
            await shell.answer(line)
            assert isinstance(shell.app.screen, Ask), line
            assert words in shell.error
        await shell.press("escape", OF["fork"][0])
        await shell.choose("Fewer blocks")
        await shell.answer("many")
        assert shell.error == "'many' is no number: write how many blocks to take away"
        await shell.answer("100000")
        assert isinstance(shell.app.screen, Ask)
        assert shell.error
        await shell.press("escape")
        assert shell.player.parent is None

    drive(play)


def test_a_request_of_ones_own() -> None:
    async def play(shell: Shell) -> None:
        original = shell.player
        await shell.press("end", OF["inject"][0])
        for line in ("", "mine1 (0): hello", "user1 (2): taken", "mine1 (2): |"):
            await shell.answer(line)
            assert isinstance(shell.app.screen, Ask), line
            assert shell.error
        assert "It comes in after step 2," in " ".join(shell.lines), "where it comes in"
        await shell.answer("mine1 (2): What is the capital city of New Zealand?")
        event = next(
            e for e in shell.player.timeline.events if getattr(e, "num_cached_tokens", 0) and e.request == "mine1"
        )
        assert (
            f"mine1 comes in after step 2, is admitted in step {event.step} and hits {event.num_cached_tokens} of its "
            "40 tokens." in shell.told[-1]
        )
        assert shell.player.parent is original
        assert "mine1" not in original.index.requests
        assert hit(shell.player, "mine1") > 0, "its prompt was there before"

    drive(play)


def test_comparing() -> None:
    async def play(shell: Shell) -> None:
        await shell.press(OF["compare"][0])
        await shell.choose(0)
        comparison = shell.stage.playable
        assert isinstance(comparison, Comparison)
        assert [player.timeline.kind for player in shell.stage.players] == ["hash", "radix"]
        await shell.press("right", "right", "right")
        assert all(player.place >= 0 for player in shell.stage.players)
        await shell.press(OF["compare"][0])
        assert shell.stage.playable is comparison
        assert "These are two already" in shell.told[-1]
        await shell.press("escape", OF["compare"][0])
        await shell.choose(1)
        await shell.answer("max_num_seq=1")
        assert isinstance(shell.app.screen, Ask)
        assert "max_num_seq" in shell.error
        await shell.answer("max_num_seqs=1")
        assert isinstance(shell.stage.playable, Comparison)

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
        assert picture.name == f"minicache-two-equal-prompts-event-{shell.player.place}.svg"
        assert picture.read_text(encoding="utf-8").startswith("<svg")
        assert shell.told[-1] == f"Saved {picture.name}\nThis place again: {shell.player.permalink}"
        await shell.press(OF["quit"][0])
        assert shell.app._exit
        assert not shell.app.return_code

    drive(play)


def test_ctrl_c_leaves_from_a_dialog_too() -> None:
    async def play(shell: Shell) -> None:
        await shell.press(OF["go_to"][0])
        await shell.press("ctrl+c")
        assert shell.app.return_code == 130

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


# A person's own keys


def test_other_keys() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("l")
        assert shell.player.place == shell.player.beats.stops[0]
        await shell.press("right")
        assert shell.player.place == shell.player.beats.stops[0], "the old key does nothing any more"
        await shell.press("x")
        assert shell.player.place == -1

    drive(play, keymap={"forward": "l", "back": "h,x"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[keys\n", "cannot be read as TOML"),
        ("[keys]\nforwrd = 'l'\n", "there is no action 'forwrd': did you mean 'forward'?"),
        ("[keys]\nzzzzzz = 'l'\n", "`minicache tui --keys` lists them"),
        ("[keys]\nback = 3\n", "back must be a text with keys"),
        ("[keys]\nback = 'h,'\n", "back must be a text with keys"),
        ("back = 'l'\n", "write one table [keys]"),
        ("[keys]\nback = 'l'\n[more]\n", "write one table [keys]"),
    ],
)
def test_a_wrong_key_map_is_named_in_a_sentence(text, words, tmp_path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadKeys) as caught:
        read_keymap(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert isinstance(caught.value, MinicacheError)


def test_a_key_map_is_read(tmp_path) -> None:
    path = tmp_path / "keys.toml"
    assert read_keymap(path) == {}
    path.write_text('[keys]\nforward = "l,→"\nback = "["\nplay = "space,question_mark"\n', encoding="utf-8")
    names = {"forward": "l,right", "back": "left_square_bracket", "play": "space,question_mark"}
    assert read_keymap(path) == names


def test_a_live_engine_serves_what_is_typed_and_can_be_scrubbed() -> None:
    pytest.importorskip("torch")
    from minicache_tui.live import LiveEngine

    live = LiveEngine("tiny")

    async def play(shell: Shell) -> None:
        assert "press i to type a prompt" in " ".join(shell.lines)
        await shell.press(OF["inject"][0])
        await shell.answer("")
        assert shell.error == "the prompt is empty: type some text"
        await shell.answer("Once upon a time")
        await until(shell, lambda: "prompt-1" in live.timeline.at(len(live.timeline) - 1).ended, 60)
        await until(shell, lambda: isinstance(shell.player.current, PrefixMatched))
        assert "prompt-1 looks up" in " ".join(shell.lines), "it stays where the lookup is told"
        await shell.press("end")
        await shell.press("left", "left")
        assert not shell.player.at_end
        place = shell.player.place
        await shell.press(OF["inject"][0])
        await shell.answer("Once upon a time there was")
        await until(shell, lambda: shell.player.place > place and isinstance(shell.player.current, PrefixMatched))
        assert shell.player.current.request == "prompt-2"
        await shell.press("home")
        assert shell.player.place == -1

    drive(play, live.player, live=live)
    assert not live._thread.is_alive(), "leaving ends its thread"


# What a dialog, a note and a panel with the focus leave alone


@pytest.mark.parametrize("action", ["add_breakpoint", "go_to", "find", "fork", "inject", "compare", "help"])
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


@pytest.mark.parametrize("key", ["right", "tab", "2", "question_mark", "escape", "space"])
def test_a_note_is_gone_at_the_next_key_and_never_stands_over_explain(key) -> None:
    async def play(shell: Shell) -> None:
        await shell.press(OF["fork"][0])
        await shell.choose("Nothing")
        above = shell.stage.query_one(Ribbon).region.y
        await until(shell, lambda: "esc goes back to the original" in "".join(shell.lines))
        assert "esc goes back to the original" in "".join(shell.lines[:above])
        assert all(note.timeout <= 2.5 for note in shell.app._notifications)
        await shell.press(key)
        assert shell.told == []

    drive(play, size=(80, 24), notes=True)


def test_right_goes_forward_whatever_has_the_focus_until_a_cursor_is_shown() -> None:
    async def play(shell: Shell) -> None:
        for keys in ("1", "2", "3", "4", *(["tab"] * n for n in range(1, 9))):
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


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (160, 48)])
def test_a_comparison_shows_both_hit_rates_the_total_and_how_to_change_sides(size) -> None:
    async def play(shell: Shell) -> None:
        await shell.press("end")
        await shell.pilot.pause()
        lines = " ".join(shell.lines)
        narrow = size[0] < 104
        left, right = shell.stage.playable.rates
        assert (left, right) == ("0.0 %", "1.5 %")
        for rate in (left, right):
            assert rate in " ".join(line for line in shell.lines if "hit rate" in line)
        assert "the whole run: 0.0 % against 1.5 % of tokens found" in lines
        assert ("1 sides 2 sides" in shell.footer) == narrow
        pool = shell.stage.query(Pool).first()
        assert pool.size.height >= 2, "blocks are seen"
        for key in "1234":
            await shell.press(key)
        await shell.press(OF["help"][0])
        assert "Two runs in lock-step" in " ".join(shell.lines)

    drive(play, open_both("timestamp-top"), size=size)
