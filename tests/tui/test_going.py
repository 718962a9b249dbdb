"""Going to a step, an event or a request, and finding: where one comes to, and what is said of what cannot be."""

from itertools import cycle

import pytest

from minicache.core.errors import MinicacheError
from minicache.sim.errors import UnknownThing
from minicache_tui import sources
from minicache_tui.keys import KEYS
from minicache_tui.numbers import NoNumber, whole
from minicache_tui.player import NOTHING, Selection
from minicache_tui.screens.ask import Ask
from minicache_tui.screens.menu import Menu
from minicache_tui.screens.stage import Stage
from minicache_tui.sources import open_both, open_run
from tests.thinned import thinned

from .shell_app import Shell, drive

NAME = "preempt-and-resume"
OF = {key.action: key.keys.split(",")[0] for key in KEYS}
ENDLESS = "9" * 5000  # of which Python makes no number


def opened(both: bool):
    return open_both(NAME) if both else open_run(NAME)


def where(run) -> object:
    player = run.left if hasattr(run, "left") else run
    return run.position, player.place, player.selection


@pytest.mark.parametrize("both", [False, True])
def test_the_dialog_goes_to_where_a_permalink_goes(both) -> None:
    """Whatever is typed: steps with and without a lookup, events, requests."""
    there = opened(both)
    player = there.left if both else there
    numbers = range(1, there.num_steps + 1, 4)
    steps = [
        (line.format(step), {"step": step})
        for step, line in zip(numbers, cycle(("{}", "step {}", " Step{} ")), strict=False)
    ]
    last = len(player.timeline) - 1
    events = [
        ("e0", {"event": 0}),
        ("event 17", {"event": 17}),
        ("e 40", {"event": 40}),
        (f"Event{last:,}", {"event": last}),
    ]
    requests = [(f" {id}", {"request": id}) for id in player.index.requests]

    async def play(shell: Shell) -> None:
        for line, place in [*steps, *events, *requests]:
            for run in (there, shell.stage.playable):
                run.start()
                for side in (run.left, run.right) if both else (run,):
                    side.select(NOTHING)
            sources.go_to(there, **place)
            await shell.press(OF["go_to"])
            await shell.answer(line)
            assert isinstance(shell.app.screen, Stage), line
            assert where(shell.stage.playable) == where(there), line

    drive(play, opened(both))


@pytest.mark.parametrize("both", [False, True])
def test_a_place_that_there_is_not_leaves_the_run_where_it_is(both) -> None:
    run = opened(both)
    run.scrub(5)
    before = where(run)
    for place in ({"step": 0}, {"step": -3}, {"step": 10**9}, {"event": -2}, {"event": 10**9}, {"request": "nobody"}):
        with pytest.raises(UnknownThing):
            sources.go_to(run, **place)
        assert where(run) == before


