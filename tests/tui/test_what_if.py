"""Other runs: a fork, a request of one's own, two in lock-step, a live engine; by their keys."""

import re

import pytest

from minicache.core.events import PrefixMatched
from minicache_tui.comparison import Comparison
from minicache_tui.keys import KEYS
from minicache_tui.panels.pool import Pool
from minicache_tui.screens.ask import Ask
from minicache_tui.sources import open_both
from tests.thinned import thinned

from .shell_app import Shell, drive, until

OF = {key.action: key.keys.split(",") for key in KEYS}


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
        original.speed = 2
        await shell.press("home", *["right"] * 6, OF["fork"][0])
        await until(shell, lambda: "“It is 14:03:21. You are…”" in " ".join(shell.lines))  # it names the parts
        await shell.choose("Move the first part")
        branch = shell.player
        assert branch.parent is original
        assert hit(branch, "user2") > hit(original, "user2")
        assert re.search(r"\bm\b.*\besc\b.*\boriginal", shell.told[-1]), "it says what to do with a fork"
        await shell.press(OF["compare"][0])
        await shell.choose(0)
        comparison = shell.stage.playable
        assert (branch.speed, comparison.speed) == (2, 2), "the other run plays as fast"
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
        assert shell.error.startswith("'many' is no number: write how many blocks to take away")
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
        await until(shell, lambda: "prompt-1" in live.timeline.at(len(live.timeline) - 1).ended)
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


@pytest.mark.parametrize("size", thinned([(60, 20), (80, 24), (160, 48)], (60, 20), (160, 48)))
def test_a_comparison_shows_both_hit_rates_the_total_and_how_to_change_sides(size) -> None:
    async def play(shell: Shell) -> None:
        await shell.press("end")
        await shell.pilot.pause()
        narrow = size[0] < 104
        left, right = shell.stage.playable.rates
        assert (left, right) == ("0.0 %", "1.5 %")
        for rate in (left, right):
            assert rate in " ".join(line for line in shell.lines if "hit rate" in line)
        (told,) = (line for line in shell.lines if "hole run:" in line)
        assert all(total in told for total in ("0.0 %", "1.5 %"))
        assert ("1 sides 2 sides" in shell.footer) == narrow
        pool = shell.stage.query(Pool).first()
        assert pool.size.height >= 2, "blocks are seen"
        await shell.press(OF["help"][0])
        assert "Two runs in lock-step" in " ".join(shell.lines)

    drive(play, open_both("timestamp-top"), size=size)
