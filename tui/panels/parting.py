"""Of two runs in lock-step: how much each finds in all, and the sentence about where they part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .line import Line, cut, width_of, wrapped
from .panel import Panel

if TYPE_CHECKING:
    from ..comparison import Comparison

RATE = "hit strong on-hit"


class PartingLine(Panel, can_focus=False):
    """What comes of it all, in a line that is seen first; below it where they part."""

    DEFAULT_CSS = """
    PartingLine { height: 5; }
    .-narrow PartingLine, .-narrow.-ascii PartingLine { height: 3; border: none; }
    """

    def __init__(self, comparison: Comparison, *, id: str | None = None) -> None:
        super().__init__(comparison.left, id=id)
        self.comparison = comparison
        self._words: list[str] = []

    def read(self) -> None:
        self._words = wrapped(self._parting(), self.width)
        self.entitle(" ◀ ▶ ".join(self.comparison.labels))

    def count(self) -> int:
        return 1 + len(self._words)

    def line(self, y: int) -> Line:
        return Line(self.width).add(self._words[y - 1], "text") if y else self._headline()

    def _headline(self) -> Line:
        """The rates of the whole runs, in a sentence where there is room for one."""
        comparison, (first, second) = self.comparison, self.comparison.totals
        left, right = comparison.names
        pieces = ["The whole run: ", f"{left} finds ", first, f" of the prompt tokens, {right} ", second, "."]
        if width_of("".join(pieces)) > self.width:
            end = " of tokens found"
            room = self.width - width_of(f"Whole run:  {first},  {second}{end}")
            if sum(map(width_of, comparison.brief)) > room:
                end, room = " found", room + width_of(" of tokens")
            longest = max(room // 2, room - min(map(width_of, comparison.brief)))
            left, right = (cut(name, longest) for name in comparison.brief)
            pieces = ["Whole run: ", f"{left} ", first, f", {right} ", second, end]
        line = Line(self.width)
        for index, piece in enumerate(pieces):
            line.add(piece, RATE if index in (2, 4) else "text strong")
        return line

    def _parting(self) -> str:
        """Where they part, and whether it has come to that."""
        parting, now = self.comparison.parting, self.comparison.step_now
        if parting is None:
            return "They do not part: both find and compute the same in every step."
        tense = "will part" if now < parting.step else "part now," if now == parting.step else "parted"
        return f"They {tense} in step {parting.step}: {parting.what}."
