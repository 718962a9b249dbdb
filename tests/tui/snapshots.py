"""The accepted screens of the terminal UI, in three sizes, both themes and in ASCII.

Each is two files: the text, whose difference a person can read, and the picture (SVG), which has the colours and opens
in a browser. `make goldens` (`python -m tests.tui.snapshots`) writes them anew; what changed is for git to show.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from minicache_tui.picture import picture_of
from minicache_tui.sources import open_both, open_run

from .shell_app import Shell, drive

FOLDER = Path(__file__).parent / "goldens"
SMALL, MEDIUM, LARGE = (80, 24), (120, 36), (160, 48)


@dataclass(frozen=True)
class Snapshot:
    """A run (None: the chooser) at a place, in a size, after some keys."""

    name: str
    run: str | None
    place: int
    size: tuple[int, int]
    keys: Sequence[str] = ()
    kind: str | None = None  # or "both"
    ascii: bool = False
    light: bool = False

    @property
    def accepted(self) -> "Screen":
        text, picture = self.paths
        return Screen(text.read_text(encoding="utf-8"), picture.read_text(encoding="utf-8"))

    @property
    def paths(self) -> tuple[Path, Path]:
        return FOLDER / f"{self.name}.txt", FOLDER / f"{self.name}.svg"


@dataclass(frozen=True)
class Screen:
    """`text`: the lines, without spaces at their ends. `picture`: an SVG."""

    text: str
    picture: str


SNAPSHOTS = (
    Snapshot("story-small", "timestamp-top", -1, SMALL),
    Snapshot("miss-small", "timestamp-top", 26, SMALL),
    Snapshot("miss-medium", "timestamp-top", 26, MEDIUM),
    Snapshot("miss-large", "timestamp-top", 26, LARGE),
    Snapshot("miss-large-light", "timestamp-top", 26, LARGE, light=True),
    Snapshot("eviction-medium", "preempt-and-resume", 94, MEDIUM),
    Snapshot("eviction-small-ascii", "preempt-and-resume", 94, SMALL, ascii=True),
    Snapshot("requests-small", "preempt-and-resume", 94, SMALL, keys=("2",)),
    Snapshot("tree-large", "radix-split-and-prune", 40, LARGE, kind="radix"),
    Snapshot("both-medium", "two-equal-prompts", 14, MEDIUM, kind="both"),
    Snapshot("chooser-small", None, -1, SMALL),
    Snapshot("chooser-large", None, -1, LARGE),
    Snapshot("fork-menu-small", "timestamp-top", 26, SMALL, keys=("f",)),
    Snapshot("go-to-small", "timestamp-top", 26, SMALL, keys=("g", "9", "9", "9", "enter")),
    Snapshot("help-large", "timestamp-top", 26, LARGE, keys=("question_mark",)),
)


def screen_of(snapshot: Snapshot) -> Screen:
    if snapshot.run is None:
        opened: object = None
    elif snapshot.kind == "both":
        opened = open_both(snapshot.run)
        opened.seek(snapshot.place)
    else:
        opened = open_run(snapshot.run, snapshot.kind)  # type: ignore[arg-type]
        opened.seek(snapshot.place)
    shown: list[Screen] = []

    async def play(shell: Shell) -> None:
        await shell.press(*snapshot.keys)
        for _ in range(4):
            await shell.pilot.pause()
        text = "".join(f"{line.rstrip()}\n" for line in shell.lines)
        shown.append(Screen(text, picture_of(shell.app, snapshot.name) + "\n"))

    drive(play, opened, snapshot.size, ascii=snapshot.ascii, light=snapshot.light)
    return shown[0]


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for path in set(FOLDER.iterdir()) - {path for snapshot in SNAPSHOTS for path in snapshot.paths}:
        path.unlink()
        print(f"removed {path.name}")
    for snapshot in SNAPSHOTS:
        screen = screen_of(snapshot)
        for path, content in zip(snapshot.paths, (screen.text, screen.picture), strict=True):
            if not path.exists() or path.read_text(encoding="utf-8") != content:
                path.write_text(content, encoding="utf-8")
                print(f"wrote {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
