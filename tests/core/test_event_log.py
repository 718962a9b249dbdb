"""A log is a header line and JSON Lines. Reading it gives equal events, and an error names the broken line."""

import io
import json

import pytest

from minicache.core import Adapter, EventStream, Namespace
from minicache.core import events as ev
from minicache.core.event_log import SCHEMA_VERSION, BadLog, LogWriter, from_json, read_log, to_json
from tests.core.world import random_history

NAMESPACE = Namespace(Adapter("name", "/päth", "digest"), "salt", ("x", "y"))
EVENTS = [
    ev.StepStarted(),
    ev.RequestArrived("r", (1, 2**63), 5, NAMESPACE, 0, 1.5),
    ev.BlocksPublished("r", 4, (1, 2), (7, 8), NAMESPACE, (b"\x00\xff", b""), b"\x01"),
    ev.BlocksPublished("r", 0, (3,), (7, 8), Namespace(), node=4, parent_node=0),
    ev.LockMoved("r", None),
    ev.BlocksEvicted((1,), (b"h",), "r"),
    ev.CacheReset((1, 2, 3)),
    ev.PoolReplaced(33, 4),
    ev.PoolShrunk((5, 6)),
]


def written(events, **settings):
    file = io.StringIO()
    stream = EventStream(LogWriter(file, {"num_blocks": 8, "block_size": 2} | settings), clock=lambda: 0.25)
    for event in events:
        stream.emit(event)
    return file.getvalue()


def test_what_is_read_equals_what_was_written_stamps_included():
    text = written(EVENTS, model="tiny")
    header, events = read_log(text.splitlines())
    assert header == {"num_blocks": 8, "block_size": 2, "model": "tiny"}
    events = list(events)
    assert events == EVENTS
    assert [(event.seq, event.time) for event in events] == [(number, 0.25) for number in range(len(EVENTS))]
    assert all(json.loads(line) for line in text.splitlines())


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_every_event_of_a_long_history_survives(kind):
    kept = []

    class Keep:
        def __init__(self, world):
            world.stream.sinks.append(kept.append)

        def nothing(self, *args):
            """This watcher only listens."""

        before = after = after_public = read = at_rest = at_end = nothing

    random_history("serving", kind, 1, 120).run(Keep)
    file = io.StringIO()
    writer = LogWriter(file, {})
    for event in kept:
        writer(event)
    _, events = read_log(file.getvalue().splitlines())
    assert list(events) == kept
    assert len({type(event) for event in kept}) > 12


def test_blank_lines_are_nothing():
    text = written(EVENTS[:2]).replace("\n", "\n\n")
    assert len(list(read_log(text.splitlines())[1])) == 2


@pytest.mark.parametrize(
    ("first_line", "message"),
    [
        ("", "line 1: not JSON"),
        ("nonsense", "line 1: not JSON"),
        ("[1, 2]", "line 1: expected an object, not list"),
        ("{}", "line 1: this is not an event log: the header has no key 'minicache_events'"),
        (
            json.dumps({"minicache_events": SCHEMA_VERSION - 1}),
            f"line 1: this log has schema {SCHEMA_VERSION - 1}, and this version of minicache reads only schema "
            f"{SCHEMA_VERSION}: record the run again",
        ),
    ],
)
def test_a_header_that_is_none_is_line_1(first_line, message):
    with pytest.raises(BadLog, match=message):
        read_log([first_line])


def test_an_empty_file_is_no_log():
    with pytest.raises(BadLog, match="line 1"):
        read_log([])


BROKEN_LINES = {
    "cut off": '{"type":"StepStarted","seq":0,"st',
    "no object": "5",
    "unknown type": '{"type":"TierStored","seq":0,"step":0,"time":0.0}',
    "no type": '{"seq":0,"step":0,"time":0.0}',
    "field missing": '{"type":"StepFinished","seq":0,"step":0,"time":0.0}',
    "stamp missing": '{"type":"StepStarted","seq":0,"step":0}',
    "no hex": '{"type":"BlocksEvicted","seq":0,"step":0,"time":0,"blocks":[1],"hashes":["zz"],"why":"-"}',
    "hashes of another type": '{"type":"BlocksEvicted","seq":0,"step":0,"time":0,"blocks":[1],"hashes":5,"why":"-"}',
    "namespace of another type": written(EVENTS[1:2]).splitlines()[1].replace('"salt":"salt"', '"salt":5'),
    "namespace without a part": written(EVENTS[1:2]).splitlines()[1].replace('"salt":"salt",', ""),
    "namespace that is none": written(EVENTS[3:4])
    .splitlines()[1]
    .replace('{"adapter":null,"salt":null,"extra":[]}', "null"),
}


@pytest.mark.parametrize("line", BROKEN_LINES.values(), ids=BROKEN_LINES)
def test_a_broken_line_is_named_and_those_before_it_are_read(line):
    lines = [*written(EVENTS[:2]).splitlines(), line]
    _, events = read_log(lines)
    assert [next(events), next(events)] == EVENTS[:2]
    with pytest.raises(BadLog, match=r"^line 4: "):
        next(events)


def test_a_bad_log_is_a_value_error():
    assert issubclass(BadLog, ValueError)


WRONG = [None, True, -1, 1.5, "x", "zz", [], [1], ["a"], [None], [-1], [1 << 64], {}, {"adapter": 1}, float("nan")]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_field_of_another_type_is_refused_by_name_or_read(event):
    """Whatever stands in a log, it is an event that could have been written, or one sentence that names the key."""
    record = json.loads(json.dumps(to_json(event))) | {"seq": 0}  # as if a stream had emitted it
    refused: list[tuple[str, str]] = []
    for name in record:
        for value in WRONG:
            try:
                read = from_json(record | {name: value})
            except BadLog as error:
                refused.append((name, str(error)))
                continue
            assert from_json(json.loads(json.dumps(to_json(read)))) == read
    assert len(refused) > 3 * len(WRONG)
    assert {name for name, message in refused if message.endswith("not True")} >= {"seq", "step", "time"}
    for name, message in refused:
        assert f"{name} must be" in message or (name == "type" and "is not an event type" in message)
        assert "\n" not in message


def test_a_field_that_is_missing_is_named():
    record = to_json(EVENTS[1])
    for name in set(record) - {"type"}:
        with pytest.raises(BadLog, match=f"RequestArrived: the key '{name}' is missing"):
            from_json({key: value for key, value in record.items() if key != name})
