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
BRIEF = {"hit rate": "hit", "in use": "use", "waiting": "wait"}
# The longest value for which a meter keeps its columns: where the next one stands does not change with the digits.
LONGEST_VALUE = {"hit rate": "99.9 % of tokens", "in use": "100 %", "waiting": "99", "computed": "9,999 in this step"}
# From the most words to the fewest: in which way so many meters are said. The first that has room is taken.
LAYOUTS = (("long", 4), ("short", 4), ("short", 3), ("brief", 3), ("brief", 2), ("brief", 1))

Fields = list[tuple[str, str, int]]  # a name, a value, and its columns


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
        fields = self._fields()
        spare = self.width + len(GAP) - _width(fields)
        history = min(LONGEST, spare // len(fields) - 1) if len(fields) > 1 else 0
        for meter, (name, value, columns) in zip(self._meters, fields, strict=False):
            style = STYLES.get(meter.name, "text")
            line.add(f"{name} ", "quiet").add(value, style + " strong")
            line.add(" " * (columns - width_of(value)))
            if history >= SHORTEST:
                line.add(" ").add(sparkline(meter.history, history), style)
            line.add(GAP)
        return line

    def _fields(self) -> Fields:
        """The meters in the words for which there is room, however many digits they have: another figure goes before
        the history of any."""
        ways = [_fields(self._meters[:count], way) for way, count in LAYOUTS]
        return next((way for way in ways if _width(way) <= self.width + len(GAP)), ways[-1])

    def move(self, dx: int, dy: int) -> bool:
        if not self._meters or not dx:
            return False
        self.cursor = (self.cursor + dx) % len(self._meters)
        return True

    def describe(self, x: int, y: int) -> str:
        return "\n".join(f"{meter.name}: {meter.definition}" for meter in self._meters)


def _fields(meters: list[Meter], way: str) -> Fields:
    """`hit rate 21.3 % of tokens`, `hit rate 21.3 %` or `hit 21.3%`."""
    fields = []
    for meter in meters:
        name = BRIEF.get(meter.name, meter.name) if way == "brief" else meter.name
        value, longest = _said(meter.value, way), _said(LONGEST_VALUE.get(meter.name, ""), way)
        fields.append((name, value, max(width_of(value), width_of(longest))))
    return fields


def _said(value: str, way: str) -> str:
    short = value if way == "long" else value.split(" of ")[0].split(" in ")[0]
    return short.replace(" %", "%") if way == "brief" else short


def _width(fields: Fields) -> int:
    return sum(width_of(name) + 1 + columns + len(GAP) for name, _, columns in fields)


def sparkline(history: list[float], width: int) -> str:
    """The last values, which lie between 0 and 1, the latest on the right; nothing is drawn of 0."""
    values = history[-width:]
    return "".join(RAMP[min(7, int(value * 8))] if value else " " for value in values).rjust(width)
