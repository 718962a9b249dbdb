"""Tables are whole where people read them: no heading and no figure is cut, in a narrow terminal or a wide one."""

import io

import pytest
from rich.console import Console

from minicache.bench import cold_warm, three_forms, timestamp
from minicache.bench.cold_warm import COLD, NO_CACHE, WARM, SpeedRow
from minicache.bench.conditions import Conditions
from minicache.bench.measure import Answer, Arm, Row
from minicache.bench.three_forms import FORMS
from minicache.bench.timestamp import FORMS as TIMES
from minicache.bench.timestamp import Run, StreamRates
from minicache.bench.timestamp_stream import Stream

CONDITIONS = Conditions("model", "float32", "cpu", 2, 1.5, 170.0)
TTFT, SHORT_TTFT = 123456.78, 12.34  # ms: a slow machine's whole prefill, a hit on a fast one


def rows(forms):
    return [Row(form, 12999, [Answer((1,), "so", 12998, ttft) for ttft in (TTFT, SHORT_TTFT, TTFT)]) for form in forms]


def three_forms_found():
    runs, control = [Arm("hash", 16, rows(FORMS))], Arm("none", 16, rows(FORMS))
    return three_forms.Found(CONDITIONS, runs, control, [])


def timestamp_found():
    blocks = dict(zip(TIMES, (0, 149, 150), strict=True))
    streams = Stream(), Stream(same_second=0.3), Stream(turn_tokens=12000)
    stated, *changed = (StreamRates(stream, 12999.0, dict.fromkeys(TIMES, 1.0)) for stream in streams)
    return timestamp.Found(CONDITIONS, [Run(Arm("hash", 16, rows(TIMES)), blocks, stated, changed)])


def speed_row(form, cached_tokens, ttft):
    row = SpeedRow(form, 12999)
    row.add(12999, Answer((1,), "so", cached_tokens, ttft, 1234.5))
    return row


def cold_warm_found():
    runs = [Arm("hash", 16, [speed_row(COLD, 0, TTFT), speed_row(WARM, 12998, SHORT_TTFT)])]
    control = Arm("none", 16, [speed_row(NO_CACHE, 0, TTFT)])
    return cold_warm.Found(CONDITIONS, runs, control, [], 12000, 16384)


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize(
    ("result", "headings", "cells"),
    [
        (three_forms_found, "form|prompt|tokens|median|cached tokens|TTFT, ms|min|max", "12.3|123,457"),
        (
            timestamp_found,
            "form|prompt|tokens|median|cached tokens|TTFT, ms|min|max|hit rate|at the top|in the user turn|same|second|"
            "later|turns|turn,|tokens",
            "12.3|123,457|12,000|100.0%",
        ),
        (
            cold_warm_found,
            "prompt|tokens|cached|TTFT, ms|median|min|max|prefill|as seen|decode|per s",
            "12.3|123,457|1,053,404|1,234|no cache",
        ),
    ],
    ids=["three-forms", "timestamp", "cold-warm"],
)
def test_it_is_whole(result, headings, cells, width):
    file = io.StringIO()
    result().table(Console(file=file, width=width))
    text = file.getvalue()
    assert "…" not in text
    for words in (headings + "|" + cells).split("|"):
        assert words in text
