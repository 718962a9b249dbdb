"""The accepted logs of all scenarios, one event a line, short enough to be read in a diff.

`make goldens` (`python -m tests.sim.goldens`) writes them again; git shows the changes.
"""

import sys
from collections.abc import Iterator
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path

from minicache.core.events import Event
from minicache.core.request import Namespace
from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.phrases import ranges
from minicache.sim.timeline import Timeline

FOLDER = Path(__file__).resolve().parents[1] / "goldens"
STAMPS = ("seq", "step", "time")


def cases() -> list[tuple[str, str]]:
    return [(name, kind) for name in scenario_names() for kind in find_scenario(name).kinds]


def path_of(name: str, kind: str) -> Path:
    return FOLDER / f"{name}.{kind}.txt"


def log_of(name: str, kind: str) -> str:
    """The run as text, without numbers of events, so that one more event does not change every line after it."""
    timeline = Timeline.record(find_scenario(name), kind)
    return "".join(f"{line}\n" for line in map(line_of, timeline.events))


def line_of(event: Event) -> str:
    parts = [f"step {event.step}", f"{event.time:.6f}", type(event).__name__]
    parts += [f"{item.name}={_short(getattr(event, item.name))}" for item in fields(event) if item.name not in STAMPS]
    return " ".join(parts)


def _short(value: object) -> str:
    if isinstance(value, bytes):
        return value[:4].hex()
    if isinstance(value, Namespace):
        adapter = value.adapter.name if value.adapter else ""
        return ":".join((adapter, value.salt or "", *value.extra)) or "-"
    if isinstance(value, tuple):
        if value and isinstance(value[0], bytes):
            return f"[{len(value)}:{value[0][:4].hex()}..{value[-1][:4].hex()}]"
        if len(value) > 8 and isinstance(value[0], int):
            shown = ranges(value, limit=4)
            text = shown if not shown.endswith("…") else blake2b(repr(value).encode(), digest_size=4).hexdigest()
            return f"[{len(value)}:{text.replace(' ', '')}]"
        return f"[{','.join(map(str, value))}]"
    return str(value).replace(" ", "_")


def stray_files() -> Iterator[Path]:
    known = {path_of(*case) for case in cases()}
    yield from (path for path in FOLDER.glob("*.txt") if path not in known)


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    changed = 0
    for path in stray_files():
        path.unlink()
        print(f"removed {path.name}")
    for name, kind in cases():
        path, text = path_of(name, kind), log_of(name, kind)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed += 1
            print(f"wrote {path.name}")
    print(f"{changed} of {len(cases())} logs are new; `git diff tests/goldens` shows what changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
