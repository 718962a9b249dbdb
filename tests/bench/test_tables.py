"""Tables are whole where people read them: no heading and no figure is cut, in a narrow terminal or a wide one."""

import io

import pytest
from rich.console import Console

from minicache.bench import cold_warm_report, three_forms_report, timestamp_report
from minicache.bench.cold_warm_result import COLD, NO_CACHE, WARM, SpeedRow
from minicache.bench.cold_warm_result import Result as ColdWarm
from minicache.bench.conditions import Conditions
from minicache.bench.three_forms import FORMS
from minicache.bench.three_forms_result import Answer, Arm, Row
from minicache.bench.three_forms_result import Result as ThreeForms
from minicache.bench.timestamp import FORMS as TIMES
from minicache.bench.timestamp_result import Result as Timestamp
from minicache.bench.timestamp_result import Run, StreamRates
from minicache.bench.timestamp_stream import Stream

CONDITIONS = Conditions("model", "float32", "cpu", 2, 1.5, 170.0)
TTFT, SHORT_TTFT = 123456.78, 12.34  # ms: a slow machine's whole prefill, a hit on a fast one


def rows(forms):
    return [Row(form, 12999, [Answer((1,), "so", 12998, ttft) for ttft in (TTFT, SHORT_TTFT, TTFT)]) for form in forms]


def three_forms():
    runs, control = [Arm("hash", 16, rows(FORMS))], Arm("none", 16, rows(FORMS))
    return ThreeForms(CONDITIONS, runs, control, [])


def timestamp():
    blocks = dict(zip(TIMES, (0, 149, 150), strict=True))
    streams = Stream(), Stream(same_second=0.3), Stream(turn_tokens=12000)
    stated, *changed = (StreamRates(stream, 12999.0, dict.fromkeys(TIMES, 1.0)) for stream in streams)
    return Timestamp(CONDITIONS, 2400, [Run(Arm("hash", 16, rows(TIMES)), blocks, blocks, 16, stated, changed)])


def speed_row(form, cached_tokens, ttft):
    row = SpeedRow(form, 12999)
    row.add(12999, Answer((1,), "so", cached_tokens, ttft, 1234.5))
    return row


def cold_warm():
    runs = [Arm("hash", 16, [speed_row(COLD, 0, TTFT), speed_row(WARM, 12998, SHORT_TTFT)])]
    control = Arm("none", 16, [speed_row(NO_CACHE, 0, TTFT)])
    return ColdWarm(CONDITIONS, 12000, 16384, runs, control, [])


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize(
    ("report", "result", "headings", "cells"),
    [
        (three_forms_report, three_forms, "form|prompt|tokens|median|cached tokens|TTFT, ms|min|max", "12.3|123,457"),
        (
            timestamp_report,
            timestamp,
            "form|prompt|tokens|median|cached tokens|TTFT, ms|min|max|hit rate|at the top|in the user turn|same|second|"
            "later|turns|turn,|tokens",
            "12.3|123,457|12,000|100.0%",
        ),
        (
            cold_warm_report,
            cold_warm,
            "prompt|tokens|cached|TTFT, ms|median|min|max|prefill|as seen|decode|per s",
            "12.3|123,457|1,053,404|1,234|no cache",
        ),
    ],
    ids=["three-forms", "timestamp", "cold-warm"],
)
def test_it_is_whole(report, result, headings, cells, width):
    file = io.StringIO()
    report.print_report(result(), Console(file=file, width=width))
    text = file.getvalue()
    assert "…" not in text
    for words in (headings + "|" + cells).split("|"):
        assert words in text
