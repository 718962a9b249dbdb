"""Two prompts of a million tokens: the time of the whole diff, compared with rendering and tokenizing both once.

`pytest -m nightly tests/prompts/test_speed.py -s` prints the figures. Both arms are timed in turn, in processor time,
without reading the JSON of the requests. A token is a byte, which gives the fastest baseline: about 12 ms. Each repair
is rendered again, so every cause after the first may take as long as rendering one prompt.
"""

import gc
import time
from statistics import median

import pytest

from minicache.prompts.examine import examine
from minicache.prompts.prompt import Source
from minicache.prompts.report import Costs, lines
from minicache.prompts.shown import Shown
from tests.prompts.cases import say
from tests.prompts.diffs import logged, means

# A diff makes many small objects: other work on the machine takes more of its caches from it than from the baseline.
DISTURBED = 2
TOKENS, TURN = 1_000_000, 2500  # bytes in a prompt, and in one message of it
SENTENCE = "The quick brown fox jumps over the lazy dog, twice.\n"
PLACES = {
    "nowhere": [],
    "in the first message": [0.0],
    "in the middle": [0.5],
    "in the last message": [0.999],
    "in four messages": [0.0, 0.3, 0.6, 0.9],
    "in twenty messages": [number / 20 for number in range(20)],
}


def pair(places, appended=(), turn=TURN):
    """Two conversations that differ by an id in the messages at these shares of their length."""
    bodies = []
    for id, more in (("97bd6f0c", ()), ("24c2d9ee", appended)):
        texts = [f"turn {i}\n{SENTENCE * (turn // len(SENTENCE))}" for i in range(TOKENS // turn)]
        for place in places:
            texts[int(place * len(texts))] += f"session {id} of today\n{SENTENCE}"
        bodies.append(say(None, *texts, *more))
    return bodies


def long_text(place):
    texts = [SENTENCE * (TOKENS // len(SENTENCE)) for _ in range(2)]
    cut = int(place * len(texts[0]))
    return [
        say(None, text[:cut] + f" {id} " + text[cut:]) for text, id in zip(texts, ("97bd6f0c", "24c2d9ee"), strict=True)
    ]


PAIRS = {
    **{f"a difference {where}": (lambda places=places: pair(places)) for where, places in PLACES.items()},
    "two turns appended": lambda: pair([], ["yes", "go on"]),
    "a difference and two turns": lambda: pair([0.5], ["yes", "go on"]),
    "one long text": lambda: long_text(0.5),
}


def measured(a, b, rounds=7):
    """The seconds of each round, first of rendering and tokenizing both prompts, then of the diff with its report; and
    the causes it found."""
    using = means()
    requests = [logged(body) for body in (a, b)]
    base, whole = [], []
    gc.collect()
    gc.freeze()  # what other tests have left would be gone through again and again; a command has none of it
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        tokens = [using.tokenizer.encode(using.text(Source(request.body.payload))) for request in requests]
        base.append(time.process_time() - start)
        assert min(map(len, tokens)) > 0.98 * TOKENS
        del tokens
        gc.collect()
        start = time.process_time()
        found = examine(*requests, using)
        assert "\n".join(lines(found, Costs(), Shown()))
        whole.append(time.process_time() - start)
    gc.unfreeze()
    return base, whole, [str(cause.kind) for cause in found.diff.causes]


@pytest.mark.nightly
@pytest.mark.parametrize("name", PAIRS)
def test_a_million_tokens_take_a_few_times_their_rendering_and_tokenizing(name):
    base, whole, causes = measured(*PAIRS[name]())
    times = [1000 * median(base), 1000 * median(whole)]
    print(f"{name:34} {times[0]:6.1f} ms {times[1]:6.1f} ms  {times[1] / times[0]:4.2f} times  {len(causes)} causes")
    many = {"in four": 4, "in twenty": 20}.get(" ".join(name.split()[2:4]), 1)
    assert causes == {"a difference nowhere": ["identical"], "two turns appended": []}.get(name, ["nonce"] * many)
    assert min(whole) < DISTURBED * (3 + 0.5 * (many - 1)) * min(base)


def test_the_time_of_two_long_histories_grows_with_them():
    """Two messages differ, so every rule of the history compares all messages."""

    def seconds(turns):
        a, b = (say(SENTENCE, f"{id} first", f"{id} second", *(f"turn {i}" for i in range(turns))) for id in "xy")
        using, requests = means(), [logged(a), logged(b)]
        times = []
        for _ in range(3):
            start = time.process_time()
            examine(*requests, using)
            times.append(time.process_time() - start)
        return min(times)

    assert seconds(4000) < 10 * seconds(1000)  # in quadratic time it would be 16 times
