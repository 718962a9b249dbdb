"""The title line: what runs, over which cache, where we are, and whether it plays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .line import Line, width_of
from .panel import Panel

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..player import Player

BRAND = "minicache  "
LEAST = 29  # columns of a title beside the facts of its run
FRACTIONS = {-1: "½", -2: "¼", -3: "⅛"}


class Title(Panel, can_focus=False):
    """One line without a border. Of two runs in lock-step it says what is compared, in as many words as fit."""

    DEFAULT_CSS = """
    Title, Title.-ascii { height: 1; border: none; padding: 0 1; background: $surface; }
    """

    def __init__(self, player: Player, comparison: Comparison | None = None, *, id: str | None = None) -> None:
        super().__init__(player, id=id)
        self.playable = comparison or player
        self.names = compared(comparison) if comparison else ()

    def read(self) -> None:
        pass

    def count(self) -> int:
        return 1

    def line(self, y: int) -> Line:
        player, width = self.player, self.width
        where = f"step {self.playable.step_now:,} of {self.playable.num_steps:,}"
        speed = f"{FRACTIONS.get(player.speed) or 2**player.speed}×"
        sign = "▶" if player.playing else "‖"
        end = width - width_of(f"{where}   {sign} {speed}")
        line = Line(width)
        if not self.names or end - 3 - width_of(BRAND) >= width_of(self.names[-1]):
            line.add(BRAND, "focus strong")
        room = end - 3 - line.end
        about = player.title if self.names else player.facts()
        beside = room - width_of(about) - 2
        longest = next((name for name in self.names if width_of(name) <= room), "")
        least = width_of(longest) if longest else LEAST
        if beside >= least:
            line.add(self._what(beside), "text strong", width=beside).add("  ").add(about, "quiet")
        else:
            line.add(self._what(room), "text strong", width=room)
        line.to(end).add(where, "text").add(f"   {sign}", "focus strong")
        return line.add(f" {speed}", "text")

    def _what(self, room: int) -> str:
        """What runs, or the longest way that fits to say what is compared."""
        names = self.names or (self.player.title,)
        return next((name for name in names if width_of(name) <= room), names[-1])


def compared(comparison: Comparison) -> tuple[str, ...]:
    """What two are compared, from the longest way to say it to the shortest."""
    whole, brief = (" ◀ ▶ ".join(labels) for labels in (comparison.labels, comparison.brief))
    return f"Compare: {whole}", f"Compare: {brief}", brief
