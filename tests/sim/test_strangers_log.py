"""Event logs that no engine wrote: whatever is in a line, the reader says which line and why, in a moment."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from minicache.core.event_log import BadLog, to_json
from minicache.sim.library import find_scenario
from minicache.sim.timeline import Timeline

Events = list[dict[str, Any]]


@cache
def recorded() -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]:
    timeline = Timeline.record(find_scenario("radix-split-and-prune"))
    header = {"minicache_events": 2, **timeline.settings}
    return header, tuple(json.loads(json.dumps(to_json(event))) for event in timeline.events)


def first(events: Events, kind: str, **fields: object) -> None:
    """Change fields of the first event of this type."""
    next(event for event in events if event["type"] == kind).update(fields)


def makes_a_circle(events: Events) -> None:
    for event in events:
        if event["type"] == "BlocksPublished":
            event["parent_node"] = event["node"]


NOT_READ: dict[str, Callable[[Events], None]] = {
    "more tokens match than the request has": lambda events: first(events, "PrefixMatched", num_tokens=10**9),
    "its request has not arrived": lambda events: first(events, "PrefixMatched", request="nobody"),
    "a node is its own ancestor": makes_a_circle,
    "the tokens are not those of whole blocks": lambda events: first(events, "BlocksPublished", tokens=[]),
    "it has neither a hash for each block nor a node": lambda events: first(events, "BlocksPublished", node=None),
    "more tokens are published than": lambda events: first(events, "BlocksPublished", start=1 << 40),
    "it releases other blocks than the request holds": lambda events: first(events, "BlocksReleased", blocks=[1] * 9),
    "step must be an integer from 0": lambda events: first(events, "StepStarted", step=-1),
    "num_tokens must be an integer from 0": lambda events: first(events, "StepFinished", num_tokens=1 << 64),
    "priority must be an integer of 64 bits": lambda events: first(events, "RequestArrived", priority=1 << 64),
    "time must be a number": lambda events: first(events, "StepStarted", time=10**400),
}


def read(header: dict[str, Any], events: Events) -> Timeline:
    return Timeline.from_log([json.dumps(record) for record in (header, *events)], "log")


@pytest.mark.parametrize("words", NOT_READ)
def test_an_event_that_cannot_be(words: str) -> None:
    header, events = recorded()
    changed = [dict(event) for event in events]
    NOT_READ[words](changed)
    with pytest.raises(BadLog, match=r"^log, line \d+: ") as caught:
        read(header, changed)
    assert words in str(caught.value)
    assert len(read(header, list(events))) == len(events)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[" * 500 + "]" * 500, "line 2: it is nested more than 128 levels deep"),
        ('{"a":' * 9000 + "1" + "}" * 9000, "line 2: it is nested more than 128 levels deep"),
        ('{"seq": ' + "9" * 5000 + "}", "line 2: a number has more digits than can be converted"),
    ],
    ids=["list", "object", "digits"],
)
def test_a_line_that_python_cannot_hold(line: str, words: str) -> None:
    header, _ = recorded()
    with pytest.raises(BadLog) as caught:
        Timeline.from_log([json.dumps(header), line], "log")
    assert words in str(caught.value)


def test_no_infinity_comes_in_with_the_header() -> None:
    header, events = recorded()
    with pytest.raises(BadLog, match="line 1: JSON has no NaN and no Infinity"):
        read({**header, "seed": float("inf")}, list(events))
