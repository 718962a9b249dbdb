"""Every key of every screen is pressed as a person presses it, and something comes of it.

Which keys there are is read from the screens. What exactly comes of them is tried elsewhere; here none is forgotten.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from textual.binding import Binding
from textual.command import CommandPalette
from textual.screen import Screen
from textual.widgets import Input, OptionList

from minicache_tui.keymap import IN_CHOOSER
from minicache_tui.keys import FIXED, KEYS, named
from minicache_tui.panels.pool import Pool
from minicache_tui.player import NOTHING
from minicache_tui.screens.ask import Ask
from minicache_tui.screens.chooser import Chooser
from minicache_tui.screens.help import Help
from minicache_tui.screens.main import TABS
from minicache_tui.screens.menu import Menu
from minicache_tui.screens.stage import Stage, StageOfTwo
from minicache_tui.screens.too_small import TooSmall
from minicache_tui.sources import open_both
from tests.thinned import thinned

from .shell_app import Shell, drive

NAME = "preempt-and-resume"  # has hits, misses, evictions and a preemption
SMALL = (80, 24)
START = {Stage: 7, StageOfTwo: 4}  # where every other move is possible but to the next request
LEAVE = ("quit", "leave", "open", "open_other")  # there is no coming back from these
ELSEWHERE = {(Chooser, "n")}  # it is offered where a live engine serves: `test_live_left.py`


class Situation(NamedTuple):
    """How a screen is reached, and by key what is pressed before it, where it would do nothing at once."""

    opened: str | None
    size: tuple[int, int]
    keys: tuple[str, ...]
    before: dict[str, tuple[str, ...]]


ON_STAGE = {
    "shift+right": ("home",),
    "t": ("strip", "down", "right"),
    "up": ("end",),  # where Explain is longer than its panel, and shows its last lines
    "down": ("end", "up", "up"),
}
UPWARDS = dict.fromkeys(("up", "k", "pageup", "b", "home", "g"), ("end",))
SITUATIONS: dict[type[Screen[Any]], Situation] = {
    Stage: Situation(NAME, (60, 20), (), ON_STAGE),
    StageOfTwo: Situation("both", SMALL, (), ON_STAGE | {"1": ("2",)}),
    Chooser: Situation(None, (60, 20), (), {}),
    Help: Situation(NAME, SMALL, ("question_mark",), UPWARDS),
    Ask: Situation(NAME, SMALL, ("g",), {}),
    Menu: Situation(NAME, SMALL, ("f",), {}),
}
# All that these do there is to say something: there is nothing to zoom, and two are two already.
SAYS = {(Stage, "z"), (StageOfTwo, "z"), (StageOfTwo, "m")}


def keys_of(screen: type[Screen[Any]]) -> Iterator[tuple[str, str]]:
    """Each key of a screen with its action; not those that every screen of Textual has."""
    found = {}
    for cls in screen.__mro__:
        if cls.__module__.startswith("minicache_tui"):
            for binding in Binding.make_bindings(vars(cls).get("BINDINGS", ())):
                found.setdefault(binding.key, binding.action)
    hidden = {f"show_tab({number})" for number in range(1, 5)} if screen is StageOfTwo else set()
    return ((key, action) for key, action in found.items() if action not in hidden)


EVERY = [
    (screen, key, action) for screen in SITUATIONS for key, action in keys_of(screen) if (screen, key) not in ELSEWHERE
]


def shown(shell: Shell) -> object:
    """What a person can tell apart, but for the notes."""
    app = shell.app
    if app._exit:
        return app.return_code
    screen = app.screen
    run = screen.playable if isinstance(screen, Stage) else None
    state = (run.position, run.speed, run.playing, *(p.selection for p in screen.players)) if run else ()
    files = sorted(path.name for path in Path().iterdir())
    return type(screen), len(app.screen_stack), app.theme, screen.focused, state, files, shell.lines


async def press(shell: Shell, key: str) -> None:
    await (shell.focus(key) if key == "strip" else shell.press(key))
    await shell.pilot.pause()


async def reach(shell: Shell, screen: type[Screen[Any]]) -> None:
    """The screen as it is in its situation, whatever was done before."""
    while isinstance(shell.app.screen, Ask | Menu | Help | CommandPalette):
        await shell.press("escape")
    if isinstance(shell.app.screen, Stage):
        stage = shell.stage
        stage.pause()
        stage.playable.scrub(START.get(type(stage), 7))
        stage.playable.speed = 0
        for player in stage.players:
            player.select(NOTHING)
        stage.set_focus(None)
        stage.sync()
    for key in SITUATIONS[screen].keys:
        await press(shell, key)
    await shell.pilot.pause()
    assert type(shell.app.screen) is screen


async def has_an_effect(shell: Shell, screen: type[Screen[Any]], key: str, action: str) -> None:
    await reach(shell, screen)
    for earlier in SITUATIONS[screen].before.get(key, ()):
        await press(shell, earlier)
    done: list[str] = []
    run_action = shell.app.run_action

    async def recorded(what: Any, *args: Any, **options: Any) -> bool:
        done.append(str(what))
        return await run_action(what, *args, **options)

    shell.app.run_action = recorded  # type: ignore[method-assign]
    before = shown(shell)
    await press(shell, key)
    shell.app.run_action = run_action  # type: ignore[method-assign]
    assert done == [action] or (screen is Chooser and key == "enter"), f"{key}: {done}"  # the list's own enter
    assert shown(shell) != before or ((screen, key) in SAYS and shell.told), f"{key} does nothing"


def opened(situation: Situation) -> object:
    return open_both(NAME) if situation.opened == "both" else situation.opened


@pytest.mark.nightly
@pytest.mark.parametrize("screen", SITUATIONS)
def test_every_key_of_a_screen_does_something(screen, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    pressed = []

    async def play(shell: Shell) -> None:
        for of, key, action in EVERY:
            if of is screen and not (action in LEAVE and screen not in (Help, Ask, Menu)):
                await has_an_effect(shell, screen, key, action)
                pressed.append(key)

    drive(play, opened(SITUATIONS[screen]), size=SITUATIONS[screen].size)
    assert pressed


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("screen", "key", "action"),
    [every for every in EVERY if every[2] in LEAVE and every[0] not in (Help, Ask, Menu)],
)
def test_every_key_that_leaves_a_screen_leaves_it(screen, key, action, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def play(shell: Shell) -> None:
        await has_an_effect(shell, screen, key, action)
        assert shell.app._exit or type(shell.app.screen) is not screen

    drive(play, opened(SITUATIONS[screen]), size=SITUATIONS[screen].size)


def test_no_key_is_left_out() -> None:
    of_stage = {key for screen, key, _ in EVERY if screen is Stage}
    table = [name for key in KEYS for name in key.keys.split(",")]
    assert len(table) == len(set(table)), "two actions have the same key"
    assert len({key.footer for key in KEYS if key.footer}) <= 6
    fixed = {named(key) for keys, _ in FIXED for key in keys.split()}
    assert of_stage == set(table) | fixed - {"enter", "tab", "ctrl+p", "ctrl+c"}, "those have tests of their own below"
    assert set(IN_CHOOSER) == {key for key, _ in keys_of(Chooser) if key not in fixed} - {
        name for key in KEYS if key.action in ("help", "theme", "quit") for name in key.keys.split(",")
    }


# What has no binding of a screen


@pytest.mark.parametrize("size", thinned([(80, 24), (160, 48)]))
def test_tab_goes_through_all_panels_and_shift_tab_back(size) -> None:
    async def play(shell: Shell) -> None:
        names = []
        for _ in range(12):
            await shell.press("tab")
            names.append(shell.app.screen.focused.id)
        ring = names[: names.index(names[0], 1)]
        assert {"pool", "ribbon", "explain", "strip"} <= set(ring)
        assert len(ring) == len(set(ring))
        assert names == (ring * 12)[:12]
        back = []
        for _ in ring:
            await shell.press("shift+tab")
            back.append(shell.app.screen.focused.id)
        at = ring.index(names[-1])
        assert back == [*(ring[at::-1] + ring[:at:-1])[1:], names[-1]]

    drive(play, NAME, size=size)


@pytest.mark.parametrize(
    "size", thinned([(60, 20), (80, 24), (80, 48), (120, 36), (160, 48), (160, 24)], (60, 20), (160, 48))
)
def test_one_to_four_show_their_panel_and_focus_it(size) -> None:
    async def play(shell: Shell) -> None:
        for number in (2, 1, 3, 4, 1, 4, 2, 3, 1):
            await shell.press(str(number))
            await shell.pilot.pause()
            panel = shell.stage.query_one(f"#{TABS[number - 1]}")
            assert panel.has_focus
            assert panel.region.height >= 3, "it is seen"
            assert panel.region.bottom <= size[1]

    drive(play, NAME, size=size)


@pytest.mark.parametrize("size", thinned([(60, 20), (80, 24), (120, 36), (160, 48)], (80, 24), (120, 36)))
def test_one_and_two_show_their_side_of_a_comparison_where_there_is_no_room_for_both(size) -> None:
    async def play(shell: Shell) -> None:
        def sides() -> tuple[bool, bool]:
            left, right = (
                any(pool.region for pool in shell.stage.query(f"#{side} Pool")) for side in ("left", "right")
            )
            return left, right

        narrow = size[0] < 104
        for key in "1221":
            await shell.press(key)
            await shell.pilot.pause()
            expected = (key == "1", key == "2") if narrow else (True, True)
            assert sides() == expected, key
        for key in "34":
            before = shown(shell)
            await shell.press(key)
            assert shown(shell) == before, "there are two sides"

    drive(play, open_both("timestamp-top"), size=size)


def test_zoom_by_key_and_by_wheel() -> None:
    async def play(shell: Shell) -> None:
        pool = shell.stage.query_one(Pool)
        overview = [pool.render_line(y).text for y in range(pool.height)]
        await shell.press("z")
        single = [pool.render_line(y).text for y in range(pool.height)]
        assert single != overview
        await shell.press("z")
        assert [pool.render_line(y).text for y in range(pool.height)] == overview
        there = pool._grid.x_of(2) + 2, 2
        blocks = pool._grid.blocks_of(pool._grid.cell_at(there[0] - 2, there[1] - 1))
        assert await shell.pilot._post_mouse_events([scroll_up()], Pool, there)
        await shell.pilot.pause()
        assert not pool._grid.overview
        assert pool.cursor in blocks, "around what the pointer is on"
        assert any(pool._grid.line_of(pool.cursor) == pool.scroll_offset.y + y for y in range(pool.height))

    drive(play, "timestamp-top", size=SMALL)


def scroll_up() -> type:
    from textual.events import MouseScrollUp

    return MouseScrollUp


# Everywhere


async def too_small(shell: Shell) -> None:
    await shell.pilot.resize_terminal(40, 10)
    await shell.pilot.pause()


ANYWHERE = {
    Stage: (NAME, ()),
    StageOfTwo: ("both", ()),
    Chooser: (None, ()),
    Help: (NAME, ("question_mark",)),
    Ask: (NAME, ("g",)),
    Menu: (NAME, ("f",)),
    CommandPalette: (NAME, ("ctrl+p",)),
    TooSmall: (NAME, ()),
}


@pytest.mark.parametrize("playing", thinned([False, True]))
@pytest.mark.parametrize("screen", ANYWHERE)
def test_ctrl_c_quits_at_once_from_everywhere_with_the_status_of_an_interrupt(screen, playing) -> None:
    name, keys = ANYWHERE[screen]

    async def play(shell: Shell) -> None:
        if playing and name:
            await shell.press("space")
        await shell.press(*keys)
        if screen is TooSmall:
            await too_small(shell)
        assert isinstance(shell.app.screen, screen)
        await shell.press("ctrl+c")
        assert shell.app._exit
        assert shell.app.return_code == 130

    drive(play, open_both(NAME) if name == "both" else name)


@pytest.mark.parametrize("screen", thinned([Stage, StageOfTwo, Chooser], Stage, Chooser))
def test_ctrl_p_opens_all_commands_which_can_be_searched_and_done(screen) -> None:
    async def play(shell: Shell) -> None:
        dark = shell.app.current_theme.dark
        await shell.press("ctrl+p")
        assert isinstance(shell.app.screen, CommandPalette)
        await shell.press("escape")
        assert type(shell.app.screen) is screen
        if screen is Chooser:
            return
        await shell.press("ctrl+p")
        shell.app.screen.query_one(Input).value = "Dark or light"
        for _ in range(8):
            await shell.pilot.pause(0.05)
        options = shell.app.screen.query_one(OptionList)
        assert "Dark or light" in str(options.get_option_at_index(0).prompt)
        assert "Key: d" in " ".join(shell.lines)
        await shell.press("enter")
        await shell.pilot.pause()
        assert type(shell.app.screen) is screen
        assert shell.app.current_theme.dark != dark

    name = ANYWHERE[screen][0]
    drive(play, open_both(NAME) if name == "both" else name)
