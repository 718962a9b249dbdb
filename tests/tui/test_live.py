"""A live engine: it serves in its own thread, and what it did is a run that one can go back in."""

import re
import threading
import time

import pytest

pytest.importorskip("torch")

from minicache.core.errors import InvalidArgument, RequestTooLong
from minicache.core.events import PrefixMatched
from minicache.sim.narrator import Narrator
from minicache_tui.live import EngineFailed, HistoryFull, LiveEngine

from .player_runs import shown
from .shell_app import PATIENCE

PROMPT = "You are a support bot. Where is my "


def wait(engine, *requests):
    """Take in events until the requests are done."""
    until = time.monotonic() + PATIENCE
    while not set(requests) <= set(engine.timeline.at(len(engine.timeline) - 1).ended):
        engine.poll()
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.fixture
def engine():
    with LiveEngine("tiny") as engine:
        yield engine


def test_prompts_are_served_and_the_run_can_be_looked_into(engine):
    player = engine.player
    assert not engine.poll()
    first = engine.submit(PROMPT + "parcel?", 4)
    wait(engine, first)
    assert player.at_end
    second = engine.submit(PROMPT + "cake?", 4)
    wait(engine, second)
    assert {row.id: row.hit for row in player.requests()} == {first: 0, second: 32}
    assert player.ribbon(second).blocks[0].text == PROMPT[:16]
    player.back()
    before = player.place
    third = engine.submit(PROMPT + "letter?", 4)
    wait(engine, third)
    assert player.place == before
    player.end()
    assert shown(player) == shown(player_at_with(player))
    steps = 0
    while player.back():
        steps += 1
    assert steps > 10


HARD = "Say [hi] 👩‍👩‍👧 \x1b[31m to my "


@pytest.mark.parametrize("model", ["tiny", pytest.param("smollm2", marks=[pytest.mark.model, pytest.mark.nightly])])
def test_sentences_say_the_text_of_tokens_in_a_fork_too(model):
    with LiveEngine(model) as engine:
        first = engine.submit(
            HARD + "dog, the good old one that I had when I was a child in that house by the river", 4
        )
        wait(engine, first)
        second = engine.submit(
            HARD + "cat, the good old one that I had when I was a child in that house by the river", 4
        )
        wait(engine, second)
        player = engine.player
        tokens = {id: player.timeline.at(len(player.timeline) - 1).ended[id].tokens for id in (first, second)}
        told = [line.words for line in Narrator(player.timeline).lines()]
        for words in told:
            assert words.isprintable(), words
            assert not re.search(r"byte 0x|generated #|[^e] #\d+ stands", words), words
        assert any(words.startswith(f"{first} arrives with") and '"Say [hi] 👩' in words for words in told)
        at = next(i for i, (a, b) in enumerate(zip(tokens[first], tokens[second], strict=False)) if a != b)
        here, there = (engine._decode([tokens[id][at]]) for id in (second, first))
        assert any(f'token {at}: "{here}" stands there instead of "{there}".' in words for words in told)
        said = engine._decode(tokens[first][-1:])
        assert any(words.startswith(f'{first} generates "{said}"') for words in told)
        player.seek(player.index.requests[second].arrived)
        branch = player.fork(None)
        again = [line.words for line in Narrator(branch.timeline).lines()]
        lookups = [
            [words for words in lines if " looks up " in words or " arrives " in words] for lines in (told, again)
        ]
        assert lookups[0] == lookups[1]
        branch.end()
        player.end()
        blocks = [[block.text for block in side.ribbon(second).blocks] for side in (player, branch)]
        assert blocks[0] == blocks[1]


def test_who_watches_a_prompt_stays_where_its_lookup_is_told(engine):
    player = engine.player
    for number in (1, 2):
        request = engine.submit(PROMPT + "parcel?", 4)
        engine.watch(request)
        wait(engine, request)
        assert isinstance(player.current, PrefixMatched)
        assert player.current.request == request
        assert (player.current.num_tokens > 0) == (number == 2)
    request = engine.submit(PROMPT + "cake?", 4)
    engine.watch(request)
    player.start()
    wait(engine, request)
    assert player.place == -1, "who looks at something else is left there"


def player_at_with(player):
    fresh = type(player)(player.timeline, decode=player.decode)
    fresh.seek(player.place)
    return fresh


def test_the_radix_tree_is_live_too():
    with LiveEngine("tiny", "radix") as engine:
        wait(engine, engine.submit(PROMPT + "parcel?", 2), engine.submit(PROMPT + "cake?", 2))
        assert engine.player.tree().rows


def test_what_cannot_be_served_is_said_at_once_and_nothing_is_queued(engine):
    with pytest.raises(InvalidArgument, match="empty"):
        engine.submit("")
    with pytest.raises(RequestTooLong):
        engine.submit("x" * 600)
    time.sleep(0.05)
    assert not engine.poll()


def test_a_full_history_says_so_and_how_to_go_on():
    with LiveEngine("tiny", max_events=10) as engine:
        wait(engine, engine.submit(PROMPT, 2))
        with pytest.raises(HistoryFull, match=r"keeps 10 events.*start the engine anew"):
            engine.submit(PROMPT)


def test_a_failure_in_the_thread_is_told(engine, monkeypatch):
    def step():
        raise RuntimeError("out of memory")

    monkeypatch.setattr(engine._engine, "step", step)
    engine.submit(PROMPT, 2)
    engine._thread.join(120)
    assert engine.poll()  # what happened before is taken in first
    with pytest.raises(EngineFailed, match="out of memory"):
        engine.poll()
    with pytest.raises(EngineFailed):
        engine.submit(PROMPT)


def test_close_ends_the_thread_in_the_middle_of_an_answer():
    engine = LiveEngine("tiny")
    engine.submit(PROMPT, 400)
    engine.close()
    assert not any(thread.name == "live engine" for thread in threading.enumerate())


@pytest.mark.parametrize("prompt", ["a | b||c", r"[tools 64] \| \n \u{41}", " | ", "\\"])
def test_a_prompt_is_served_as_it_is_typed(engine, prompt):
    request = engine.submit(prompt, 1)
    wait(engine, request)
    arrival = engine.timeline.events[engine.player.index.requests[request].arrived]
    assert bytes(arrival.tokens).decode() == prompt


@pytest.mark.parametrize(
    ("model", "what"),
    [
        ("tiny", "A token is one byte of text here."),
        pytest.param("smollm2", "“Where is my parcel?” is", marks=[pytest.mark.model, pytest.mark.nightly]),
    ],
)
def test_it_is_said_what_a_token_is(model, what):
    with LiveEngine(model) as engine:
        assert what in engine.token_words.unit
        assert engine.timeline.token_words.unit == engine.token_words.unit
        request = engine.submit(PROMPT, 2)
        wait(engine, request)
        assert engine.player.fork(None).timeline.token_words.unit == engine.token_words.unit
