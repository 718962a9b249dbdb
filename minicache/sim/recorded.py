"""Recorded runs: event logs on disk, from the simulator or from an engine."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from minicache.common.files import atomic_write, require_end
from minicache.common.json_reader import read_json
from minicache.core.event_log import BadLog, LogWriter
from minicache.sim.timeline import Timeline

LONGEST_LINE = 1 << 26  # characters; the longest event is the arrival of a prompt of 2**21 tokens


def read_recorded(path: Path, whole: bool = True) -> Timeline:
    """The run in a log. Raises `BadLog` naming file and line, also for a log of another schema version.

    The program that wrote a log may have stopped in the middle of a line. If not `whole`, such a log is read up to that
    line, and `Timeline.cut` is true.
    """
    cut: list[str] = []
    try:
        with require_end(path).open(encoding="utf-8") as file:
            lines = _lines(file, path)
            timeline = Timeline.from_log(lines if whole else _whole_lines(lines, cut), str(path))
            timeline.cut = bool(cut)
            return timeline
    except FileNotFoundError:
        raise BadLog(f"there is no file {path}") from None
    except UnicodeDecodeError as error:
        raise BadLog(f"{path} is not text in UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise BadLog(f"{path} cannot be read: {error.strerror}") from None


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a log: a file of the system without line ends would be one line that no memory holds."""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), ""), start=1):
        if len(line) > LONGEST_LINE:
            raise BadLog(f"{path}, line {number}: longer than {LONGEST_LINE:,} characters: it is not an event log")
        yield line


def _whole_lines(lines: Iterable[str], cut: list[str]) -> Iterator[str]:
    """All lines but an incomplete last one, which goes into `cut`. A last line of whole JSON needs no line end."""
    for line in lines:
        if line.endswith("\n") or _is_json(line):
            yield line
        else:
            cut.append(line)


def _is_json(line: str) -> bool:
    try:
        read_json(line)
    except ValueError:
        return False
    return True


def write_recorded(timeline: Timeline, path: Path) -> None:
    """Write the log of a run. The file appears when it is complete. Raises `OSError`, as `atomic_write` does."""
    with atomic_write(path) as out:
        writer = LogWriter(out, json.loads(json.dumps(timeline.settings)))
        for event in timeline.events:
            writer(event)
