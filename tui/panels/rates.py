"""The hit rates of two runs in lock-step beside each other, where there is no room for the meters of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .line import Line, cut, width_of
from .panel import Panel

if TYPE_CHECKING:
    from ..comparison import Comparison


NAME, GAP = "hit rate  ", "  ·  "


class Rates(Panel, can_focus=False):
    """One line without a border."""

    DEFAULT_CSS = """
    Rates, Rates.-ascii { height: 1; border: none; padding: 0 1; }
    """

    def __init__(self, comparison: Comparison, *, id: str | None = None) -> None:
        super().__init__(comparison.left, id=id)
        self.comparison = comparison

    def read(self) -> None:
        pass

    def count(self) -> int:
        return 1

    def line(self, y: int) -> Line:
        rates, labels = self.comparison.rates, self.comparison.labels
        room = self.width - width_of(NAME + GAP + "  ".join(rates))
        if sum(map(width_of, labels)) > room:
            labels = self.comparison.brief
        longest = max(room // 2, room - min(map(width_of, labels)))  # of what the two are called
        line = Line(self.width).add(NAME, "quiet")
        for label, rate, gap in zip(labels, rates, (GAP, ""), strict=True):
            line.add(f"{cut(label, longest)} ", "quiet").add(rate, "hit strong").add(gap, "quiet")
        return line
