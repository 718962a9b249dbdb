"""The accepted screens of the terminal UI, as text: what stands where, in three sizes, both themes and in ASCII.

`make goldens` (`python -m tests.tui.snapshots`) writes them anew; what changed is for git to show.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

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
    def path(self) -> Path:
        return FOLDER / f"{self.name}.txt"


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


def screen_of(snapshot: Snapshot) -> str:
    """The lines of the screen without spaces at their ends, then a digest of their colours and weights."""
    if snapshot.run is None:
        opened: object = None
    elif snapshot.kind == "both":
        opened = open_both(snapshot.run)
        opened.seek(snapshot.place)
    else:
        opened = open_run(snapshot.run, snapshot.kind)  # type: ignore[arg-type]
        opened.seek(snapshot.place)
    shown: list[str] = []

    async def play(shell: Shell) -> None:
        await shell.press(*snapshot.keys)
        for _ in range(4):
            await shell.pilot.pause()
        styles = [str(segment.style) for strip in shell.app.screen._compositor.render_strips() for segment in strip]
        shown.extend(line.rstrip() for line in shell.lines)
        shown.append(f"colours: {blake2b(' '.join(styles).encode(), digest_size=6).hexdigest()}")

    drive(play, opened, snapshot.size, ascii=snapshot.ascii, light=snapshot.light)
    return "".join(f"{line}\n" for line in shown)


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for path in set(FOLDER.glob("*.txt")) - {snapshot.path for snapshot in SNAPSHOTS}:
        path.unlink()
        print(f"removed {path.name}")
    for snapshot in SNAPSHOTS:
        text = screen_of(snapshot)
        if not snapshot.path.exists() or snapshot.path.read_text(encoding="utf-8") != text:
            snapshot.path.write_text(text, encoding="utf-8")
            print(f"wrote {snapshot.path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
