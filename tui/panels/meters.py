"""The meters: figures with their history, and on request the definition of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from .line import Line, width_of
from .panel import SIDEWAYS, Panel

if TYPE_CHECKING:
    from ..player import Meter, Player

RAMP = "▁▂▃▄▅▆▇█"
SHORTEST, LONGEST = 3, 12  # columns of a history
GAP = "  "
STYLES = {"hit rate": "hit", "in use": "used", "waiting": "preempted", "computed": "computed"}


class Meters(Panel):
    """One line. In focus, the meter under the cursor says how it is defined."""

    HELP = """\
# Meters

Figures at this place of the run, each with its history up to here behind it, as bars, where there is room. With the
focus on them, `down`, then `left` and `right` go from one to the next, and the line says how the figure is **defined**:
there are several hit rates, and they differ.
"""
    DEFAULT_CSS = """
    Meters, Meters.-ascii { height: 1; border: none; padding: 0 1; width: 1fr; }
    Meters:focus, Meters.-ascii:focus { border: none; background: $mc-used-tint; }
    """

    BINDINGS: ClassVar = [*SIDEWAYS]

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(player, id=id, classes=classes)
        self.cursor = 0
        self._meters: list[Meter] = []

    def read(self) -> None:
        self._meters = self.player.meters()

    def count(self) -> int:
        return 1

    def line(self, y: int) -> Line:
        line = Line(self.width)
        if self.has_focus and self._meters:
            meter = self._meters[self.cursor]
            line.add(f"{meter.name} {meter.value}", "focus strong").add("  ")
            return line.add(meter.definition, "text", width=line.room)
        texts = self._texts()
        widths = [width_of(f"{name} {value}{GAP}") for name, value in texts]
        shown = len(widths)
        while shown and sum(widths[:shown]) > self.width + len(GAP):
            shown -= 1
        spare = max(0, self.width + len(GAP) - sum(widths[:shown]))
        history = min(LONGEST, spare // shown - 1) if shown > 1 else 0  # another figure says more
        for meter, (name, value) in zip(self._meters[:shown], texts, strict=False):
            style = STYLES.get(meter.name, "text")
            line.add(f"{name} ", "quiet").add(value, style + " strong")
            if history >= SHORTEST and meter.history:
                line.add(" ").add(sparkline(meter.history, history), style)
            line.add(GAP)
        return line

    def _texts(self) -> list[tuple[str, str]]:
        """The names and the figures; where not all fit, in fewer words if that brings in another one."""
        room = self.width + len(GAP)
        long = [(meter.name, meter.value) for meter in self._meters]
        short = [(name, value.split(" of ")[0].split(" in ")[0]) for name, value in long]
        brief = [(name.removesuffix(" rate"), value.replace(" %", "%")) for name, value in short]
        if sum(width_of(f"{name} {value}{GAP}") for name, value in long) <= room:
            return long
        two = sum(width_of(f"{name} {value}{GAP}") for name, value in short[:2])
        return short if two <= room else brief

    def move(self, dx: int, dy: int) -> bool:
        if not self._meters or not dx:
            return False
        self.cursor = (self.cursor + dx) % len(self._meters)
        return True

    def describe(self, x: int, y: int) -> str:
        return "\n".join(f"{meter.name}: {meter.definition}" for meter in self._meters)


def sparkline(history: list[float], width: int) -> str:
    """The last `width` values, which lie between 0 and 1."""
    values = history[-width:]
    return "".join(RAMP[min(7, int(value * 8))] for value in values)