# What is typed -> what must be said.
WRONG = {
    "go_to": {
        "": "nothing is typed: write a step (42), an event (e1234) or a request (its id)",
        "   ": "nothing is typed",
        "-3": "there is no step -3: this run has steps 1 to",
        "0": "there is no step 0",
        "99999": "there is no step 99999",
        "e99999": "there is no event 99999",
        "e-3": "there is no event -3",
        "event": "nothing is typed: write the number of an event",
        "step": "nothing is typed: write the number of a step",
        "step two": "'two' is no number: write the number of a step",
        "event ten": "'ten' is no number: write the number of an event",
        "secnd": "this run has no request 'secnd': did you mean 'second'?",
        "evening": "this run has no request 'evening'",
        ENDLESS: "a number of 5,000 digits is too large",
        f"step {ENDLESS}": "a number of 5,000 digits is too large",
        f"-{ENDLESS}": "a number of 5,001 digits is too large",
        f"e{ENDLESS}": "a number of 5,000 digits is too large",
        f"event {ENDLESS}": "a number of 5,000 digits is too large",
    },
    "find": {
        "": "nothing is typed: write what to look for",
        "  ": "nothing is typed: write what to look for",
        "no such words": "there is nothing here that is called, begins with or holds 'no such words'",
        ENDLESS: "there is nothing here",
        f"b{ENDLESS}": "there is nothing here",
        f"block {ENDLESS}": "there is nothing here",
        f"n{ENDLESS}": "there is nothing here",
        f"node {ENDLESS}": "there is nothing here",
    },
    "add_breakpoint": {
        "": "the breakpoint is empty",
        f"block={ENDLESS}": "is not a block's number",
        f"hit_rate<{ENDLESS}": "is not a share above 0, up to 1",
    },
    "inject": {
        "": "the prompt is empty",
        f"mine1 ({ENDLESS}): hello": "a number of 5,000 digits is too large: write how many tokens",
        "mine1 (0): hello": "mine1 may generate 0 tokens",
        f"mine1 (2): [tools {ENDLESS}]": "a number of 5,000 digits is too large",
        f"mine1 (2): [tokens 1 {ENDLESS}]": "a number of 5,000 digits is too large",
        f"mine1 (2): [answer of first without {ENDLESS}]": "a number of 5,000 digits is too large",
        "mine1 (2): \\u{d800}": "is no character",
    },
}


@pytest.mark.parametrize("action", WRONG)
@pytest.mark.parametrize("name", thinned([NAME, "radix-split-and-prune"]))
def test_what_cannot_be_taken_is_said_and_the_dialog_stays(action, name) -> None:
    async def play(shell: Shell) -> None:
        place = shell.player.place
        await shell.press(OF[action])
        for line, words in WRONG[action].items():
            if "second" in words and name != NAME:
                continue
            await shell.answer(line)
            assert isinstance(shell.app.screen, Ask), line[:20]
            assert words in shell.error, (line[:20], shell.error)
        await shell.press("escape")
        assert shell.player.place == place

    drive(play, name)


@pytest.mark.parametrize(
    "choice",
    thinned(
        ["Another prompt", "Another policy", "Fewer blocks", "Another block size"], "Another prompt", "Fewer blocks"
    ),
)
def test_no_field_of_a_fork_takes_a_number_without_end(choice) -> None:
    async def play(shell: Shell) -> None:
        await shell.press(OF["fork"])
        await shell.choose(choice)
        lines = (ENDLESS, f"-{ENDLESS}", f"max_num_seqs={ENDLESS}", f"{ENDLESS}={ENDLESS}", f"first: [tools {ENDLESS}]")
        for line in (*lines, "", "many", "1e9", "0", "-1"):
            await shell.answer(line)
            assert isinstance(shell.app.screen, Ask), line[:20]
            assert shell.error, line[:20]

    drive(play, NAME)


def test_finding() -> None:
    async def play(shell: Shell) -> None:
        player = shell.player
        await shell.press(OF["find"])
        await shell.answer("Sing me")
        assert player.selection == Selection("request", "second")
        await shell.press(OF["find"])
        await shell.answer("s")
        assert isinstance(shell.app.screen, Menu), "several were found"
        await shell.press("escape")
        assert isinstance(shell.app.screen, Stage)

    drive(play, NAME)


@pytest.mark.parametrize(("text", "number"), [("0", 0), (" 42 ", 42), ("-3", -3), ("1,234", 1234), ("+7", 7)])
def test_a_whole_number_is_read_as_the_screen_writes_it(text, number) -> None:
    assert whole(text, "it") == number


@pytest.mark.parametrize("text", ["", " ", "x", "1.5", "1e9", ",", "--1", "0x10", "1 2", ENDLESS, "²"])
def test_what_is_no_whole_number_says_what_to_write(text) -> None:
    with pytest.raises(NoNumber, match="write how many") as caught:
        whole(text, "how many")
    assert isinstance(caught.value, MinicacheError)
    assert len(str(caught.value)) < 120
