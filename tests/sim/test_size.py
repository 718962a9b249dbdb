"""Scenarios and logs of any size cost a time that is about linear in it, or are refused in a sentence."""

import io
import json
import re
from collections.abc import Iterator

import pytest

from minicache.core.event_fields import LONGEST_NAME
from minicache.core.event_log import BadLog, LogWriter
from minicache.sim import recorded
from minicache.sim.errors import BadScenario
from minicache.sim.scenario_file import read_scenario
from minicache.sim.timeline import Timeline
from minicache.sim.toml_table import LONGEST
from minicache.sim.transcript import transcript
from minicache.sim.words import HEAD
from tests.growth import require_linear

REQUEST = 'title = "T"\nstory = "S"\n[cache]\nnum_blocks = {blocks}\nblock_size = 1\n[[request]]\nid = "r{{n}}"\n'
PROMPT = 'prompt = [{{ text = "some words" }}]\nmax_tokens = 2\ncount = {count}\n'


def scenario(count=1, blocks=4097, more=""):
    return read_scenario((REQUEST + PROMPT).format(blocks=blocks, count=count) + more, "s", "s.toml")


def test_a_scenario_is_read_and_checked_in_linear_time():
    require_linear(lambda count: lambda: scenario(count).require_fit("hash"), 500)


def test_the_events_of_a_request_are_recorded_in_a_time_that_does_not_grow_with_the_requests():
    require_linear(lambda count: lambda: Timeline.record(scenario(count), "hash"), 60)


def test_the_time_of_a_transcript_does_not_grow_with_the_pool():
    def lines(blocks) -> Iterator[str]:
        return transcript(Timeline.record(scenario(blocks=blocks), "hash"))

    whole, cut = ([line for line in lines(blocks) if "free queue, from" in line] for blocks in (HEAD, 4 * HEAD))
    assert whole[0].endswith(f"–b{HEAD - 1}.")
    last = re.search(r"b(\d+), …\.$", cut[0])
    assert last
    assert int(last[1]) < HEAD + 100


@pytest.mark.parametrize("key", ["title", "story", "id", "segment", "salt"])
def test_a_text_that_no_screen_can_show_is_refused(key):
    good = {"title": "T", "story": "S", "id": "r", "segment": "s", "salt": "x"}
    for length in (LONGEST, LONGEST + 1):
        v = {**good, key: "x" * length}
        text = (
            f'title = "{v["title"]}"\nstory = "{v["story"]}"\n[[request]]\nid = "{v["id"]}"\nsalt = "{v["salt"]}"\n'
            f'prompt = [{{ segment = "{v["segment"]}", tokens = 4 }}]\n'
        )
        if length == LONGEST:
            read_scenario(text, "s", "s.toml")
    with pytest.raises(BadScenario, match=f"{key}: must have at most 10,000 characters, not 10,001"):
        read_scenario(text, "s", "s.toml")


def test_a_log_with_such_a_text_is_refused():
    timeline = Timeline.record(scenario(), "hash")
    out = io.StringIO()
    writer = LogWriter(out, json.loads(json.dumps(timeline.settings)))
    for event in timeline.events:
        writer(event)
    log, long = out.getvalue(), "x" * (LONGEST_NAME + 1)
    Timeline.from_log(log.splitlines(), "log")
    for text, where in (('"r1"', "line"), ('"T"', "line 1: title")):
        with pytest.raises(BadLog, match=f"{where}.*at most 10,000 characters"):
            Timeline.from_log(log.replace(text, f'"{long}"').splitlines(), "log")


def test_a_line_of_a_log_has_an_end(tmp_path, monkeypatch):
    """A file of the system may have no line end: it would be one line that no memory holds."""
    monkeypatch.setattr(recorded, "LONGEST_LINE", 100)
    log = tmp_path / "log.jsonl"
    log.write_text('{"minicache_events": 2, "num_blocks": 9, "block_size": 1}\n' + "x" * 101)
    with pytest.raises(BadLog, match=r"log\.jsonl, line 2: longer than 100 characters"):
        recorded.read_recorded(log)
