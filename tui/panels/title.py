"""The title line: what runs, over which cache, where we are, and whether it plays."""

from __future__ import annotations

from .line import Line, width_of
from .panel import Panel

FRACTIONS = {-1: "½", -2: "¼", -3: "⅛"}


class Title(Panel, can_focus=False):
    """One line without a border."""

    DEFAULT_CSS = """
    Title, Title.-ascii { height: 1; border: none; padding: 0 1; background: $surface; }
    """

    def read(self) -> None:
        pass

    def count(self) -> int:
        return 1

    def line(self, y: int) -> Line:
        player, width = self.player, self.width
        where = f"step {player.step_now:,} of {player.num_steps:,}"
        speed = f"{FRACTIONS.get(player.speed) or 2**player.speed}×"
        end = f"{where}   {'▶' if player.playing else '‖'} {speed}"
        line = Line(width).add("minicache", "focus strong").add("  ")
        about, name = (player.title, self.label) if self.label else (player.facts(), player.title)
        room = width - line.end - width_of(end) - 3
        if room > width_of(about) + 30:
            line.add(name, "text strong", width=room - width_of(about) - 2).add("  ").add(about, "quiet")
        else:
            line.add(name, "text strong", width=room)
        line.to(width - width_of(end)).add(where, "text").add(f"   {'▶' if player.playing else '‖'}", "focus strong")
        return line.add(f" {speed}", "text")
