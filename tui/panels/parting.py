"""Between two runs in lock-step: what each is, and the sentence about where they part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .line import Line, wrapped
from .panel import Panel

if TYPE_CHECKING:
    from ..comparison import Comparison


class PartingLine(Panel, can_focus=False):
    """Two lines."""

    def __init__(self, comparison: Comparison, *, id: str | None = None) -> None:
        super().__init__(comparison.left, id=id)
        self.comparison = comparison
        self._words: list[str] = []

    def read(self) -> None:
        parting = self.comparison.parting
        words = parting.sentence if parting else "They do not part: both find and compute the same in every step."
        self._words = wrapped(words, self.width)
        left, right = self.comparison.labels
        totals = " against ".join(self.comparison.totals)
        self.entitle(f"{left} ◀ ▶ {right}", "", f"the whole run: {totals} of tokens found")

    def count(self) -> int:
        return len(self._words)

    def line(self, y: int) -> Line:
        return Line(self.width).add(self._words[y], "text strong")
