"""The rule beside the sentences: all of it is seen, in every run."""

import pytest

from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.timeline import Timeline
from minicache.sim.transcript import narrate
from minicache_tui.panels.explain import CARD, RULE, Explain
from minicache_tui.panels.line import width_of
from minicache_tui.player import Player

from .shell_app import Shell, drive


@pytest.mark.parametrize("name", scenario_names())
def test_every_rule_fits_its_card(name) -> None:
    for kind in find_scenario(name).kinds:
        timeline = Timeline.record(find_scenario(name), kind)
        explain = Explain(Player(timeline))
        for rule in {line.rule for line in narrate(timeline)}:
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
