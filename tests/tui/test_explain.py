"""The rule beside the sentences: all of it is seen, in every run."""

import re

import pytest

from minicache.core.event_log import BadLog
from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.narrator import Narrator
from minicache.sim.recorded import read_recorded, write_recorded
from minicache.sim.timeline import Timeline
from minicache_tui.panels.explain import CARD, RULE, Explain
from minicache_tui.panels.line import width_of
from minicache_tui.player import Player
from minicache_tui.sources import open_log
from tests.thinned import thinned

from .shell_app import Shell, drive


@pytest.mark.parametrize("name", scenario_names())
def test_every_rule_fits_its_card(name) -> None:
    for kind in find_scenario(name).kinds:
        timeline = Timeline.record(find_scenario(name), kind)
        explain = Explain(Player(timeline))
        for rule in {line.rule for line in Narrator(timeline).lines()}:
            rows = explain._rule_card(rule)
            assert all(sum(width_of(text) for text, _ in row) <= CARD for row in rows)
            words = " ".join("".join(text for text, _ in row) for row in rows).split()
            assert words == f"{RULE}{rule.name} {rule.otherwise} {rule.decided_by}".split()


def test_a_long_name_of_a_rule_is_broken_and_not_cut() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("g")
        await shell.answer("e60")
        text = " ".join(line[-48:] for line in shell.lines)
        assert "the last position gives the next" in text
        assert "│ token" in text

    drive(play, "preempt-and-resume", size=(160, 48))


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_at_its_end_a_run_says_what_came_of_it_and_what_else_one_can_do(size) -> None:
    async def play(shell: Shell) -> None:
        await shell.press("end")
        text = " ".join(" ".join(shell.lines).replace("│", " ").replace("▌", " ").split())
        assert "In all: 5 requests, and 0 of 3,360 prompt tokens found in the cache (0.0%)." in text
        assert "What if? f changes something" in text
        assert "The rule:" not in text
        await shell.press("left")
        assert "In all:" not in " ".join(shell.lines)

    drive(play, "timestamp-top", size=size)


def test_the_story_says_what_a_token_is() -> None:
    async def play(shell: Shell) -> None:
        text = " ".join(" ".join(shell.lines).replace("│", " ").split())
        assert "A token is one byte of text here" in text

    drive(play, "timestamp-end", size=(80, 24))


# Of a recorded log, which may stop anywhere


def log_of(tmp_path, name: str, events: int, cut: int = 0):
    """The log of a run, of so many events; with `cut`, so many characters of one line more."""
    path = tmp_path / "run.jsonl"
    write_recorded(Timeline.record(find_scenario(name)), path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: events + 1]) + lines[events + 1][:cut] if cut else "".join(lines[: events + 1]))
    return path


async def text_of(shell: Shell) -> str:
    await shell.press("end")
    await shell.pilot.pause()
    return " ".join(" ".join(shell.lines).replace("│", " ").replace("▌", " ").split())


@pytest.mark.parametrize("name", thinned(["preempt-and-resume", "thundering-herd"]))
def test_a_log_that_stops_in_the_middle_says_so_and_its_last_event_keeps_its_rule(name, tmp_path) -> None:
    whole = Timeline.record(find_scenario(name))
    seen = set()
    for events in range(1, len(whole.events), max(1, len(whole.events) // 6)):
        player = open_log(log_of(tmp_path, name, events))
        view = whole.at(events - 1)
        waiting, running = len(view.waiting), len(view.running)

        async def play(shell: Shell, waiting=waiting, running=running) -> None:
            text = await text_of(shell)
            ended = re.search(r"The log ends here: (.+?)\.", text)
            if waiting or running:
                assert "In all:" not in text
                numbers = [int(number) for number in re.findall(r"\d+", ended[1])]
                assert numbers == [number for number in (waiting, running) if number]
                assert ("wait" in ended[1], "run" in ended[1]) == (waiting > 0, running > 0)
                assert shell.player.sentences()[-1].rule.name.split()[0] in text
            else:
                assert ended is None
            seen.add((waiting > 0, running > 0))

        drive(play, player, size=(100, 40))
    assert len(seen) >= 2


@pytest.mark.parametrize("cut", [1, 20, -2])
def test_a_log_whose_last_line_was_cut_off_is_shown_up_to_there(cut, tmp_path) -> None:
    path = log_of(tmp_path, "preempt-and-resume", 20, cut)
    player = open_log(path)
    assert len(player.timeline) == 20
    assert player.timeline.cut
    with pytest.raises(BadLog, match="line 22"):
        read_recorded(path)

    async def play(shell: Shell) -> None:
        words = "The last line of the log is incomplete: the program that wrote it stopped there."
        assert words in " ".join(" ".join(shell.lines).replace("│", " ").split())
        assert words in await text_of(shell)

    drive(play, player, size=(100, 40))


def test_a_line_that_is_wrong_in_the_middle_of_a_log_is_still_refused(tmp_path) -> None:
    path = log_of(tmp_path, "preempt-and-resume", 20, 20)
    path.write_text(path.read_text() + "\n")
    with pytest.raises(BadLog, match="line 22"):
        open_log(path)
    path.write_text('{"minicache_ev')
    with pytest.raises(BadLog, match="line 1"):
        open_log(path)


def test_a_log_without_an_end_of_line_at_its_end_is_whole(tmp_path) -> None:
    path = log_of(tmp_path, "preempt-and-resume", 20)
    path.write_text(path.read_text().rstrip("\n"))
    assert len(open_log(path).timeline) == 20
    assert not open_log(path).timeline.cut


def test_a_log_without_events_is_no_live_engine(tmp_path) -> None:
    path = log_of(tmp_path, "preempt-and-resume", 0)

    async def play(shell: Shell) -> None:
        text = " ".join(shell.lines)
        assert "0 events in 0 steps." in text
        assert "Type a prompt" not in text
        assert "press i" not in text
        await shell.press("right")
        assert shell.told == ["This is the end."]

    drive(play, open_log(path), size=(80, 24))


def test_the_story_of_a_log_says_what_a_token_is_too(tmp_path) -> None:
    player = open_log(log_of(tmp_path, "preempt-and-resume", 20))
    assert player.timeline.token_words.unit
    assert player.story().endswith(f"20 events in 2 steps. {player.timeline.token_words.unit}")
