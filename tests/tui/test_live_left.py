"""A live engine goes on when its screen is left, until the end or until another one is started. One that is being
loaded does not come in between."""

import threading
import time

import pytest

pytest.importorskip("torch")

from textual.widgets import OptionList

from minicache_tui.keys import KEYS
from minicache_tui.live import EngineFailed, LiveEngine
from minicache_tui.player import Player, Selection
from minicache_tui.screens.chooser import Chooser
from minicache_tui.screens.stage import Stage
from tests.thinned import thinned

from .shell_app import PATIENCE, Shell, drive, until

OF = {key.action: key.keys.split(",")[0] for key in KEYS}


async def pick(shell: Shell, id: str) -> None:
    options = shell.app.screen.query_one(OptionList)
    options.highlighted = options.get_option_index(id)
    await shell.pilot.pause()


async def serve(shell: Shell, prompt: str) -> None:
    live = shell.stage.live
    await shell.press(OF["inject"])
    await shell.answer(prompt)
    await until(shell, lambda: live.timeline.events and not live.busy)


@pytest.fixture
def engines(monkeypatch):
    """Every engine that was made."""
    made = []
    real = LiveEngine.__init__

    def init(self, *args, **options):
        real(self, *args, **options)
        made.append(self)

    monkeypatch.setattr(LiveEngine, "__init__", init)
    return made


def test_an_engine_that_is_left_is_there_again_as_it_was(engines) -> None:
    async def play(shell: Shell) -> None:
        await pick(shell, "engine tiny")
        await shell.press("enter")
        await until(shell, lambda: isinstance(shell.app.screen, Stage))
        await serve(shell, "Where is my parcel?")
        await shell.press("end", "left", "left")
        player, place, events = shell.player, shell.player.place, len(shell.player.timeline)
        for between in ((), ("two-equal-prompts",)):
            await shell.press(OF["leave"])
            assert isinstance(shell.app.screen, Chooser)
            assert "n start anew" in shell.footer
            for id in between:
                await pick(shell, id)
                await shell.press("enter", "right", OF["leave"])
            await pick(shell, "engine tiny")
            await shell.press("enter")
            assert shell.player is player
            assert (player.place, len(player.timeline)) == (place, events)
        await serve(shell, "And my letter?")
        assert len(player.timeline) > events
        await shell.press(OF["leave"], "n")
        await until(shell, lambda: isinstance(shell.app.screen, Stage))
        assert shell.player is not player
        assert len(engines) == 2
        assert not engines[0]._thread.is_alive()
        with pytest.raises(EngineFailed, match="has ended"):
            engines[0].submit("Hello")
        await shell.press(OF["leave"], OF["quit"])

    drive(play, None)
    assert not any(engine._thread.is_alive() for engine in engines)


def test_a_prompt_is_served_while_something_else_is_looked_at(engines) -> None:
    async def play(shell: Shell) -> None:
        await pick(shell, "engine tiny")
        await shell.press("enter")
        await until(shell, lambda: isinstance(shell.app.screen, Stage))
        (engine,) = engines
        engine.submit("Where is my parcel?", 8)
        await shell.press(OF["leave"])
        await until(shell, lambda: not engine._wanted.is_set())
        await pick(shell, "engine tiny")
        await shell.press("enter")
        await until(shell, lambda: "prompt-1" in engine.timeline.at(len(engine.timeline) - 1).ended)

    drive(play, None)


@pytest.mark.parametrize("where", thinned(["run", "help", "chooser"]))
def test_an_engine_that_is_loaded_does_not_come_in_between(where, monkeypatch) -> None:
    may_load = threading.Event()
    real = LiveEngine.__init__

    def init(self, *args, **options):
        assert may_load.wait(120)
        real(self, *args, **options)

    monkeypatch.setattr(LiveEngine, "__init__", init)

    async def play(shell: Shell) -> None:
        await pick(shell, "engine tiny")
        await shell.press("enter")
        if where == "run":
            await pick(shell, "two-equal-prompts")
            await shell.press("enter", "right")
        elif where == "help":
            await shell.press("question_mark")
        screen = shell.app.screen
        may_load.set()
        await until(shell, lambda: shell.app.live is not None)
        await shell.pilot.pause()
        if where == "chooser":
            await until(shell, lambda: isinstance(shell.app.screen, Stage))
            assert shell.stage.live is shell.app.live
            return
        assert shell.app.screen is screen
        assert shell.told == ["tiny is loaded: the chooser opens it."]
        await shell.press("escape")
        await pick(shell, "engine tiny")
        await shell.press("enter")
        assert shell.stage.live is shell.app.live, "at once"

    drive(play, None)


# What it says


def test_after_a_prompt_it_is_said_how_to_go_on_and_where_it_ends_what_was_answered() -> None:
    live = LiveEngine("tiny")

    async def play(shell: Shell) -> None:
        text = " ".join(" ".join(shell.lines).replace("│", " ").split())
        assert "press i to type a prompt" in text
        assert "A token is one byte of text here." in text
        await serve(shell, "Where is\nmy parcel?")
        player = shell.player
        assert shell.told == ["prompt-1 is served: o plays what happens, l goes on to the next thing."]
        await until(shell, lambda: "prompt-1" in live.timeline.at(len(live.timeline) - 1).ended)
        place = next(i for i, event in enumerate(player.timeline.events) if type(event).__name__ == "RequestFinished")
        tokens = player.timeline.at(place).ended["prompt-1"].tokens
        answer = bytes(tokens[19:]).decode(errors="replace").replace("\n", "↵")
        player.seek(place)
        shell.stage.sync()
        await shell.pilot.pause()
        for selection in (None, Selection("request", "prompt-1")):
            if selection:
                player.select(selection)
                shell.stage.sync()
                await shell.pilot.pause()
            text = " ".join(" ".join(shell.lines).replace("│", " ").split())
            assert "The prompt: “Where is↵my parcel?”" in text
            assert " ".join(f"The answer: “{answer}”".split()) in text
        await shell.press("escape", "end")
        await shell.pilot.pause()
        text = " ".join(shell.lines)
        assert "In all: 1 request" in text
        assert text.count("The answer: “") == 1
        player.seek(player.index.requests["prompt-1"].arrived + 12)
        player.select(Selection("request", "prompt-1"))
        shell.stage.sync()
        await shell.pilot.pause()
        assert "The answer so far: “" in " ".join(shell.lines)

    drive(play, live.player, live=live, keymap={"play": "o", "forward": "l"}, size=(160, 48))


def test_in_the_middle_of_a_run_nothing_is_said_of_it_all() -> None:
    """At the end of what there is by now, while a request runs."""
    with LiveEngine("tiny") as live:
        live.submit("Where is my parcel?", 8)
        limit = time.monotonic() + PATIENCE
        while live.busy:
            live.poll()
            assert time.monotonic() < limit
        whole = live.timeline

    async def play(shell: Shell) -> None:
        player, closing = shell.player, []
        for event in whole.events:
            player.timeline.add(event)
            player.refresh()
            player.end()
            shell.stage.sync()
            await shell.pilot.pause()
            text = " ".join(shell.lines)
            closing.append("In all:" in text)
            assert "The log ends here" not in text
            assert closing[-1] == (not player.view.requests and player.place >= 0)
        assert closing[-1]

    timeline = type(whole)(whole.settings["num_blocks"], whole.settings["block_size"], whole.settings)
    player = Player(timeline)
    player.grows = True
    drive(play, player)
